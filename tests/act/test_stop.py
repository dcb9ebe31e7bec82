"""Who is signalled when a build is stopped from outside: those whom its supervisor named, and nobody by mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.act import stop
from stoker.act.stop import NothingToStopError, continue_build, stop_build
from stoker.config.paths import BuildPaths


@pytest.mark.parametrize(
    "told",
    [
        {"supervisor_pid": -1, "supervisor_start": None, "build_pid": 0, "build_start": None},
        {"supervisor_pid": 2**22 + 1, "supervisor_start": None, "build_pid": None, "build_start": None},
        {"supervisor_pid": "1", "supervisor_start": 1, "build_pid": True, "build_start": 1},
        {"supervisor_pid": int("1" * 401), "supervisor_start": 1},
        {},
        [],
    ],
)
def test_a_damaged_note_of_the_supervisor_gets_nobody_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: object
) -> None:
    signalled: list[object] = []
    monkeypatch.setattr("os.kill", lambda pid, _signum: signalled.append(pid))
    monkeypatch.setattr(stop, "signal_tree", lambda pids, _signum: signalled.extend(pids))
    paths = BuildPaths(tmp_path)
    paths.supervisor.write_text(json.dumps(told))
    with pytest.raises(NothingToStopError):
        stop_build(paths, force=False)
    with pytest.raises(NothingToStopError):
        continue_build(paths)
    assert signalled == []
