"""What tools print in other languages (provoke_translated.sh) is known by what is alike in all, or advised upon."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from stoker.diagnose.likely import TRANSLATED_REMEDY
from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import shipped_rules

TRANSLATED = Path(__file__).parent / "translated"
LOGS = [
    (path.stem, *log.split("\n", 1))
    for path in sorted(TRANSLATED.glob("*.txt"))
    for log in path.read_text(encoding="utf-8").removeprefix("== ").split("\n== ")
]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log[0]} {log[1]}")
def test_a_translated_failure_is_known_or_the_advice_is_to_build_in_english(log: tuple[str, str, str]) -> None:
    _, rule, text = log
    first = read_log(io.BytesIO(text.encode()), shipped_rules()).causes[0]
    if rule == "unknown":
        assert first.rule == "unknown-failure"
        assert TRANSLATED_REMEDY in first.remedy
    else:
        assert first.rule == rule
