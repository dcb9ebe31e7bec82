"""A fixed time zone, and apps over fake sources."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from stoker.show.tui.screens.questions import Question


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _questions_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Question, "deaf_seconds", 0.0)
