"""A fixed time zone, questions that are answered at once, and style sheets that are parsed once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from stoker.show.tui.screens.questions import Question

_parsed: dict[tuple[object, ...], list[RuleSet]] = {}
"""What style sheets say, by all that it depends on."""


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


@pytest.fixture(autouse=True)
def _style_sheets_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each app has those of Textual's widgets and of ours, and parses them for longer than it draws a screen."""
    parse = Stylesheet._parse_rules

    def parse_once(sheet: Stylesheet, css: str, read_from: tuple[str, str], *rest: Any, **more: Any) -> list[RuleSet]:
        key = (frozenset(sheet._variables.items()), css, read_from, rest, tuple(more.items()))
        if key not in _parsed:
            _parsed[key] = parse(sheet, css, read_from, *rest, **more)
        return _parsed[key]

    monkeypatch.setattr(Stylesheet, "_parse_rules", parse_once)
