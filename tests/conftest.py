"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No test depends on the clock: a busy machine must not fail an example for being slow.
settings.register_profile("stoker", deadline=None)
settings.load_profile("stoker")
