"""What is said of the most that an ended job held: the same on each screen and in each report."""

from __future__ import annotations

import pytest

from stoker.model.known_peak import known_peak

MIB = 2**20


@pytest.mark.parametrize(
    ("seconds", "seen", "limit", "text"),
    [
        pytest.param(60.0, 44 * MIB, 46 * MIB, "44.0 MiB", id="sampled for long"),
        pytest.param(3.0, 44 * MIB, 70 * MIB, "44.0 MiB+", id="sampled two or three times"),
        pytest.param(1.2, 50 * MIB, 60 * MIB, "50.0 MiB+", id="seen at work, though short"),
        pytest.param(1.2, 50 * MIB, None, "50.0 MiB+", id="the same, and it taught nothing"),
        pytest.param(0.8, 1.5 * MIB, 119 * MIB, "< 119 MiB", id="only the driver was seen"),
        pytest.param(2.1, 4.7 * MIB, 144 * MIB, "< 144 MiB", id="only the driver was seen of a longer one"),
        pytest.param(0.8, 1.5 * MIB, 41.3 * MIB, "< 42 MiB", id="rounded up"),
        pytest.param(0.8, 2 * MIB, 2.5 * MIB, "2.0 MiB+", id="a small script"),
        pytest.param(0.8, 2 * MIB, 1200 * MIB, "< 1.2 GiB", id="a limit that says little"),
        pytest.param(0.8, 2 * MIB, None, None, id="nothing is known"),
        pytest.param(9.0, None, None, None, id="never looked at"),
    ],
)
def test_an_ended_job_has_one_figure(seconds: float, seen: float | None, limit: float | None, text: str | None) -> None:
    peak = known_peak(seconds, None if seen is None else round(seen), None if limit is None else round(limit))
    assert (peak.text if peak is not None else None) == text


def test_what_was_seen_goes_before_what_is_only_possible() -> None:
    seen, possible = known_peak(1.2, 20 * MIB, 30 * MIB), known_peak(0.8, MIB, 500 * MIB)
    assert seen is not None
    assert possible is not None
    assert seen.rank > possible.rank
