"""The labels of a time axis."""

from __future__ import annotations

import pytest

from stoker.show.tui.pages.chart import time_labels


@pytest.mark.parametrize(
    ("begin", "end", "labels"),
    [
        (0, 3, "0:00 0:01 0:02 0:03"),
        (0, 2.4, "0:00 0:01 0:02"),
        (0, 5, "0:00 0:01 0:02 0:03 0:04 0:05"),
        (0, 68, "0:00 0:15 0:30 0:45 1:00"),
        (4, 667, "2:00 4:00 6:00 8:00 10:00"),
        (0, 3740, "0:00 15:00 30:00 45:00 1:00:00"),
        (61.5, 63, "1:02 1:03"),
        (0, 0, "0:00 0:01"),
        (0, 40 * 86400, "0:00 7d 00:00:00 14d 00:00:00 21d 00:00:00 28d 00:00:00 35d 00:00:00"),
    ],
)
def test_labels_are_round_times_none_of_which_comes_twice(begin: float, end: float, labels: str) -> None:
    assert " ".join(label for _, label in time_labels(begin, end, 56)) == labels


def test_a_label_stands_at_its_time() -> None:
    assert [share for share, _ in time_labels(30.0, 90.0, 50)] == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_narrow_axis_has_fewer() -> None:
    assert [label for _, label in time_labels(0.0, 3740.0, 30)] == ["0:00", "1:00:00"]
