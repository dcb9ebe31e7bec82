"""Settings for all tests, and how they are shared out when two run at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# No test depends on the clock: a busy machine must not fail an example for being slow.
settings.register_profile("stoker", deadline=None)
settings.load_profile("stoker")

HERE = Path(__file__).parent
REAL = frozenset({"act", "cli", "demo", "e2e", "engine", "sense"})
"""Folders of tests that start builds: under `pytest -n 2` these run one after the other, beside all the rest."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(HERE)
        group = "builds" if path.parts[0] in REAL else str(path)
        item.add_marker(pytest.mark.xdist_group(group))
