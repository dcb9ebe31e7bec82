"""Figures as people read them."""

from __future__ import annotations

import pytest

from stoker.model.units import (
    format_band,
    format_bytes,
    format_duration,
    format_left,
    format_rough,
    format_share,
    parse_size,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1536, "1.5 KiB"), (500 << 20, "500 MiB"), (23 << 30, "23.0 GiB")],
)
def test_bytes(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [("64G", 64 << 30), ("12 GiB", 12 << 30), ("500MB", 500_000_000), ("1024", 1024), ("1.5g", 3 << 29)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "12 apples", "-5G", "1e9", "12 GiB x", "9" * 400, "9000000 TiB"])
def test_a_bad_size_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match="write it as 64G"):
        parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(7, "0:07"), (754, "12:34"), (3723, "1:02:03"), (183845, "2d 03:04:05"), (-5, "0:00")]
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (300, "5 min"), (4800, "80 min"), (5700, "1 h 35 min"), (90000, "25 h")]
)
def test_rough_durations(seconds: float, text: str) -> None:
    assert format_rough(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1440, 1860, "24–31 min"),
        (50, 120, "1–2 min"),
        (10, 95, "0–1.5 min"),
        (84, 300, "1.5–5 min"),
        (70, 85, "70–85 s"),
        (300, 300, "5 min"),
        (5700, 7200, "1 h 35 min–2 h 00 min"),
        (4800, 7200, "1 h 20 min–2 h 00 min"),
        (3000, 7200, "50 min–2 h 00 min"),
    ],
)
def test_bands(low: float, high: float, text: str) -> None:
    assert format_band(low, high) == text


@pytest.mark.parametrize(
    ("left", "text"),
    [
        ((480, 360, 600), "8 min (6–10 min)"),
        ((130, 118, 170), "2–3 min"),
        ((100, 70, 125), "1.5 min (1–2 min)"),
        ((89, 62, 128), "1.5 min (1–2 min)"),
        ((84, 58, 121), "1.5 min (1–2 min)"),
        ((60, 40, 89), "60 s (40–89 s)"),
        ((305, 300, 310), "5 min"),
        ((4, 4, 9), "4–9 s"),
    ],
)
def test_an_estimate_does_not_stand_on_the_edge_of_its_own_band(left: tuple[float, float, float], text: str) -> None:
    assert format_left(*left) == text


@pytest.mark.parametrize(("share", "text"), [(0.57, "57 %"), (0.999, "99 %"), (15 / 61, "24 %"), (1.0, "100 %")])
def test_a_share_is_not_rounded_up(share: float, text: str) -> None:
    assert format_share(share) == text
