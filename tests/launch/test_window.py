"""A person's own -j is never changed; where there is none, schedulers are made wide."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from stoker.launch.window import prepared, window_for

GIB = 2**30


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("ninja -C build", "ninja -C build -j24"),
        ("/usr/bin/ninja-build", "/usr/bin/ninja-build -j24"),
        ("ninja -j0 all", "ninja -j0 all -j24"),
        ("ninja -- all", "ninja -j24 -- all"),
        ("samu", "samu -j24"),
        ("make -j", "make -j -j24"),
        ("gmake -j -C src", "gmake -j -C src -j24"),
        ("ninja -t clean", "ninja -t clean"),
        ("ninja --version", "ninja --version"),
        ("make -n", "make -n"),
    ],
)
def test_the_window_goes_where_the_scheduler_reads_it(command: str, run: str) -> None:
    result = prepared(command.split(), 24, None, {})
    assert " ".join(result.words) == run
    assert result.note == ""
    assert result.environment == {}


@pytest.mark.parametrize("command", ["ninja -j8", "ninja -j 8 -C build", "make -j8 all", "make --jobs=8"])
def test_a_persons_own_number_stays_and_they_are_told(command: str) -> None:
    result = prepared(command.split(), 24, None, {})
    assert " ".join(result.words) == command
    assert "-j8" in result.note


@pytest.mark.parametrize(
    ("command", "environ", "width"),
    [
        ("ninja -C b", {}, 24),
        ("ninja -C b -j4", {}, 4),
        ("ninja -t clean", {}, None),
        ("make -j", {}, 24),
        ("make -j4", {}, 4),
        ("make", {}, 1),
        ("make", {"MAKEFLAGS": "-j4"}, 4),
        ("make", {"MAKEFLAGS": "-j"}, 24),
        ("make", {"MAKEFLAGS": "k"}, 1),
        ("cmake --build b", {}, 24),
        ("cmake --build b -j4", {}, 4),
        ("cmake --build b --parallel 4", {}, 4),
        ("cmake --build b -- -j4", {}, 4),
        ("meson compile --jobs=4", {}, 4),
        ("pip install .", {"MAX_JOBS": "2"}, 2),
        ("pip install .", {"NINJAFLAGS": "-v -j3"}, 3),
        ("pip install .", {"MAX_JOBS": "100"}, 24),
    ],
)
def test_how_many_jobs_a_scheduler_may_start_is_known_beforehand(
    command: str, environ: dict[str, str], width: int | None
) -> None:
    assert prepared(command.split(), 24, None, environ).width == width
    told = {**environ, **prepared(command.split(), 24, None, environ).environment}
    assert prepared(command.split(), 24, None, told).width == width, "what was added changes nothing"


@pytest.mark.parametrize("command", ["cmake --build b -j4", "meson compile -j 4"])
def test_a_number_for_a_front_end_stays_and_they_are_told(command: str) -> None:
    result = prepared(command.split(), 24, 9, {})
    assert " ".join(result.words) == command
    assert "-j4 is your limit" in result.note


def test_make_is_told_to_keep_its_j_and_to_drop_the_number() -> None:
    """Without -j it runs one job at a time."""
    assert prepared(["make", "-j2"], 24, None, {}).note.endswith("write -j without a number to let stoker decide")
    assert prepared(["ninja", "-j2"], 24, None, {}).note.endswith("leave it out to let stoker decide")


def test_a_number_in_makeflags_stays_whatever_level_is_wished() -> None:
    result = prepared(["make", "all"], 24, 9, {"MAKEFLAGS": "-j4"})
    assert result.words == ("make", "all")
    assert "MAKEFLAGS" in result.note


def test_make_without_j_stays_serial_unless_a_person_gives_stoker_a_number() -> None:
    assert prepared(["make"], 24, None, {}).words == ("make",)
    assert "make -j" in prepared(["make"], 24, None, {}).note
    assert prepared(["make", "all"], 24, 8, {}).words == ("make", "all", "-j24")


def test_make_that_stays_serial_is_told_of_no_jobserver_and_keeps_a_persons_own_flags() -> None:
    """From 4.4 on it would take slots and become parallel."""
    assert prepared(["make"], 24, None, {}).environment == {"MAKEFLAGS": ""}
    assert prepared(["make"], 24, None, {"MAKEFLAGS": "-j4"}).environment == {}
    assert prepared(["make"], 24, 8, {}).environment == {}


def test_what_starts_schedulers_itself_is_told_by_the_environment() -> None:
    result = prepared(["pip", "install", "."], 24, None, {})
    assert result.words == ("pip", "install", ".")
    assert result.environment == {"MAX_JOBS": "24", "CMAKE_BUILD_PARALLEL_LEVEL": "24", "NINJAFLAGS": "-j24"}


def test_a_persons_own_variables_stay_and_they_are_told() -> None:
    result = prepared(["pip", "install", "."], 24, None, {"MAX_JOBS": "4"})
    assert result.environment == {"CMAKE_BUILD_PARALLEL_LEVEL": "4", "NINJAFLAGS": "-j4"}, "also under other names"
    assert "MAX_JOBS=4" in result.note


@pytest.mark.parametrize(
    ("environ", "added"),
    [
        ({}, {"CARGO_BUILD_JOBS": "3", "GOFLAGS": "-p=3"}),
        ({"CARGO_BUILD_JOBS": "2", "GOFLAGS": "-mod=vendor"}, {"GOFLAGS": "-mod=vendor -p=3"}),
        ({"GOFLAGS": "-p=1 -x"}, {"CARGO_BUILD_JOBS": "3"}),
        ({"GOFLAGS": "-pkgdir=x"}, {"CARGO_BUILD_JOBS": "3", "GOFLAGS": "-pkgdir=x -p=3"}),
    ],
)
def test_tools_that_run_their_jobs_themselves_get_a_persons_number(
    environ: dict[str, str], added: dict[str, str]
) -> None:
    result = prepared(["cargo", "build"], 24, 3, environ).environment
    assert {name: value for name, value in result.items() if name in ("CARGO_BUILD_JOBS", "GOFLAGS")} == added
    assert not {"CARGO_BUILD_JOBS", "GOFLAGS"} & prepared(["cargo", "build"], 24, None, environ).environment.keys()


def test_meson_hands_the_window_to_its_ninja_unless_a_person_gave_a_number() -> None:
    assert prepared(["meson", "compile", "-C", "b"], 24, None, {}).words[-1] == "-j24"
    assert prepared(["meson", "compile", "-j2"], 24, None, {}).words == ("meson", "compile", "-j2")
    assert prepared(["meson", "setup", "b"], 24, None, {}).words == ("meson", "setup", "b")


def test_the_window_grows_with_the_cores_and_never_holds_more_than_memory_and_descriptors_allow() -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, files[1]), files[1]))
        assert window_for(2, 64 * GIB, None) == 64
        assert window_for(32, 64 * GIB, None) == 256
        assert window_for(128, 512 * GIB, None) == 512
        assert window_for(32, 2 * GIB, None) == 64
        assert window_for(2, 64 * GIB, 40) == 320
        assert window_for(4, GIB // 16, None) == 4
        assert window_for(2, 64 * GIB, None, elsewhere=200) == 264
        assert window_for(2, 2 * GIB, None, elsewhere=200) == 64, "each job that waits may hold a little"
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, files[1]))
        assert window_for(32, 64 * GIB, None) == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)


@pytest.mark.parametrize(("limit", "most"), [(216, 50), (100, 21), (10, 8)])
def test_the_window_holds_no_more_than_a_user_may_have_processes(limit: int, most: int) -> None:
    """The limit does not bind root, so root's test runs as somebody who has nothing else."""
    script = (
        "import os, resource; from stoker.launch.window import window_for; "
        f"before = window_for(32, {64 * GIB}, None); os.getuid() or os.setuid(61234); "
        f"resource.setrlimit(resource.RLIMIT_NPROC, ({limit}, {limit})); print(before, window_for(8, {64 * GIB}, None))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    before, window = map(int, done.stdout.split())
    assert before > most, "as root, who is not bound" if os.getuid() == 0 else "without the limit"
    assert 8 <= window <= most
    assert os.getuid() != 0 or window >= most - 1
