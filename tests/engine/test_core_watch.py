"""When it is said that other programs keep the cores busy."""

from __future__ import annotations

from dataclasses import replace

from stoker.engine.govern.core_watch import SAMPLES, CoreWatch
from stoker.model.samples import MachineSample

BUSY = MachineSample(98.0, (98, 98), 2.0, 8, 4, 4, "machine")


def seen(*samples: tuple[MachineSample, float | None]) -> CoreWatch:
    watch = CoreWatch()
    for machine, build in samples:
        for _ in range(SAMPLES):
            watch.see(machine, build)
    return watch


def test_a_busy_machine_of_which_the_build_uses_little_is_kept_busy_by_others() -> None:
    assert seen((BUSY, 28.0)).taken


def test_a_build_that_keeps_the_machine_busy_itself_or_an_idle_one_is_not() -> None:
    assert not seen((BUSY, 180.0)).taken
    assert not seen((replace(BUSY, cpu_percent=40.0), 28.0)).taken
    assert not seen((BUSY, None)).taken, "nothing is claimed before the build's share is known"


def test_one_second_changes_no_answer() -> None:
    watch = seen((BUSY, 28.0))
    watch.see(replace(BUSY, cpu_percent=40.0), 28.0)
    assert watch.taken
    assert not seen((BUSY, 28.0), (BUSY, 180.0)).taken
