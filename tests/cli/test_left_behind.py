"""What a person is told who leaves a build that runs, or has watched it to its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.cli import watch
from stoker.cli.watch import left_behind
from stoker.config.paths import BuildPaths
from stoker.model.events import Paused
from stoker.model.state import BuildState


@pytest.mark.parametrize(("paused", "says"), [("no", "goes on"), ("soft", "stays paused"), ("hard", "stays frozen")])
def test_a_build_that_is_left_paused_is_not_said_to_go_on(paused: Paused, says: str) -> None:
    state = BuildState()
    assert says in left_behind(replace(state, level=replace(state.level, paused=paused)))


def test_the_end_that_was_watched_counts_without_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk may lack it, and to read it all again keeps the command waiting."""
    ended = replace(BuildState(), id="b-1", name="b", outcome="failed", exit_code=3, ended=5.0)

    async def watched(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr(watch, "_source", lambda *_, **__: SimpleNamespace(state=ended))
    monkeypatch.setattr(watch, "_watch_lines", watched)
    assert watch.show_build(BuildPaths(tmp_path / "b-1"), "plain") == 3
