"""A dry run in a container: with the container's rights, and with nothing of the host's in its hands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import stoker
from support.containers import IMAGE, Podman
from support.somebody import as_somebody

ENTER = """
import os, sys
from pathlib import Path
from stoker.sense.ninja.inside import enter
kept = open(sys.argv[2], "w")
scratch = enter(int(sys.argv[1]))
(scratch / "note").write_text("mine")
kept.write("written from inside")
kept.flush()
script = f"cat /proc/self/status; echo; ls -l /proc/self/fd; ls {scratch}; ls /; cat /proc/1/comm"
os.execve("/bin/sh", ["sh", "-c", script], {})
"""


@pytest.fixture
def podman() -> Iterator[Podman]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="stoker-", dir=memory if memory.is_dir() else None) as folder:
        engine = Podman(Path(folder))
        yield engine
        engine("rm", "-a", "-f", "-t", "0")


def field(status: str, name: str) -> str:
    match = re.search(rf"^{name}:\s*(.*)$", status, re.MULTILINE)
    assert match is not None, name
    return match[1].strip()


@pytest.mark.long
@pytest.mark.parametrize("user", ["0:0", "1234:1234"])
def test_what_is_executed_inside_has_the_containers_rights_and_no_file_of_ours(
    podman: Podman, tmp_path: Path, user: str
) -> None:
    words = ["run", "-d", "--name", "inner", "--user", user, "-v", "/usr:/usr:ro", IMAGE, "sleep", "600"]
    made = podman(*words)
    assert made.returncode == 0, made.stderr
    pid = podman("inspect", "-f", "{{.State.Pid}}", "inner").stdout.decode().strip()
    theirs = Path(f"/proc/{pid}/status").read_text()
    kept = tmp_path / "kept"
    entered = subprocess.run(
        [sys.executable, "-P", "-c", ENTER, pid, str(kept)],
        env={**os.environ, "SECRET": "of the host"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert entered.returncode == 0, entered.stderr
    said = entered.stdout
    for name in ("Uid", "Gid", "CapBnd", "CapEff"):
        assert field(said, name) == field(theirs, name), name
    assert field(said, "NoNewPrivs") == "1"
    assert str(tmp_path) not in said
    assert "note" in said.split()
    assert "w" in said.split(), "the root is the container's"
    assert said.rstrip().endswith("sleep"), "and so are the processes"
    assert kept.read_text() == "written from inside"
    assert "note" not in podman("exec", "inner", "ls", "/sys").stdout.decode().split()


ROOTLESS = """
import subprocess, sys, time
import psutil
from stoker.sense.proc.containers import root_of
words = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--kill-child", "--mount-proc", "sleep", "60")
with subprocess.Popen(words) as outer:
    try:
        while outer.poll() is None:
            children = psutil.Process(outer.pid).children()
            if children and children[0].name() == "sleep":
                break
            time.sleep(0.05)
        else:
            sys.exit("no user namespace")
        inner = children[0].pid
        print(root_of(inner) == f"/proc/{inner}/root", flush=True)
        subprocess.run([sys.executable, "-P", "-c", sys.argv[1], str(inner), "/dev/null"], check=True)
    finally:
        outer.kill()
"""


def test_a_normal_user_gets_into_a_user_namespace_of_their_own(tmp_path: Path) -> None:
    """As rootless podman has one: root in there, nobody outside."""
    source = Path(stoker.__file__).resolve().parents[1]
    needed = [source, Path(sys.base_prefix), Path(sys.prefix), Path(psutil.__file__).resolve().parents[1]]
    words = [*(as_somebody(needed) if os.getuid() == 0 else []), sys.executable, "-P", "-c", ROOTLESS, ENTER]
    env = {**os.environ, "PYTHONPATH": f"{source}:{needed[-1]}"}
    done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    if "no user namespace" in done.stderr:
        pytest.skip("this kernel gives user namespaces to root alone")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True\n")
    assert field(done.stdout, "Uid").split()[0] == "0"
    assert field(done.stdout, "NoNewPrivs") == "1"
    assert "note" in done.stdout.split()
    assert done.stdout.rstrip().endswith("sleep")
