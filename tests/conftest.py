"""Settings for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No test depends on the clock: a busy machine must not fail an example for being slow.
settings.register_profile("stoker", deadline=None)
settings.load_profile("stoker")

LONG_ONES = ("simulate", "e2e", "cli", "act", "verify")
"""Folders whose files take longest, by what a test of theirs takes. They begin first, so that in the end no worker of
`pytest -n` waits alone for one of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONG_ONES)}
    items.sort(key=lambda item: ranks.get(item.path.parent.name, len(ranks)))


# The workers of `pytest -n` have these of somebody's terminal; a test's own terminal has a size of its own.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
