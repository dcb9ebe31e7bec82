"""Fixtures for real builds under the real program."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.program import Stoker, write_project


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Stoker]:
    program = Stoker(tmp_path)
    yield program
    program.end_all()
    shutil.rmtree(program.runtime, ignore_errors=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The build folder of a small real project."""
    return write_project(tmp_path / "small")
