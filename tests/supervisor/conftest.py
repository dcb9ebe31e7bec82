"""A keeper for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.keepers import Keepers, Start


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a command, in the test's own folder, under a keeper whose engine is the given script."""
    keepers = Keepers(tmp_path, monkeypatch)
    yield keepers.start
    keepers.end()
