"""A dry run in a container: with the container's rights, and with nothing of the host's in its hands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.containers import IMAGE, Podman

pytestmark = pytest.mark.long

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
