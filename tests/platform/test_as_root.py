"""The builds that memory decides, on cgroup v2, as root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.room import KERNEL_LOG, MEMORY, ROOM, SECONDS, run_inside

pytestmark = [pytest.mark.platform, pytest.mark.timeout(SECONDS + 60)]


def test_memory_on_cgroup_v2_as_root(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    run_inside("", (*ROOM, *MEMORY, *KERNEL_LOG), tmp_path, record_property)
