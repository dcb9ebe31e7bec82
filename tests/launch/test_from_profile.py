"""A profile becomes the steps of a build: widths, limits, compiler caches, and whose environment counts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stoker.launch import from_profile
from stoker.launch.from_profile import plan_of, profile_build
from stoker.launch.refusals import RequestError
from stoker.launch.request import BuildRequest

PATH = "/usr/bin:/bin"
LAUNCHERS = {f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX", "CUDA")}


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    return folder


def made(folder: Path, name: str = "mine", settings: tuple[tuple[str, str], ...] = (), **environ: str) -> BuildRequest:
    """What would run in `folder`, with a window of 16."""
    plan = plan_of(name, dict(settings), (), str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_profile, "window_of", lambda *_: 16)
        return profile_build(plan, str(folder), "b", None, None, {"PATH": PATH, **environ})


def tool(folder: Path, name: str) -> str:
    """A PATH on which there is a command of this name."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / name).write_text("#!/bin/sh\n")
    (folder / "bin" / name).chmod(0o755)
    return f"{folder / 'bin'}:{PATH}"


def test_schedulers_get_their_width_and_what_was_written_is_shown(own: Path, tmp_path: Path) -> None:
    (own / "mine.yaml").write_text("steps:\n  a: {command: make -j all}\n  b: {command: sh -c true, cwd: sub}\n")
    request = made(tmp_path)
    first, second = request.spec.steps
    assert first.command == ("make", "-j", "all", "-j16")
    assert first.words == ("make", "-j", "all")
    assert second.environment == {"CMAKE_BUILD_PARALLEL_LEVEL": "16", "MAX_JOBS": "16", "NINJAFLAGS": "-j16"}
    assert second.cwd == str(tmp_path / "sub")
    assert request.spec.words == ("stoker", "run", "-p", "mine")


@pytest.mark.parametrize(("profile", "step", "level"), [("8", "2", 2), ("2", "8", 2), ("", "3", 3), ("", "", None)])
def test_the_smaller_limit_counts(own: Path, tmp_path: Path, profile: str, step: str, level: int | None) -> None:
    (own / "mine.yaml").write_text(f"level: '{profile}'\nsteps: {{a: {{command: sh, level: '{step}'}}}}\n")
    assert made(tmp_path).spec.steps[0].level == level


@pytest.mark.parametrize(
    ("cache", "there", "launcher"),
    [
        ("none", "ccache", ""),
        ("auto", "ccache", "ccache"),
        ("auto", "sccache", "sccache"),
        ("auto", "", ""),
        ("sccache", "sccache", "sccache"),
    ],
)
def test_a_compiler_cache_reaches_cmake(own: Path, tmp_path: Path, cache: str, there: str, launcher: str) -> None:
    (own / "mine.yaml").write_text(f"cache: {cache}\nsteps: {{a: {{command: /bin/sh}}}}\n")
    request = made(tmp_path, PATH=tool(tmp_path, there).removesuffix(f":{PATH}") if there else str(tmp_path))
    assert request.environment == (dict.fromkeys(LAUNCHERS, launcher) if launcher else {})


def test_a_cache_that_is_missing_is_told_and_a_launcher_of_ones_own_stays(own: Path, tmp_path: Path) -> None:
    (own / "mine.yaml").write_text("cache: ccache\nsteps: {a: {command: /bin/sh}}\n")
    assert "ccache is not on PATH: nothing is cached" in made(tmp_path, PATH=str(tmp_path)).spec.note
    request = made(tmp_path, PATH=tool(tmp_path, "ccache"), CMAKE_CXX_COMPILER_LAUNCHER="mine")
    assert set(request.environment) == LAUNCHERS - {"CMAKE_CXX_COMPILER_LAUNCHER"}


@pytest.mark.parametrize(
    ("settings", "environ", "value", "told"),
    [
        ((), {}, "8.0", False),
        ((), {"ARCHS": "9.0"}, None, True),
        ((("arch", "8.6"),), {"ARCHS": "9.0"}, "8.6", False),
        ((("arch", ""),), {}, None, False),
        ((("other", "x"),), {"ARCHS": "9.0"}, None, True),
    ],
)
def test_a_persons_environment_stays_unless_they_set_it_here(
    own: Path, tmp_path: Path, settings: Any, environ: dict[str, str], value: str | None, told: bool
) -> None:
    (own / "mine.yaml").write_text(
        "variables: {arch: '8.0', other: y}\nenv: {ARCHS: '${arch}'}\nsteps: {a: {command: sh}}\n"
    )
    request = made(tmp_path, settings=settings, **environ)
    assert request.environment.get("ARCHS") == value
    assert ("ARCHS=9.0 is yours and stays" in request.spec.note) is told


def test_what_is_left_out_is_told_and_a_profile_without_steps_here_is_refused(own: Path, tmp_path: Path) -> None:
    (own / "mine.yaml").write_text(
        "steps:\n  a: {command: sh, when: {file: gone}}\n  b: {command: sh, when: {no_file: here}}\n"
    )
    request = made(tmp_path)
    assert [step.name for step in request.spec.steps] == ["b"]
    assert "step a is left out: there is no gone" in request.spec.note
    (tmp_path / "here").touch()
    with pytest.raises(RequestError, match="no step of profile 'mine' takes part in this folder"):
        made(tmp_path)


def test_a_file_anywhere_can_be_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.yaml").write_text("verify: [out/*.so]\nsteps: {a: {command: sh}}\n")
    request = made(tmp_path, "./here.yaml")
    assert request.spec.profile is not None
    assert (request.spec.profile.name, request.spec.profile.path) == ("here", str(tmp_path / "here.yaml"))
    assert request.spec.verify == ("out/*.so",)


CONTAINER = """
env: {FLAG: one}
container:
  engine: docker
  image: img:1
  memory: 55 GiB
  tmpfs: ["/tmp:size=32g,exec"]
  gpus: all
  volumes: ["/data:/data:ro"]
  user: "1000"
  env: {HERE: inside}
  options: [--network=none]
steps:
  build: {command: ninja -C build, env: {STEP: two}, cwd: sub}
  wheel: {package: {wheel: dist/*.whl}}
"""


def test_a_profile_with_a_container_runs_its_commands_there(own: Path, tmp_path: Path) -> None:
    """As people write it by hand; the folder is at the same place, and packaging is stoker's own work, outside."""
    (own / "mine.yaml").write_text(CONTAINER)
    build, package = made(tmp_path, PATH=tool(tmp_path, "docker")).spec.steps
    words = list(build.command)
    assert words[:2] == ["docker", "run"]
    assert words[words.index("img:1") :] == ["img:1", "ninja", "-C", "build", "-j16"]
    pairs = {f"{a} {b}" for a, b in pairwise(words)}
    assert {
        f"-v {tmp_path}:{tmp_path}",
        f"-w {tmp_path / 'sub'}",
        "--gpus all",
        "--tmpfs /tmp:size=32g,exec",
        "-v /data:/data:ro",
        "--user 1000",
        "-e FLAG",
        "-e STEP",
        "-e HERE=inside",
    } <= pairs
    assert {"--rm", "--ipc=host", f"--memory={55 << 30}", "--network=none"} <= set(words)
    assert build.words == ("ninja", "-C", "build")
    assert build.environment["STEP"] == "two"
    assert "docker" not in package.command


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        ("container: {image: --privileged}", "cannot begin with '-'"),
        ("container: {image: i, engine: lxc}", "engine"),
        ("container: {image: i, env: {'a b': x}}", "environment variable"),
        ("container: {image: i}\ntmp: {kind: tmpfs}", "does not reach into the container"),
    ],
)
def test_a_container_with_a_fault_is_refused(own: Path, tmp_path: Path, faulty: str, said: str) -> None:
    (own / "mine.yaml").write_text(f"{faulty}\nsteps: {{a: {{command: 'true'}}}}\n")
    with pytest.raises(RequestError, match=said):
        made(tmp_path)
