"""What the gate must never do, and which builds it must reach: console jobs, births, nested and several schedulers."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.burn import Burn, burns, write_burn_makefile, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.overlap import Overlap
from support.procs import Watch, process
from support.program import NINJAS, PYPI_NINJA, until, write_ninja, write_project

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Grouped]:
    with MemoryGroup(4096 * MIB) as group:
        yield Grouped(tmp_path, group)


def start(stoker: Grouped, level: int, *command: str, cwd: Path | None = None) -> str:
    result = stoker.run("run", "--detach", "-j", str(level), "--", *command, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().strip()


def burning(stoker: Grouped) -> Overlap:
    """How many of the build's burn processes are at work at once."""
    return Overlap(lambda: [p for p in stoker.inside() if p.name in ("burn", "cc1plus")])


def done(folder: Path) -> int:
    return len(list(folder.glob("o[0-9]*")))


# -- what is never stopped -----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("ninja", NINJAS[:1])
def test_a_console_job_is_never_stopped_while_others_are(stoker: Grouped, tmp_path: Path, ninja: str) -> None:
    jobs = [Burn("console", 3.0, console=True), *burns(6, 1.0)]
    build = start(stoker, 2, ninja, "-C", str(write_burns(tmp_path / "p", jobs)))
    console = until(lambda: console_jobs(stoker), "the console job")[0]
    states: set[str] = set()

    def look() -> None:
        now = process(console)
        states.add(now.state if now is not None else "gone")

    with Watch(look):
        until(lambda: len(stoker.going()) > 1, "other jobs")
        assert stoker.run("pause", "--now", build).returncode == 0
        until(lambda: stoker.status(build)["progress"]["frozen"], "frozen jobs")
        until(lambda: {job[0].pid for job in stoker.going()} <= {console}, "nothing else at work")
        until(lambda: "gone" in states, "the console job's end while all others are frozen")
        assert stoker.run("unpause", build).returncode == 0
    assert "T" not in states
    assert stoker.over(build)["progress"]["finished"] == 7


def console_jobs(stoker: Grouped) -> list[int]:
    """Jobs in their scheduler's own process group: those that ninja gives the terminal."""
    groups = {p.pid: p.group for p in stoker.ninjas()}
    return [job[0].pid for job in stoker.jobs() if groups.get(job[0].parent) == job[0].group]


@pytest.mark.long
@pytest.mark.parametrize("ninja", NINJAS)
def test_ninja_never_waits_for_a_newborn_that_was_stopped_too_early(
    stoker: Grouped, tmp_path: Path, ninja: str
) -> None:
    folder = write_burns(tmp_path / "p", burns(300, 0.01))
    waiting: dict[int, float] = {}
    longest = 0.0

    def look() -> None:
        nonlocal longest
        now = time.monotonic()
        held = {p.parent for p in stoker.inside() if p.state == "T"}  # it waits for the disk, too
        stuck = [p.pid for p in stoker.ninjas() if p.state == "D" and p.pid in held]
        for pid in [*waiting]:
            if pid not in stuck:
                del waiting[pid]
        longest = max([longest, *(now - waiting.setdefault(pid, now) for pid in stuck)])

    with Watch(look):
        status = stoker.over(start(stoker, 2, ninja, "-C", str(folder), "-j30"))
    assert (status["state"], done(folder)) == ("done", 300)
    assert longest < 2.0


# -- what is reached -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_ninja_below_a_shell_and_cmake_is_governed(stoker: Grouped, tmp_path: Path) -> None:
    folder = write_project(tmp_path / "p", units=6)
    overlap = burning(stoker)
    with overlap.watch:
        status = stoker.over(start(stoker, 1, "sh", "-c", "cmake --build .", cwd=folder))
    assert (status["state"], status["progress"]["finished"]) == ("done", 9)
    assert (status["level"]["mode"], status["level"]["target"]) == ("manual", 1)
    assert overlap.most <= 1


@pytest.mark.long
@pytest.mark.parametrize("width", ["-j"])
def test_a_make_inside_a_job_of_ninja_shares_the_level(stoker: Grouped, tmp_path: Path, width: str) -> None:
    inner = write_burn_makefile(tmp_path / "inner", burns(6, 1.0))
    outer = write_ninja(tmp_path / "outer", [("ext", f"make {width} -C {inner} && touch ext")])
    write_burns(tmp_path / "beside", burns(4, 1.0))
    with (outer / "build.ninja").open("a") as file:
        file.writelines(f"build o{n}: sh\n  cmd = {tmp_path}/beside/burn o{n} 1.0\n" for n in range(4))
    overlap = burning(stoker)
    with overlap.watch:
        status = stoker.over(start(stoker, 2, "ninja", "-C", str(outer)))
    assert status["state"] == "done", status
    assert (done(inner), done(outer)) == (6, 4)
    assert overlap.most == 2


@pytest.mark.long
def test_two_ninjas_at_once_share_the_level(stoker: Grouped, tmp_path: Path) -> None:
    one, two = (write_burns(tmp_path / name, burns(4, 1.0)) for name in ("one", "two"))
    overlap = burning(stoker)
    with overlap.watch:
        script = f"{PYPI_NINJA} -C {one} & {PYPI_NINJA} -C {two} && wait $!"
        status = stoker.over(start(stoker, 2, "sh", "-c", script))
    assert status["state"] == "done", status
    assert done(one) == done(two) == 4
    assert overlap.most == 2


@pytest.mark.long
def test_a_wide_make_is_governed(stoker: Grouped, tmp_path: Path) -> None:
    folder = write_burn_makefile(tmp_path / "p", burns(5, 0.8))
    overlap = burning(stoker)
    with overlap.watch:
        status = stoker.over(start(stoker, 1, "make", "-j8", "-C", str(folder)))
    assert (status["state"], done(folder)) == ("done", 5)
    assert overlap.most == 1


@pytest.mark.long
@pytest.mark.parametrize("ninja", NINJAS[:1])
def test_a_width_that_the_person_gave_ninja_stays_the_most_that_runs(
    stoker: Grouped, tmp_path: Path, ninja: str
) -> None:
    folder = write_burns(tmp_path / "p", burns(8, 0.8))
    overlap = burning(stoker)
    with overlap.watch:
        build = stoker.detach(ninja, "-C", str(folder), "-j2")
        until(stoker.going, "a job at work")
        assert stoker.run("jobs", build, "6").returncode == 0
        status = stoker.over(build)
    assert (status["state"], done(folder)) == ("done", 8)
    assert overlap.most == 2


BACKEND = """
import pathlib, subprocess, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    subprocess.run(["ninja", "-C", "{folder}"], check=True, capture_output=True)
    name = "slow-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        wheel.writestr("slow.py", "")
        wheel.writestr("slow-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: slow\\nVersion: 1\\n")
        wheel.writestr("slow-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("slow-1.dist-info/RECORD", "")
    return name
"""


@pytest.mark.long
def test_a_ninja_below_pip_is_governed(stoker: Grouped, tmp_path: Path) -> None:
    folder = write_burns(tmp_path / "p", burns(5, 0.8))
    package = tmp_path / "package"
    package.mkdir()
    (package / "backend.py").write_text(BACKEND.format(folder=folder))
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "slow"\nversion = "1"\n'
    )
    pip = (sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(tmp_path / "t"), str(package))
    overlap = burning(stoker)
    with overlap.watch:
        status = stoker.over(start(stoker, 1, *pip))
    assert (status["state"], done(folder)) == ("done", 5), status
    assert overlap.most == 1
    assert (tmp_path / "t" / "slow.py").exists()


@pytest.mark.long
def test_jobs_that_end_while_frozen_others_wait_are_followed_by_the_next(stoker: Grouped, tmp_path: Path) -> None:
    """The level holds through every birth: a wide window of short and long jobs never runs more than two."""
    jobs = [Burn(f"o{n:03}", 0.8 if n % 4 == 0 else 0.05) for n in range(40)]
    folder = write_burns(tmp_path / "p", jobs)
    overlap = burning(stoker)
    with overlap.watch:
        status = stoker.over(start(stoker, 2, "ninja", "-C", str(folder)))
    assert (status["state"], done(folder)) == ("done", 40)
    assert overlap.most == 2
