"""What is kept free for a RAM disk's growth, and what that means for the jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decide.builds import GIB, acts, asked, candidate, kernel, light, live, view
from stoker.decide.memory.ramdisk_growth import FIRST_SHARE, LEARNT_SECONDS, MARGIN, SeenRamDisk
from stoker.decide.policy.snapshot import View
from stoker.model.samples import RamDisk


def disk(used: float, size: float = 8) -> RamDisk:
    return RamDisk("/dev/shm/x", round(used * GIB), round(size * GIB))


def seen(*looks: float, seconds: float = 1.0, busy: bool = True) -> SeenRamDisk:
    """What is known after these GiB, one look a second."""
    known = SeenRamDisk()
    for number, used in enumerate(looks):
        known = known.after(disk(used), number * seconds, busy=busy)
    return known


def test_before_anything_is_known_a_share_of_its_size_is_kept() -> None:
    assert seen(0).growth == FIRST_SHARE * 8 * GIB
    assert seen(1).expected == seen(0).expected  # what it holds is not kept a second time
    assert seen(1).growth == seen(0).growth - GIB


def test_later_what_was_seen_counts_and_not_the_size() -> None:
    learnt = seen(*[0.25] * (int(LEARNT_SECONDS) + 2))
    assert learnt.expected == pytest.approx(MARGIN * 0.25 * GIB)
    assert seen(2, *[0.25] * 100).expected == pytest.approx(MARGIN * 2 * GIB)  # also when it has come down again


def test_while_nothing_runs_nothing_is_learnt() -> None:
    assert seen(*[0.0] * 1000, busy=False).growth == seen(0).growth
    assert seen(0, 0, seconds=1e6).growth > 0.9 * seen(0).growth  # nor while the machine sleeps


@given(st.lists(st.floats(0, 20), min_size=1, max_size=90), st.booleans())
def test_never_more_than_its_size_and_never_less_than_nothing(looks: list[float], busy: bool) -> None:
    known = seen(*looks, busy=busy)
    assert known.growth >= 0
    assert known.expected <= 8 * GIB
    assert known.used + known.growth <= max(8 * GIB, known.used)


def test_without_one_nothing_is_kept() -> None:
    assert seen(1).after(None, 5, busy=True) == SeenRamDisk()
    assert SeenRamDisk().growth == 0


def with_ramdisk(seen: View, gib: float, rise: float = 0) -> View:
    """Beside a RAM disk that is expected to grow by so many GiB, and grows by `rise` GiB a second."""
    return replace(seen, ramdisk=SeenRamDisk(size=gib * GIB / FIRST_SHARE, rise=rise * GIB))


def test_fewer_jobs_start_beside_a_ram_disk_that_will_grow() -> None:
    seen = view([], [candidate(n, kernel(peak=6)) for n in range(16)])
    assert len(acts(asked(seen), "admit")) == 5  # 30 GiB above the reserve, 6 each
    assert len(acts(asked(with_ramdisk(seen, 12)), "admit")) == 3


def test_the_reason_names_what_is_kept_for_it() -> None:
    running = [live(n, kernel(peak=6), 50) for n in range(3)]
    seen = view(running, [candidate(10, light(9))])
    [hold] = [d for d in asked(with_ramdisk(seen, 6)) if d.action == "hold"]
    assert "unpromised above the reserve and 6.0 GiB for the RAM disk" in hold.why
    [hold] = [d for d in asked(view(running, [candidate(10, light(20))])) if d.action == "hold"]
    assert "RAM disk" not in hold.why


def test_nothing_that_runs_is_stopped_for_what_it_may_hold_one_day() -> None:
    running = [live(n, kernel(peak=6), 30 + n) for n in range(4)]
    assert asked(view(running)) == asked(with_ramdisk(view(running), 8)) == ()


def test_a_job_that_fits_only_without_it_starts_when_nothing_else_runs() -> None:
    seen = with_ramdisk(view([], [candidate(1, kernel(peak=28))]), 8)
    assert acts(asked(seen), "admit") == [1]


def test_below_the_floor_the_youngest_is_frozen_while_it_grows_whoever_fills_it() -> None:
    running = [live(n, light(1, seconds=100), 50) for n in range(3)]
    short = view(running, available=0.2)
    assert asked(short) == ()  # no job grows, and each will end
    [freeze] = asked(with_ramdisk(short, 1, rise=0.1))
    assert (freeze.action, freeze.jid) == ("freeze", 2)
    assert "the RAM disk grew by 102 MiB in a second" in freeze.why
    assert asked(with_ramdisk(view(running[:1], available=0.2), 1, rise=0.1)) == ()  # somebody must end
    assert asked(with_ramdisk(view(running), 1, rise=0.1)) == ()  # there is room


def test_its_rise_is_that_of_the_last_look() -> None:
    assert seen(1, 2).rise == GIB
    assert seen(1, 2, seconds=2).rise == GIB / 2
    assert seen(1, 3, 2).rise == seen(2).rise == 0
