"""Jobs that other machines compile, under the very policy: local work keeps within the level, whatever hosts do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decide.builds import candidate, curve, light, live, view
from stoker.decide.policy.decide import rule
from stoker.decide.policy.snapshot import Candidate, View


def sent(*jids: int) -> tuple[Candidate, ...]:
    return tuple(replace(candidate(jid, light()), remote=True) for jid in jids)


def seen(candidates: tuple[Candidate, ...], *, slots: int, away: int, cores: float = 4) -> View:
    return replace(view(cores=cores), candidates=candidates, remote_slots=slots, remote_jobs=away)


def admitted(of: View) -> list[int]:
    return [d.jid for d in rule(of, 0.0).decisions if d.action == "admit"]


def test_no_more_are_let_go_than_there_are_slots() -> None:
    ruling = rule(seen(sent(1, 2, 3, 4), slots=8, away=6), 0.0)
    assert [d.jid for d in ruling.decisions] == [1, 2]
    assert {jid: ruling.waits.of[jid].cause for jid in (3, 4)} == {3: "host", 4: "host"}
    assert ruling.waits.of[3].why == "all 8 slots of other machines are taken"


def test_a_link_does_not_wait_for_a_slot() -> None:
    assert admitted(seen((*sent(1, 2), candidate(3, light())), slots=8, away=8)) == [3]


def test_jobs_beyond_the_cores_are_elsewhere_and_take_no_place() -> None:
    assert admitted(seen(sent(*range(4)), slots=64, away=30)) == [0, 1, 2, 3]


@pytest.mark.parametrize("away", [0, 3])
def test_while_no_slot_is_known_the_level_alone_counts(away: int) -> None:
    assert admitted(seen(sent(*range(9)), slots=0, away=away)) == [0, 1, 2, 3]


@pytest.mark.parametrize("slots", [0, 30])
def test_no_more_wait_for_a_host_than_the_level_allows_to_begin_here(slots: int) -> None:
    ruling = rule(replace(seen((*sent(1, 2), candidate(3, light())), slots=slots, away=3), remote_waiting=3), 0.0)
    assert [d.jid for d in ruling.decisions if d.action == "admit"] == [1, 3]
    assert (ruling.waits.of[2].cause, ruling.waits.of[2].why) == ("host", "3 jobs already wait for a host")


def test_one_that_was_given_back_goes_before_new_ones_and_within_the_level() -> None:
    back = [replace(live(n, light(), 0.1, rss=0.01), returned=True) for n in range(6)]
    of = replace(view(running=[live(8, light())], frozen=back, cores=4), candidates=(candidate(9, light()),))
    ruling = rule(of, 0.0)
    assert [(d.action, d.jid) for d in ruling.decisions] == [("thaw", 0), ("thaw", 1), ("thaw", 2)]


def test_one_that_was_given_back_goes_on_where_all_that_run_may_wait_for_what_it_holds() -> None:
    """icecream's daemon here has one place, which the stopped compiler has; all others stand in the queue for it."""
    back = [replace(live(n, light(), 0.1, rss=0.01), returned=True) for n in range(2)]
    idle = tuple(replace(live(8 + n, light()), idle=True) for n in range(5))
    stuck = view(running=idle, frozen=back, cores=3)
    for of in (stuck, replace(stuck, guarded=False), replace(stuck, available=stuck.available / 8)):
        assert [(d.action, d.jid) for d in rule(of, 0.0).decisions] == [("thaw", 0)], (
            "one of them, as room for one is made"
        )
    works = replace(stuck, running=(*idle, live(20, light())))
    assert rule(works, 0.0).decisions == ()
    assert rule(replace(stuck, frozen=()), 0.0).decisions == ()
    assert rule(replace(stuck, paused="hard"), 0.0).decisions[0].action == "freeze"


def test_one_that_was_given_back_waits_for_memory() -> None:
    large = curve((0, 0.1), (10, 6.0), (20, 6.0))
    back = replace(live(2, large, 0.1, rss=0.01), returned=True)
    of = view(running=[live(1, large, 5.0)], frozen=[back], ram=10, cores=4)
    ruling = rule(of, 0.0)
    assert not any(d.action == "thaw" for d in ruling.decisions)


@dataclass
class PaperJob:
    """It works here for `before` ticks, elsewhere for `away`, and, if its host is lost meanwhile, here for `after`."""

    jid: int
    before: int
    away: int
    after: int
    where: str = "deck"
    given_back: bool = False


@st.composite
def builds(draw: st.DrawFn) -> list[PaperJob]:
    ticks = st.integers(1, 5)
    return [PaperJob(n, draw(ticks), draw(st.integers(0, 8)), draw(ticks)) for n in range(draw(st.integers(1, 25)))]


def a_view(jobs: list[PaperJob], slots: int, cores: int) -> View:
    at = {where: [j for j in jobs if j.where == where] for where in ("deck", "here", "away", "back")}
    leaving = sum(1 for j in at["here"] if j.away and not j.given_back)
    return replace(
        view(
            running=[live(j.jid, light(0.1), 0.5) for j in at["here"]],
            frozen=[replace(live(j.jid, light(0.1), 0.1), returned=True) for j in at["back"]],
            cores=cores,
        ),
        candidates=tuple(replace(candidate(j.jid, light(0.1)), remote=j.away > 0) for j in at["deck"]),
        remote_slots=slots,
        remote_jobs=len(at["away"]) + leaving,
    )


def turn(jobs: list[PaperJob], slots: int, cores: int, *, lost: bool) -> Iterator[str]:
    """One tick: what is lost comes back stopped; the policy decides; then all that goes on works."""
    for job in jobs:
        if job.where == "away" and lost:
            job.where, job.given_back = "back", True
    by_jid = {j.jid: j for j in jobs}
    for decision in rule(a_view(jobs, slots, cores), 0.0).decisions:
        yield decision.action
        assert by_jid[decision.jid].where != "away", "what is elsewhere is nobody's to stop"
        by_jid[decision.jid].where = {"admit": "here", "thaw": "here", "freeze": "back"}[decision.action]
    assert sum(j.where == "here" for j in jobs) <= cores
    assert sum(j.where == "away" for j in jobs) <= slots
    for job in jobs:
        _work(job)


def _work(job: PaperJob) -> None:
    if job.where == "here" and job.given_back:
        job.after -= 1
        job.where = "here" if job.after else "done"
    elif job.where == "here":
        job.before -= 1
        job.where = "here" if job.before else "away" if job.away else "done"
    elif job.where == "away":
        job.away -= 1
        job.where = "away" if job.away else "done"


@given(builds(), st.integers(1, 12), st.integers(1, 4), st.sets(st.integers(0, 80), max_size=4))
def test_local_work_keeps_within_the_level_whatever_hosts_do_and_all_ends(
    jobs: list[PaperJob], slots: int, cores: int, losses: set[int]
) -> None:
    for tick in range(600):
        acts = list(turn(jobs, slots, cores, lost=tick in losses))
        assert "freeze" not in acts, "nobody is stopped for want of a core"
        if all(j.where == "done" for j in jobs):
            return
    raise AssertionError("it does not end")
