"""The builds that memory decides, on cgroup v2, as a normal user whose groups are delegated to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.room import MEMORY, ROOM, SECONDS, USER, run_inside

pytestmark = [pytest.mark.platform, pytest.mark.timeout(SECONDS + 60)]


def test_memory_on_cgroup_v2_as_a_normal_user(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    run_inside(USER, (*ROOM, *MEMORY), tmp_path, record_property)
