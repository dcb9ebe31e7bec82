"""What holds for any view at all, whether or not it could come about."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decide.builds import GIB, acts, candidate, curve, light, live, view
from stoker.decide.memory.curves import Curve
from stoker.decide.policy import emergency
from stoker.decide.policy.admission import PATIENCE, STARVED
from stoker.decide.policy.ample import is_ample
from stoker.decide.policy.decide import decide, level_of, rule
from stoker.decide.policy.emergency import alarm
from stoker.decide.policy.situation import LOOK_AHEAD, Situation, age_order
from stoker.decide.policy.snapshot import Decision, LiveJob, View
from stoker.decide.policy.turn import soloist

UNITS = ("B", "KiB", "MiB", "GiB")

gib = st.floats(0, 12).map(lambda size: round(size * GIB) / GIB)
"""In whole bytes, as memory is measured."""
spreads = st.sampled_from([0.0, 0.2, 0.6])


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    ages = sorted(draw(st.lists(st.floats(0, 300), min_size=1, max_size=4)))
    points = [(0.0, draw(gib)), *((age, draw(gib)) for age in ages), (ages[-1] + draw(st.floats(0.1, 300)), draw(gib))]
    return curve(*points, spread=draw(spreads), time_spread=draw(spreads), bias=draw(spreads))


@st.composite
def live_jobs(draw: st.DrawFn, jid: int) -> LiveJob:
    shape, age, rss = draw(curves()), draw(st.floats(0, 400)), draw(gib) * GIB
    peak, peak_age = rss * draw(st.floats(1, 4)), age * draw(st.floats(0, 1))
    started = draw(st.floats(0, 50))
    return LiveJob(
        jid,
        f"job{jid}.o",
        started,
        age,
        rss,
        shape,
        peak,
        peak_age,
        alone=draw(st.integers(0, 19)) == 0,
        by_person=draw(st.integers(0, 3)) == 0,
        by_word=draw(st.booleans()),
        rise=draw(st.just(0.0) | gib) * GIB,
        stale=draw(st.booleans()),
        wants=draw(st.just(math.inf) | st.floats(0.001, 2)),
    )


@st.composite
def views(draw: st.DrawFn) -> View:
    counts = [draw(st.integers(0, most)) for most in (8, 5, 8)]
    running = tuple(draw(live_jobs(n)) for n in range(counts[0]))
    frozen = tuple(draw(live_jobs(100 + n)) for n in range(counts[1]))
    candidates = tuple(
        replace(
            candidate(200 + n, draw(curves())),
            passed_over=draw(st.integers(0, 100)),
            alone=draw(st.integers(0, 9)) == 0,
        )
        for n in range(counts[2])
    )
    return View(
        budget=draw(st.floats(1, 64)) * GIB,
        available=draw(st.floats(0, 64)) * GIB,
        reserve=draw(st.floats(0, 4)) * GIB,
        floor=draw(st.floats(0, 1)) * GIB,
        cpu_slots=draw(st.floats(0, 8)),
        cores=draw(st.just(math.inf) | st.floats(0.5, 8)),
        level=draw(st.none() | st.integers(1, 8)),
        paused=draw(st.sampled_from(["no", "no", "soft", "hard"])),
        pressure=draw(st.none() | st.floats(0, 100)),
        pressure_own=draw(st.booleans()),
        running=running,
        frozen=frozen,
        candidates=candidates,
        last_freeze=draw(st.floats(0, 100)),
        last_shed=draw(st.floats(0, 100)),
        guarded=draw(st.integers(0, 4)) > 0,
    )


@given(views())
def test_what_the_brakes_ask_for_is_the_beginning_of_the_whole_promise(seen: View) -> None:
    brakes, whole = Situation(seen), Situation(seen).promise
    assert [brakes.soon.upper(slot) for slot in range(LOOK_AHEAD)] == [whole.upper(slot) for slot in range(LOOK_AHEAD)]
    assert brakes.soon.mean[:LOOK_AHEAD] == whole.mean[:LOOK_AHEAD]
    for job in brakes.by_age[:1]:
        assert brakes.outlook_soon(job).mean[:LOOK_AHEAD] == Situation(seen).outlook(job).mean[:LOOK_AHEAD]


@settings(max_examples=300)
@given(views(), st.floats(1, 20))
def test_the_quick_look_at_ample_memory_decides_what_the_brakes_would(seen: View, more: float) -> None:
    for view_of in (seen, replace(seen, budget=seen.budget * more, available=seen.available * more)):
        with mock.patch.object(emergency, "is_ample", return_value=False):
            thorough = rule(view_of, 100.0)
        assert rule(view_of, 100.0) == thorough


def test_memory_that_all_could_take_at_their_fastest_is_ample() -> None:
    jobs = [live(n, curve((0, 0.1), (60, 2), spread=0.3, time_spread=0.5)) for n in range(4)]
    assert is_ample(Situation(view(jobs, ram=64)), 62 * GIB)
    assert not is_ample(Situation(view(jobs, ram=64)), 1 * GIB), "they may pass this line"
    assert not is_ample(Situation(view(jobs, ram=64, available=2)), 62 * GIB), "the oldest needs what is left"


def test_with_ample_memory_and_nobody_waiting_no_outlook_is_made() -> None:
    """The peaks do not fit at once, but nothing is near: each second all of them would be made in vain."""
    jobs = [live(n, curve((0, 0.5), (600, 9), spread=0.3)) for n in range(9)]
    with mock.patch("stoker.decide.policy.situation.outlook") as made:
        assert decide(view(jobs, ram=64), 100.0) == ()
    made.assert_not_called()


@given(views(), st.floats(1, 8))
def test_a_job_that_sleeps_less_is_never_taken_to_grow_less(seen: View, width: float) -> None:
    awake = Situation(replace(seen, running=tuple(replace(job, wants=width) for job in seen.running)))
    asleep = Situation(replace(seen, running=tuple(replace(j, wants=min(j.wants, width)) for j in seen.running)))
    assert asleep.surge(asleep.view.running) <= awake.surge(awake.view.running) * (1 + 1e-9)
    assert asleep.measured_growth()[1] <= awake.measured_growth()[1] * (1 + 1e-9)


@given(views())
def test_what_is_said_of_one_more_second_can_be_summed_up(seen: View) -> None:
    """What is left, less what the jobs can add, is less than what must remain, as exactly as figures are said."""
    why = alarm(Situation(seen))
    said = re.fullmatch(
        r"(.*) left, too little for one more second: (.*) must remain and .* up to (.*) per second", why
    )
    if said is None:
        assert "one more second" not in why
        return
    figures = [figure.split() for figure in said.groups()]
    left, remains, growth = (float(number) * 1024 ** UNITS.index(unit) for number, unit in figures)
    rounded = sum((0.05 if "." in number else 0.5) * 1024 ** UNITS.index(unit) for number, unit in figures)
    assert left - growth <= remains + rounded


@given(views())
def test_one_that_wants_all_its_cores_is_decided_about_as_if_that_were_not_known(seen: View) -> None:
    full = replace(seen, running=tuple(replace(job, wants=job.width) for job in seen.running))
    unknown = replace(seen, running=tuple(replace(job, wants=math.inf) for job in seen.running))
    assert decide(full, 100.0) == decide(unknown, 100.0)


@settings(max_examples=300)
@given(views())
def test_any_view_gets_sane_decisions(seen: View) -> None:
    decisions = decide(seen, 100.0)
    assert decisions == decide(seen, 100.0)
    kinds = {
        "admit": {c.jid for c in seen.candidates},
        "hold": {c.jid for c in seen.candidates},
        "freeze": {j.jid for j in seen.running},
        "thaw": {j.jid for j in seen.frozen if not j.by_person},
        "shed": {j.jid for j in seen.frozen},
    }
    for decision in decisions:
        assert decision.jid in kinds[decision.action]
        assert re.search(r"\d", decision.why), decision.why
    assert max(Counter(d.jid for d in decisions).values(), default=1) == 1


@settings(max_examples=200)
@given(views())
def test_whoever_is_not_let_go_has_a_reason(seen: View) -> None:
    decisions, waits = rule(seen, 100.0)
    if any(d.action in ("freeze", "shed") for d in decisions):
        return  # carried out first, and asked again
    gone = {d.jid for d in decisions if d.action in ("admit", "thaw")}
    for jobs, rest in ((seen.frozen, waits.frozen), (seen.candidates, waits.on_deck)):
        for job in jobs:
            wait = waits.of.get(job.jid) or rest
            assert job.jid in gone or (wait is not None and wait.cause and wait.why), job.jid


def carried_out(seen: View, decisions: tuple[Decision, ...], now: float) -> View:
    """The view once these were let go, one after the other, and before anything has been measured again."""
    frozen = {j.jid: j for j in seen.frozen}
    waiting = {c.jid: c for c in seen.candidates}
    running = list(seen.running)
    for number, d in enumerate(decisions):
        if d.action == "thaw":
            running.append(replace(frozen.pop(d.jid), by_word=False))
        elif d.action == "admit":
            c = waiting.pop(d.jid)
            born = now + number / 1e6
            running.append(LiveJob(c.jid, c.name, born, 0.0, 0.0, c.curve, width=c.width, alone=c.alone, early=d.early))
    return replace(seen, running=tuple(running), frozen=tuple(frozen.values()), candidates=tuple(waiting.values()))


@pytest.mark.long
@settings(max_examples=200)
@given(views())
def test_nobody_is_let_go_whom_the_next_look_stops_by_the_same_numbers(seen: View) -> None:
    stopped = tuple(replace(j, stale=True) for j in seen.frozen)
    before = replace(seen, frozen=stopped)
    first = decide(before, 100.0)
    let_go = {*acts(first, "thaw"), *acts(first, "admit")}
    second = decide(carried_out(before, first, 100.0), 100.0)
    assert let_go.isdisjoint(acts(second, "freeze")), (first, second)


@settings(max_examples=200)
@given(views())
def test_level_pause_and_the_oldest_are_respected(seen: View) -> None:
    decisions = decide(seen, 100.0)
    starts = [d for d in decisions if d.action in ("admit", "thaw")]
    if starts:
        assert len(seen.running) + len(starts) <= level_of(seen)
    if seen.paused != "no":
        assert not [d for d in decisions if d.action == "admit"]
    if seen.paused == "hard":
        assert {d.jid for d in decisions} == {j.jid for j in seen.running}
        return
    frozen = {d.jid for d in decisions if d.action == "freeze"}
    if seen.running and soloist(seen) is None:
        assert min(seen.running, key=age_order).jid not in frozen


@pytest.mark.long
@settings(max_examples=200)
@given(views())
def test_who_must_be_alone_is_alone(seen: View) -> None:
    decisions = decide(seen, 100.0)
    admitted, thawed = acts(decisions, "admit"), acts(decisions, "thaw")
    solo = soloist(seen)
    if seen.paused != "hard" and solo is not None:
        assert set(thawed) <= {solo.jid}
        assert not admitted
        others = {j.jid for j in seen.running} - {solo.jid}
        assert not others or set(acts(decisions, "freeze")) == others
    elif any(c.alone for c in seen.candidates) and admitted:
        assert [c.alone for c in seen.candidates if c.jid in admitted] == [True]
        assert not seen.running
        assert all(j.by_person for j in seen.frozen)
        assert not thawed


@pytest.mark.long
@settings(max_examples=200)
@given(views(), st.floats(0, 64), st.floats(0, 100))
def test_where_memory_is_ignored_it_plays_no_role(seen: View, available: float, pressure: float) -> None:
    ignored = replace(seen, guarded=False)
    other = replace(ignored, available=available * GIB, pressure=pressure, last_freeze=99.9, last_shed=99.9)
    decisions = decide(ignored, 100.0)
    assert [(d.action, d.jid) for d in decisions] == [(d.action, d.jid) for d in decide(other, 100.0)]
    assert not acts(decisions, "shed")
    assert all(d.by_word for d in decisions if d.action == "freeze")


@settings(max_examples=150)
@given(seen=views(), pressure=st.none() | st.floats(0, 100), own=st.booleans())
def test_pressure_stops_nobody_and_starts_nobody(*, seen: View, pressure: float | None, own: bool) -> None:
    """Whatever it is, and whosever: it may only hold back who is on deck."""
    decisions = [d for d in decide(replace(seen, pressure=None), 100.0) if d.action != "hold"]
    stalled = [d for d in decide(replace(seen, pressure=pressure, pressure_own=own), 100.0) if d.action != "hold"]
    assert [d.jid for d in stalled if d.action in ("freeze", "shed")] == [
        d.jid for d in decisions if d.action in ("freeze", "shed")
    ]
    admitted = {d.jid for d in stalled if d.action == "admit"}
    assert admitted <= {d.jid for d in decisions if d.action == "admit"}


@pytest.mark.long
@settings(max_examples=200)
@given(views())
def test_something_always_runs(seen: View) -> None:
    """With nothing running, not paused, and somebody there who may run: somebody starts, however full memory is, unless
    a person could make room by thawing what they froze."""
    idle = replace(seen, running=(), paused="no", pressure=None)
    if idle.candidates or any(not j.by_person for j in idle.frozen):
        ruling = rule(idle, 100.0)
        waits = (*ruling.waits.of.values(), ruling.waits.frozen, ruling.waits.on_deck)
        reasons = [w.why for w in waits if w is not None and w.cause == "person"]
        by_hand = any(j.by_person for j in idle.frozen) and any("frozen by hand, hold" in why for why in reasons)
        assert by_hand or [d for d in ruling.decisions if d.action in ("admit", "thaw")]


@pytest.mark.long
@settings(max_examples=150)
@given(views())
def test_whoever_a_persons_word_stopped_goes_on_before_new_ones(seen: View) -> None:
    """Taken back while memory is plentiful, it lets all go on up to the level, oldest first, and at once."""
    stopped = tuple(replace(j, by_word=True, by_person=False, alone=False) for j in seen.frozen)
    waiting = tuple(replace(c, alone=False) for c in seen.candidates)
    plenty = replace(seen, budget=4096 * GIB, available=2048 * GIB, pressure=None, last_freeze=99.9)
    after = replace(plenty, running=(), frozen=stopped, candidates=waiting, paused="no")
    level = level_of(after)
    decisions = decide(after, 100.0)
    assert acts(decisions, "thaw") == [j.jid for j in sorted(stopped, key=age_order)[:level]]
    assert len(acts(decisions, "admit")) == min(len(waiting), max(0, level - len(stopped)))


@settings(max_examples=20, deadline=None)
@given(need=st.floats(20, 40), others=st.floats(1, 6), seconds=st.integers(2, 6), cores=st.integers(2, 6))
def test_no_job_waits_for_ever_however_many_urgent_ones_come(
    need: float, others: float, seconds: int, cores: int
) -> None:
    """As many urgent jobs as there are cores wait all the time; one that needs much memory was there before them."""
    large = candidate(0, light(need, seconds=1), passed_over=(STARVED - 1) * PATIENCE)
    running: list[LiveJob] = []
    number = 0
    for now in range(2 * PATIENCE * seconds):
        running = [live(j.jid, j.curve, j.age + 1, started=j.started) for j in running if j.age + 1 < seconds]
        waiting = [candidate(1 + number + n, light(others, seconds=seconds)) for n in range(cores)]
        seen = view(running, [large, *waiting], cores=cores)
        born = set(acts(decide(seen, float(now)), "admit"))
        if large.jid in born:
            return
        running += [live(c.jid, c.curve, started=now) for c in waiting if c.jid in born]
        large, number = replace(large, passed_over=large.passed_over + len(born)), number + cores
    pytest.fail(f"passed over {large.passed_over} times")
