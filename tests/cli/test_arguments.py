"""Levels and sizes as people write them."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.cli.arguments import jobs, level_of, memory


@pytest.mark.parametrize(("text", "level"), [("1", 1), ("12", 12), ("4096", 4096), ("auto", None)])
def test_a_number_or_auto_is_a_level(text: str, level: int | None) -> None:
    assert jobs(text) == level


@pytest.mark.parametrize("text", ["0", "-1", "4097", "1.5", "", "many", "Auto", "٣", "9" * 500])
def test_anything_else_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write a number from 1 to 4096, or auto"):
        jobs(text)


@given(st.text(max_size=8))
def test_no_word_is_more_than_a_level_or_none(text: str) -> None:
    level = level_of(text)
    assert level is None or level == "auto" or 1 <= level <= 4096


@pytest.mark.parametrize(
    ("text", "value"),
    [("12G", 12 * 2**30), ("12GiB", 12 * 2**30), ("500MB", 500_000_000), ("80%", 0.8), ("100 %", 1.0), ("0.5%", 0.005)],
)
def test_a_size_or_a_share_is_memory(text: str, value: float) -> None:
    assert memory(text) == value
    assert isinstance(memory(text), float) == text.endswith("%")


@pytest.mark.parametrize("text", ["0", "0%", "101%", "lots", "12X", "-1G", "", "%", "9" * 500, "1e3", "48", "31MiB"])
def test_memory_that_leaves_no_build_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        memory(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 700


@given(st.text(max_size=12))
def test_any_text_is_a_size_a_share_or_refused(text: str) -> None:
    try:
        value = memory(text)
    except argparse.ArgumentTypeError:
        return
    assert value > 0
    assert value <= 1 or isinstance(value, int)
