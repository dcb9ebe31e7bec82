"""Settings for all tests, and how they are shared out when several run at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No test depends on the clock: a busy machine must not fail an example for being slow.
settings.register_profile("stoker", deadline=None)
settings.load_profile("stoker")

# The workers of `pytest -n` have these of somebody's terminal; a test's own terminal has a size of its own.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

HERE = Path(__file__).parent
BUILDS = frozenset({"act", "cli", "demo", "doctor", "engine", "sense"})
"""Folders of tests that start processes and memory groups. Under `pytest -n` they run one after the other, and so do
those of e2e/: what they watch is the machine's."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(HERE)
        folder = path.parts[0]
        group = "builds" if folder in BUILDS else "e2e" if folder == "e2e" else str(path)
        item.add_marker(pytest.mark.xdist_group(group))
