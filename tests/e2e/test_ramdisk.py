"""Temporary files in memory: real compilers write them there, all of it goes in the end; and what went to disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker.act import ramdisk
from stoker.contract.process import start_ticks
from stoker.sense.machine.tmpfs_use import is_in_memory
from support.grouped import LONG, Grouped
from support.memory_group import MemoryGroup, NoMemoryGroupError
from support.program import PYPI_NINJA, UNIT, Stoker, kill_supervisors, until, write_ninja

MIB = 2**20

pytestmark = pytest.mark.skipif(
    not os.access("/dev/shm", os.W_OK) or not is_in_memory("/dev/shm"), reason="no tmpfs to write to"
)


@pytest.fixture
def profile(stoker: Stoker, tmp_path: Path) -> Path:
    """The person's own profile `ram`, to be written."""
    stoker.env.pop("TMPDIR", None)
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    return folder / "ram.yaml"


def start(stoker: Stoker, folder: Path, *more: str) -> str:
    result = stoker.run("run", "--detach", "-p", "ram", *more, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().strip()


def folder_of(stoker: Stoker, build: str) -> Path:
    """The build's folder in memory."""
    return Path(until(lambda: (stoker.status(build).get("ramdisk") or {}).get("path"), "a RAM disk")).parent


def notices(stoker: Stoker, build: str) -> list[dict[str, Any]]:
    return [e for e in stoker.events(build) if e["type"] == "noticed"]


def slow_assembler(folder: Path) -> Path:
    """What g++ -B finds before the real one: while it waits for `go`, its source is there to be measured."""
    folder.mkdir()
    waits = f"until [ -e {folder}/go ]; do sleep 0.2; done"
    (folder / "as").write_text(f'#!/bin/sh\n{waits}\nexec {shutil.which("as")} "$@"\n')
    (folder / "as").chmod(0o700)
    return folder


@pytest.mark.long
def test_gccs_temporaries_are_in_memory_and_not_on_disk(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    (tmp_path / "u.cpp").write_text(UNIT.format(n=1))
    compile_it = f"g++ -O0 -B {slow_assembler(tmp_path / 'bin')} -c ../u.cpp -o u.o && df $TMPDIR >seen"
    write_ninja(tmp_path / "build", [("u.o", compile_it)])
    profile.write_text(f"tmp: {{kind: tmpfs, size: 256M}}\nsteps: {{build: {{command: {PYPI_NINJA} -C build}}}}\n")
    build = start(stoker, tmp_path)
    folder = folder_of(stoker, build)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    until(lambda: stoker.status(build)["ramdisk"]["peak"] > 64 * 1024, "a measurement")
    (tmp_path / "bin" / "go").touch()
    status = stoker.ended(build)
    assert status["state"] == "done", status
    assert not folder.exists()
    assert status["ramdisk"]["size"] == 256 * MIB
    assert status["ramdisk"]["peak"] > 64 * 1024
    made = sum(f.stat().st_size for f in (tmp_path / "build").iterdir())
    assert made <= status["disk"]["written"] < made + MIB // 2
    assert "/dev/shm" in (tmp_path / "build" / "seen").read_text()
    [note] = [n for n in notices(stoker, build) if "in memory" in n["text"]]
    told = stoker.run("status", build).stdout.decode()
    assert "  RAM disk  at most " in told
    assert " to disk\n" in told
    assert note["severity"] == "info"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.long
def test_nvccs_temporaries_are_in_memory(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("#include <cstdio>\n__global__ void k(float* a) { a[threadIdx.x] *= 2; }\n")
    command = "nvcc -arch=sm_80 --dryrun -c k.cu -o k.o 2>dry; nvcc -arch=sm_80 -c k.cu -o k.o"
    profile.write_text(f"tmp: {{kind: tmpfs, size: 256M}}\nsteps: {{build: {{command: [sh, -c, '{command}']}}}}\n")
    build = start(stoker, tmp_path)
    folder = folder_of(stoker, build)
    status = stoker.ended(build)
    assert status["state"] == "done", status
    assert f"{folder}/tmp/tmpxft_" in (tmp_path / "dry").read_text()
    assert status["ramdisk"]["peak"] > MIB // 4
    assert not folder.exists()


WAITS = "command: [sh, -c, 'cp /bin/true $$TMPDIR/x; touch here; until [ -e go ]; do sleep 0.2; done; {end}']"


def waiting(stoker: Stoker, profile: Path, tmp_path: Path, end: str = "true") -> tuple[str, Path]:
    """A build that has put a file into its folder in memory and waits."""
    profile.write_text(f"tmp: {{kind: tmpfs, size: 16M}}\nsteps: {{one: {{{WAITS.format(end=end)}}}}}\n")
    (tmp_path / "here").unlink(missing_ok=True)
    build = start(stoker, tmp_path)
    until((tmp_path / "here").exists, "the build's start")
    folder = folder_of(stoker, build)
    assert (folder / "tmp" / "x").exists()
    return build, folder


@pytest.mark.long
def test_the_folder_goes_when_the_build_fails_and_is_made_anew_by_resume(
    stoker: Stoker, profile: Path, tmp_path: Path
) -> None:
    build, folder = waiting(stoker, profile, tmp_path, "exit 3")
    (tmp_path / "go").touch()
    assert stoker.ended(build)["state"] == "failed"
    assert not folder.exists()
    (tmp_path / "go").unlink()
    (tmp_path / "here").unlink()
    resumed = start(stoker, tmp_path, "--resume")
    until((tmp_path / "here").exists, "the build's start")
    other = folder_of(stoker, resumed)
    assert other != folder
    assert (other / "tmp" / "x").exists()
    (tmp_path / "go").touch()
    stoker.ended(resumed)
    assert not other.exists()


@pytest.mark.long
def test_the_folder_goes_when_the_build_is_stopped(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    build, folder = waiting(stoker, profile, tmp_path)
    assert stoker.run("stop", build).returncode == 0
    assert stoker.ended(build)["state"] == "stopped"
    assert not folder.exists()


def test_without_its_supervisor_the_engine_removes_it(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    build, folder = waiting(stoker, profile, tmp_path)
    kill_supervisors(stoker.supervisor(build))
    until(lambda: any("supervisor was killed" in n["text"] for n in notices(stoker, build)), "a word of it")
    assert (folder / "tmp" / "x").exists()
    (tmp_path / "go").touch()
    stoker.ended(build)
    assert not folder.exists()


def test_when_everything_is_killed_the_next_build_sweeps(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    build, folder = waiting(stoker, profile, tmp_path)
    supervisor, engine = stoker.supervisor(build), stoker.engine_pid(build)
    stoker.kill_supervisors_and_engine(build)
    os.kill(supervisor["build_pid"], signal.SIGKILL)
    until(
        lambda: not any(start_ticks(p) for p in (supervisor["supervisor_pid"], engine, supervisor["build_pid"])),
        "their end",
    )
    until(lambda: not ramdisk.users(str(folder)), "the end of its last process")
    # It lies there until any build of this user begins: another test's may have begun by now.
    stoker.run("run", "--detach", "--", "true")
    assert not folder.exists()


@pytest.mark.long
def test_a_daemon_that_the_build_leaves_behind_keeps_its_folder(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    """As sccache's server does, which would fail all that it is asked for without its TMPDIR."""
    (tmp_path / "daemon.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    start_it = f"setsid {sys.executable} daemon.py >daemon 2>&1 & until [ -s daemon ]; do sleep 0.2; done"
    command = f"['sh', '-c', '{start_it}']"
    profile.write_text(f"tmp: {{kind: tmpfs, size: 16M}}\nsteps: {{one: {{command: {command}}}}}\n")
    build = start(stoker, tmp_path)
    status = stoker.ended(build)
    pid = int((tmp_path / "daemon").read_text())
    try:
        assert status["state"] == "done"
        folder = Path(status["ramdisk"]["path"]).parent
        assert (folder / "tmp").is_dir()
        assert any(f"(process {pid}) still runs with its TMPDIR there" in n["text"] for n in notices(stoker, build))
        stoker.run("run", "--detach", "--", "true")
        assert (folder / "tmp").is_dir()
    finally:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not start_ticks(pid), "its end")
    stoker.run("run", "--detach", "--", "true")
    assert not folder.exists()


def test_a_step_that_runs_again_finds_no_temporaries_of_killed_compilers(
    stoker: Stoker, profile: Path, tmp_path: Path
) -> None:
    wait = "until [ -e go ]; do sleep 0.2; done"
    once = f"[ -e killed ] || {{ cp /bin/true $TMPDIR/left; touch killed; {wait}; kill -9 $$; }}; ls $TMPDIR >out"
    write_ninja(tmp_path / "build", [("out", once)])
    profile.write_text(f"tmp: {{kind: tmpfs, size: 16M}}\nsteps: {{build: {{command: {PYPI_NINJA} -C build}}}}\n")
    build = start(stoker, tmp_path)
    until(lambda: "job_started" in [e["type"] for e in stoker.events(build)], "the job")
    until((tmp_path / "build" / "killed").exists, "its file")
    (tmp_path / "build" / "go").touch()
    status = stoker.ended(build)
    assert (status["state"], status["step"]["attempt"]) == ("done", 2)
    assert (tmp_path / "build" / "out").read_text() == ""


def test_where_no_tmpfs_has_room_the_build_goes_on_and_says_why(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    profile.write_text(
        "tmp: {kind: tmpfs, size: 999T}\nsteps: {one: {command: [sh, -c, 'echo ${TMPDIR-unset} >out']}}\n".replace(
            "${TMPDIR", "$${TMPDIR"
        )
    )
    result = stoker.run("run", "--plain", "-p", "ram", cwd=tmp_path)
    assert result.returncode == 0
    assert (tmp_path / "out").read_text() == "unset\n"
    assert "warning: no RAM disk of 999 TiB" in result.stderr.decode()
    build = stoker.run("ls", "--json").stdout
    assert b"done" in build
    assert stoker.status()["ramdisk"] is None


@pytest.mark.long
def test_what_a_build_of_two_steps_wrote_is_told_at_its_end(stoker: Stoker, profile: Path, tmp_path: Path) -> None:
    kept, gone = 24 * MIB, 40 * MIB
    profile.write_text(
        f"steps:\n  one: {{command: [sh, -c, 'head -c {kept} /dev/zero >a']}}\n"
        f"  two: {{command: [sh, -c, 'head -c {gone} /dev/zero >b; rm b; head -c {kept} /dev/zero >c']}}\n"
    )
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(tmp_path)], capture_output=True, check=True).stdout
    if kind.strip() == b"tmpfs":
        pytest.skip("needs a disk")
    build = start(stoker, tmp_path)
    written = stoker.ended(build)["disk"]["written"]
    assert 2 * kept <= written < 2 * kept + 2 * MIB


FILLS = """
import os, sys, time
held = bytearray(40 << 20)
name = f"{os.environ['TMPDIR']}/t{os.getpid()}"
with open(name, "wb") as file:
    for _ in range(60):
        file.write(bytes(1 << 20))
        file.flush()
        time.sleep(0.03)
time.sleep(1.5)
os.unlink(name)
"""
"""A job of 40 MiB that fills 60 MiB of its TMPDIR."""


@pytest.mark.long
@pytest.mark.timeout(3 * LONG)
def test_what_dies_of_its_files_in_memory_under_plain_ninja_gets_through(tmp_path: Path) -> None:
    """Six such jobs at once, in a real control group that five of them fill."""
    (tmp_path / "job.py").write_text(FILLS)
    edges = [(f"o{n}", f"{sys.executable} -I -S {tmp_path}/job.py && touch o{n}") for n in range(10)]
    plain, governed = write_ninja(tmp_path / "plain", edges), write_ninja(tmp_path / "governed", edges)
    folder = ramdisk.make("/dev/shm", str(tmp_path))
    try:
        with MemoryGroup(520 * MIB) as group:
            command = group.wrap([PYPI_NINJA, "-C", str(plain), "-j6", "-k0"])
            env = {**os.environ, "TMPDIR": ramdisk.tmpdir(folder)}
            assert subprocess.run(command, env=env, check=False, capture_output=True).returncode != 0
            assert group.kills > 0
    except NoMemoryGroupError as err:
        pytest.skip(str(err))
    finally:
        ramdisk.remove(folder)
    with MemoryGroup(520 * MIB) as group:
        stoker = Grouped(tmp_path, group)
        stoker.env.pop("TMPDIR", None)
        profile = tmp_path / "config" / "stoker" / "profiles" / "ram.yaml"
        profile.parent.mkdir(parents=True)
        command = [PYPI_NINJA, "-C", str(governed)]
        profile.write_text(f"tmp: {{kind: tmpfs, size: 360M}}\nsteps: {{build: {{command: {command}}}}}\n")
        try:
            status = stoker.over(start(stoker, tmp_path, "-j", "6"))
            assert (status["state"], status["step"]["attempt"], group.kills) == ("done", 1, 0)
            assert status["ramdisk"]["peak"] >= 60 * MIB
            decided = [e["why"] for e in stoker.events(status["id"]) if e["type"] == "decided"]
            assert any("for the RAM disk" in why for why in decided)
        finally:
            shutil.rmtree(stoker.runtime, ignore_errors=True)
