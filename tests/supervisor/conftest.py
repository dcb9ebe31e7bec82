"""A supervisor for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.supervisors import Start, Supervisors


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a command, in the test's own folder, under a supervisor whose engine is the given script."""
    supervisors = Supervisors(tmp_path, monkeypatch)
    yield supervisors.start
    supervisors.end()
