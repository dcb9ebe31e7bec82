"""Reasons where there is little room: whole clauses go, never a piece of a word."""

from __future__ import annotations

import pytest

from stoker.show.tui.pages.clauses import clauses, whole_words

KEPT = "memory is kept for obj/kernel_03.o, and for what runs; 614 MiB left above the reserve"
NEEDS = "needs up to 4.6 GiB within 2:10, 614 MiB unpromised above the reserve and 1.2 GiB for the RAM disk"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        (KEPT, 100, KEPT),
        (KEPT, 80, "memory is kept for obj/kernel_03.o, and for what runs; 614 MiB above the reserve"),
        (KEPT, 78, "memory is kept for kernel_03.o, and for what runs; 614 MiB above the reserve"),
        (KEPT, 60, "memory is kept for kernel_03.o, and for what runs"),
        (KEPT, 40, "memory is kept for kernel_03.o"),
        (KEPT, 28, "memory is kept for kern…03.o"),
        (KEPT, 20, "memory is kept for…"),
        (NEEDS, 80, "needs up to 4.6 GiB, 614 MiB unpromised and 1.2 GiB for the RAM disk"),
        (NEEDS, 40, "needs up to 4.6 GiB"),
        ("for 0:59; last: needs up to 2.0 GiB", 20, "for 0:59"),
        ("last: needs up to 2.0 GiB", 20, "last: needs up to…"),
        ("frozen by hand; it goes on when it is thawed by hand", 30, "frozen by hand"),
    ],
)
def test_whole_clauses_give_way_before_words(text: str, width: int, shown: str) -> None:
    assert clauses(text, width) == shown


@pytest.mark.parametrize("width", range(40))
def test_no_width_is_exceeded_and_no_word_but_the_first_is_cut(width: int) -> None:
    for text in (KEPT, NEEDS, "x" * 60, ""):
        shown = clauses(text, width)
        assert len(shown) <= width
        if shown.endswith("…") and " " in shown:
            assert text.startswith(shown[:-1]) or "…" in shown[:-1]
            assert shown[:-1].rpartition(" ")[2] in text.split(" ")


def test_words_are_cut_only_where_one_alone_is_too_long() -> None:
    assert whole_words("the build waits for you", 12) == "the build…"
    assert whole_words("abcdefghijkl", 7) == "abc…jkl"
