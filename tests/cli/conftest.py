"""The real program, for commands about builds that run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.program import Stoker


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Stoker]:
    program = Stoker(tmp_path)
    yield program
    program.end_all()
    shutil.rmtree(program.runtime, ignore_errors=True)
