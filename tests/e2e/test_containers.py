"""Builds in real containers, governed from outside and looked at from both sides."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import stoker as stoker_package
from support.containers import IMAGE, Docker, Podman
from support.program import PATIENCE, Stoker, until, write_ninja

pytestmark = pytest.mark.long

MIB = 2**20


def hungry(mib: int, seconds: float = 1.0) -> str:
    """A command that holds so much memory for so long."""
    return f"perl -e '$n = {mib} << 20; $x = \"x\" x $n; select undef, undef, undef, {seconds}'"


@pytest.fixture
def in_memory() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="stoker-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def docker(stoker: Stoker, in_memory: Path) -> Iterator[Docker]:
    with Docker(in_memory) as engine:
        stoker.env.update(engine.settings)
        yield engine


@pytest.fixture
def podman(stoker: Stoker, in_memory: Path) -> Iterator[Podman]:
    engine = Podman(in_memory)
    stoker.env.update(engine.settings)
    yield engine
    engine("rm", "-a", "-f", "-t", "0")


def test_a_build_in_a_container_is_governed_by_its_limit(podman: Podman, stoker: Stoker, tmp_path: Path) -> None:
    """Names and totals are right, no good job is called failed, and the budget is the container's."""
    folder = write_ninja(tmp_path / "w", [(f"part_{n}.o", f"{hungry(120)} && touch part_{n}.o") for n in range(8)])
    build = stoker.detach(*podman.run_words(folder, "--memory=512m"), "ninja", "-j8", jobs=8)
    state = stoker.ended(build)
    assert state["exit_code"] == 0, (stoker.folder(build) / "output.log").read_text()
    events = stoker.events(build)
    ends = [e for e in events if e["type"] == "job_finished"]
    assert {e["outcome"] for e in ends} == {"ok"}
    assert {e["output"] for e in ends} == {f"part_{n}.o" for n in range(8)}
    assert [e["total"] for e in events if e["type"] == "scheduler_planned"] == [8]
    budgets = {e["machine"]["memory_budget"] for e in events if e["type"] == "sampled"}
    assert 512 * MIB in budgets


def test_a_job_that_the_containers_limit_killed_is_made_again_alone(
    podman: Podman, stoker: Stoker, tmp_path: Path
) -> None:
    """The kernel's count is the container's own, and goes with it: it is read while that lives."""
    waits = "until test -e go; do sleep 0.2; done"
    jobs = [(f"part_{n}.o", f"{waits}; {hungry(300, 2)} && touch part_{n}.o") for n in range(3)]
    folder = write_ninja(tmp_path / "w", jobs)
    build = stoker.detach(*podman.run_words(folder, "--memory=512m"), "ninja", "-j8", jobs=8)
    until(lambda: len(stoker.status(build)["jobs"]) == 3, "three jobs")
    # A person has them all run at once, whatever they hold; else stoker would not let it come to that.
    assert stoker.run("jobs", build, "8", "--ignore-memory").returncode == 0
    until(lambda: all(job["state"] == "running" for job in stoker.status(build)["jobs"]), "all to run")
    (folder / "go").touch()
    state = stoker.ended(build)
    assert state["exit_code"] == 0, (stoker.folder(build) / "output.log").read_text()
    events = stoker.events(build)
    killed = {e["output"] for e in events if e["type"] == "job_killed" and e["by"] == "memory"}
    assert killed
    assert [e for e in events if e["type"] == "step_started"][-1]["attempt"] > 1
    assert sorted(name.name for name in folder.glob("part_*.o")) == [f"part_{n}.o" for n in range(3)]
    failed = {e["output"] for e in events if e["type"] == "job_finished" and e["outcome"] == "failed"}
    assert failed <= killed
    assert not [e for e in events if e["type"] == "work_lost"]


def shares(stoker: Stoker, folder: Path) -> list[str]:
    """Options that put this stoker with its state, and `folder`, into a container at the same places."""
    python, source = Path(sys.executable).resolve(), Path(stoker_package.__file__).resolve().parents[1]
    packages = Path(psutil.__file__).resolve().parents[1]
    places = sorted(map(str, {source, packages, python.parents[1], folder}))
    settings = [f"PYTHONPATH={source}:{packages}", f"XDG_STATE_HOME={stoker.state}", "HOME=/root"]
    return [
        *(word for place in places for word in ("-v", f"{place}:{place}")),
        *(word for setting in settings for word in ("-e", setting)),
    ]


def test_a_build_inside_a_container_is_no_dead_one_from_outside(podman: Podman, tmp_path: Path) -> None:
    """The state folder is shared; each side has pids of its own. Nor does one container see into another."""
    folder = write_ninja(tmp_path / "w", [("slow.o", "until test -e go; do sleep 0.2; done; touch slow.o")])
    outside = Stoker(tmp_path)
    options = shares(outside, tmp_path)

    def inside(*words: str) -> list[str]:
        _, *container = podman.run_words(folder, *options, "--hostname", "builder")
        return [*container, str(Path(sys.executable).resolve()), "-P", "-m", "stoker", *words]

    with subprocess.Popen(["podman", *inside("run", "--plain", "--", "ninja")], env=podman.env) as build:
        try:
            seen = until(lambda: json.loads(outside.run("ls", "--json").stdout or b"[]"), "the build")
            until(lambda: (outside.folder(seen[0]["id"]) / "supervisor.json").exists(), "its supervisor")
            for _ in range(3):
                listed = json.loads(outside.run("ls", "--json").stdout)
                assert [(b["state"] in ("starting", "running"), b["live"]) for b in listed] == [(True, True)]
            assert [b["elsewhere"] for b in listed] == ["builder"]
            shown = outside.run("status")
            assert b"another PID namespace" in shown.stderr
            assert b"podman exec -it builder stoker attach" in shown.stderr
            beside = json.loads(podman(*inside("ls", "--json")).stdout)
            assert [(b["live"], b["elsewhere"]) for b in beside] == [(True, "builder")]
            pruned = podman(*inside("run", "--plain", "--", "true"))
            assert pruned.returncode == 0, pruned.stderr
            assert outside.folder(seen[0]["id"]).is_dir()
        finally:
            (folder / "go").touch()
        assert build.wait(PATIENCE) == 0
    ended = {b["id"]: b["state"] for b in json.loads(outside.run("ls", "--json").stdout)}
    assert ended[seen[0]["id"]] == "done"


DEAF = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
"""The first process of a container ignores SIGTERM unless it says else, and this one says so."""


@pytest.mark.parametrize("command", [DEAF, ("ninja",)])
def test_stop_leaves_no_container_of_podman(
    podman: Podman, stoker: Stoker, tmp_path: Path, command: tuple[str, ...]
) -> None:
    folder = write_ninja(tmp_path / "w", [("slow.o", "sleep 600")])
    build = stoker.detach(*podman.run_words(folder), *command)
    until(lambda: len(podman.names()) == 1, "a container")
    assert stoker.run("stop", build).returncode == 0
    assert podman.names() == []
    assert stoker.status(build)["state"] == "stopped"


def test_stop_leaves_no_container_of_a_script(podman: Podman, stoker: Stoker, tmp_path: Path) -> None:
    """Nobody could give that container a label: its monitor is left to tidy up."""
    folder = write_ninja(tmp_path / "w", [("slow.o", "sleep 600")])
    build = stoker.detach("sh", "-c", f"{shlex.join(podman.run_words(folder))} ninja; true")
    until(lambda: stoker.status(build)["jobs"], "a job")
    assert stoker.run("stop", build).returncode == 0
    assert podman.names() == []


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_stop_ends_what_docker_runs(docker: Docker, stoker: Stoker, tmp_path: Path, force: tuple[str, ...]) -> None:
    """Docker's daemon is its parent: the client's death does not concern it."""
    folder = write_ninja(tmp_path / "w", [("slow.o", "sleep 600")])
    build = stoker.detach(*docker.run_words(folder), *DEAF)
    until(lambda: len(docker.names()) == 1, "a container")
    assert stoker.run("stop", *force, build).returncode == 0
    assert docker.names() == []


def test_jobs_below_docker_are_seen_and_governed(docker: Docker, stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "w", [(f"part_{n}.o", f"{hungry(60)} && touch part_{n}.o") for n in range(6)])
    build = stoker.detach(*docker.run_words(folder, "--memory=512m"), "ninja", "-j6", jobs=2)
    state = stoker.ended(build)
    assert state["exit_code"] == 0, (stoker.folder(build) / "output.log").read_text()
    events = stoker.events(build)
    ends = [e for e in events if e["type"] == "job_finished"]
    assert {(e["output"], e["outcome"]) for e in ends} == {(f"part_{n}.o", "ok") for n in range(6)}
    assert 512 * MIB in {e["machine"]["memory_budget"] for e in events if e["type"] == "sampled"}
    assert max(len(e["jobs"]) for e in events if e["type"] == "sampled") == 2


WHEEL = """
import base64, hashlib, pathlib, zipfile
tag = "py3-none-linux_x86_64"
members = {
    "native/__init__.py": b"import ctypes, pathlib\\n"
    b"answer = ctypes.CDLL(str(pathlib.Path(__file__).with_name('lib.so'))).answer\\n",
    "native/lib.so": pathlib.Path("lib.so").read_bytes(),
    "native-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\\nName: native\\nVersion: 1.0\\n\\n",
    "native-1.0.dist-info/WHEEL": f"Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: {tag}\\n".encode(),
}
digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
record = [f"{name},sha256={digest(data)},{len(data)}" for name, data in members.items()]
members["native-1.0.dist-info/RECORD"] = "\\n".join([*record, "native-1.0.dist-info/RECORD,,", ""]).encode()
pathlib.Path("dist").mkdir(exist_ok=True)
with zipfile.ZipFile(f"dist/native-1.0-{tag}.whl", "w") as wheel:
    for name, data in members.items():
        wheel.writestr(name, data)
"""

ROAD = f"""
container:
  image: {IMAGE}
  memory: 512 MiB
  tmpfs: ["/tmp:size=64m,exec"]
  volumes: ["/usr:/usr:ro"]
  options: [--network=none]
steps:
  compile: {{command: ninja}}
  wheel: {{command: /usr/bin/python3 wheel.py}}
  package: {{package: {{wheel: dist/native-*.whl, mode: pypi}}}}
"""


def test_from_source_in_a_container_to_a_wheel_that_imports_elsewhere(
    podman: Podman, stoker: Stoker, tmp_path: Path
) -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("the container's /usr has no python3")
    folder = tmp_path / "source"
    write_ninja(folder, [("lib.so", "sleep 1; g++ -shared -fPIC -o lib.so lib.cpp")])
    (folder / "lib.cpp").write_text('extern "C" int answer() { return 42; }\n')
    (folder / "wheel.py").write_text(WHEEL)
    (folder / "road.yaml").write_text(ROAD)
    made = stoker.run("run", "-p", "./road.yaml", "--plain", cwd=folder)
    assert made.returncode == 0, made.stdout + made.stderr
    (wheel,) = (folder / "wheelhouse").glob("native-1.0-*manylinux*.whl")
    fresh = tmp_path / "elsewhere"
    python = fresh / "bin" / "python"
    for words in (
        [sys.executable, "-m", "venv", str(fresh)],
        [str(python), "-m", "pip", "install", "-q", "--no-index", str(wheel)],
    ):
        subprocess.run(words, check=True)
    check = [str(python), "-c", "import native; print(native.answer())"]
    assert subprocess.run(check, env={}, cwd="/", check=True, capture_output=True).stdout == b"42\n"
    events = stoker.events(json.loads(stoker.run("ls", "--json").stdout)[0]["id"])
    assert [e["output"] for e in events if e["type"] == "job_finished" and e["outcome"] == "ok"] == ["lib.so"]


def test_the_doctor_starts_the_container_first(podman: Podman, stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "road.yaml").write_text(ROAD)
    words = ("doctor", "--json", "-p", "./road.yaml")
    checks = {check["name"]: check for check in json.loads(stoker.run(*words, cwd=tmp_path).stdout)["checks"]}
    assert checks["container (podman)"]["status"] == "ok", checks
    (tmp_path / "road.yaml").write_text(ROAD.replace("stoker-test", "not-there"))
    checks = {check["name"]: check for check in json.loads(stoker.run(*words, cwd=tmp_path).stdout)["checks"]}
    assert checks["container (podman)"]["remedy"] == f"podman pull {IMAGE.replace('stoker-test', 'not-there')}"


def test_a_build_inside_a_container_is_shown_and_stopped_from_outside(
    podman: Podman, stoker: Stoker, tmp_path: Path
) -> None:
    folder = write_ninja(tmp_path / "w", [("slow.o", "sleep 600")])
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "stoker"
    program.write_text(f'#!/bin/sh\nexec {Path(sys.executable).resolve()} -P -m stoker "$@"\n')
    program.chmod(0o755)
    words = podman.run_words(folder, *shares(stoker, tmp_path), "--name", "builder")
    words[words.index("-w") : words.index("-w")] = ["-e", f"PATH={program.parent}:/usr/bin:/bin"]
    absent = stoker.run("attach", "podman://builder")
    assert (absent.returncode, absent.stderr.count(b"\n")) == (1, 1)
    assert b"there is no container 'builder'" in absent.stderr
    with subprocess.Popen([*words, "stoker", "run", "--plain", "--", "ninja"], env=podman.env) as build:
        seen = until(lambda: json.loads(stoker.run("ls", "--json").stdout or b"[]"), "the build")[0]["id"]
        until(lambda: (stoker.folder(seen) / "supervisor.json").exists(), "its supervisor")
        status = stoker.start("attach", "--json", f"podman://builder/{seen}")
        assert status.stdout is not None
        assert json.loads(status.stdout.readline())["id"] == seen
        assert stoker.run("stop", seen).returncode == 0
        assert build.wait(PATIENCE) != 0
    assert json.loads(stoker.run("ls", "--json").stdout)[0]["state"] == "stopped"
