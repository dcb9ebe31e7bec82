"""Fixtures for real builds under the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.program import write_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The build folder of a small real project."""
    return write_project(tmp_path / "small")
