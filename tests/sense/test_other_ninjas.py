"""Who else builds in a folder, with real processes that are called ninja."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from stoker.sense.proc.other_ninjas import other_ninja


def test_a_child_that_our_own_ninja_has_just_forked_is_no_other(tmp_path: Path) -> None:
    ninja = shutil.copy("/bin/bash", tmp_path / "ninja")
    words = [ninja, "-c", "(echo forked; read -r x); exit"]
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"forked\n"
        assert other_ninja(str(tmp_path), {ours.pid}) is None
        other = other_ninja(str(tmp_path), set())
        assert other is not None
        assert other.pid == ours.pid
        ours.communicate(b"\n")
