"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# No test depends on the clock: a busy machine must not fail an example for being slow.
settings.register_profile("stoker", deadline=None)
settings.load_profile("stoker")

# The workers of `pytest -n` have these of somebody's terminal; a test's own terminal has a size of its own.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
