"""When it is said that others stall on memory, and when not."""

from __future__ import annotations

from dataclasses import replace

from stoker.engine.govern.neighbours import NeighbourWatch
from stoker.model.samples import MachineSample, Pressure

GIB = 2**30
MACHINE = MachineSample(1.0, (), 8.0, 24 * GIB, 4 * GIB, 20 * GIB, "machine", pressure_memory=Pressure(45.0, 10.0))


def told(watch: NeighbourWatch, machine: MachineSample, now: float) -> list[str]:
    return [notice.text for notice in watch.look(machine, 1.0 * GIB, 20.0, now)]


def test_a_neighbours_stall_is_told_once_and_after_its_end_not_sooner_than_ten_minutes_later() -> None:
    watch = NeighbourWatch()
    (text,) = told(watch, MACHINE, 0.0)
    assert text.startswith(
        "the machine stalls on memory (45 %), but not because of this build, which has 20.0 GiB left"
    )
    quiet = replace(MACHINE, pressure_memory=Pressure(1.0, 0.0))
    assert told(watch, MACHINE, 700.0) == [], "it lasts"
    assert told(watch, quiet, 701.0) == []
    assert len(told(watch, MACHINE, 702.0)) == 1
    told(watch, quiet, 703.0)
    assert told(watch, MACHINE, 704.0) == []


def test_a_stall_of_the_build_itself_is_not_put_on_others() -> None:
    own = replace(MACHINE, pressure_memory=Pressure(45.0, 10.0, own=True))
    short = replace(MACHINE, memory_available=GIB // 2)
    for machine in (own, short, replace(MACHINE, pressure_memory=None)):
        assert told(NeighbourWatch(), machine, 0.0) == []
