"""Every end-to-end test about memory, on cgroup v2: takes too long for each change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.room import ALL_OF_MEMORY, USER, run_inside

SECONDS = 3600.0

pytestmark = [pytest.mark.soak, pytest.mark.timeout(SECONDS + 60)]


@pytest.mark.parametrize("user", ["", USER])
def test_all_of_memory_on_cgroup_v2(user: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    run_inside(user, ALL_OF_MEMORY, tmp_path, record_property, SECONDS)
