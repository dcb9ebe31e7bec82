"""A clinic for each test, on a machine whose own CUDA is out of sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.doctor import find_cuda
from support.clinic import Clinic
from support.clinic import clinic as new_clinic


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    monkeypatch.setattr(find_cuda, "USUAL_ROOT", str(tmp_path / "usual-cuda"))
    monkeypatch.setattr(find_cuda, "system_folders", lambda env: [])
    return new_clinic(tmp_path)
