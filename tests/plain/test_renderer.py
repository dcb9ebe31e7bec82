"""What the plain client tells, and that it tells each thing once."""

import re
from dataclasses import replace
from typing import Any, Literal

import pytest

from stoker.model.cache_use import CacheUse
from stoker.model.report import DeviceReport, FileReport, HeldArch, Problem, Report, RequestedArch
from stoker.model.samples import RamDisk
from stoker.model.state import BuildState, DecisionEntry, Failure, Job, Level, Notice, RamDiskUse, Step
from stoker.model.update import Link, Update
from stoker.show.plain import MAX_BURST, PlainRenderer
from stoker.show.verification_text import headline

from .fakes import START, done, machine, state

LEVEL = Level("auto", 16, 128)
CLOCK = re.compile(r"^stoker \d\d:\d\d:\d\d  ")


def tell(renderer: PlainRenderer, s: BuildState, after: float = 0.0, link: Link = "live", note: str = "") -> list[str]:
    return [CLOCK.sub("", line) for line in renderer.update(Update(s, link, note), START + after)]


def test_a_scheduler_whose_plan_comes_late_is_told_before_what_failed_in_it() -> None:
    failure = Failure(START + 1, "f.o", "", 1, (), 0, 0)
    lines = tell(PlainRenderer(), state(failures=(failure,)), 2)
    assert lines[-2:] == ["ninja 1.13.2 in out: 100 jobs", "FAILED f.o (exit 1)"]


def test_the_start_tells_how_to_see_more() -> None:
    renderer = PlainRenderer()
    assert tell(renderer, state()) == [
        "stoker: demo (demo-1): ninja -C out",
        "stoker: see it in full from any terminal: stoker attach demo-1",
        "ninja 1.13.2 in out: 100 jobs",
    ]
    assert tell(renderer, state()) == []


def test_progress_comes_at_intervals_and_at_tenths() -> None:
    renderer = PlainRenderer(interval=10)
    tell(renderer, state())
    assert tell(renderer, state(5), 9.9) == []
    assert tell(renderer, state(5), 10.0) == ["5/100  5 %  0 running  mem 18.2/23.4 GiB  ETA 25 min (24–31 min)"]
    assert tell(renderer, state(9), 11.0) == []
    assert tell(renderer, state(10), 12.0) == ["10/100  10 %  0 running  mem 18.2/23.4 GiB  ETA 25 min (24–31 min)"]
    assert tell(renderer, state(11), 13.0) == []
    assert len(tell(renderer, state(57), 14.0)) == 1
    assert tell(renderer, state(59), 15.0) == []


def test_progress_counts_what_runs_and_what_waits() -> None:
    kinds: tuple[Literal["running", "frozen", "on_deck"], ...] = ("running", "running", "frozen", "on_deck")
    jobs = {i: Job(i, 1, i, f"o{i}", "cxx", START, state=kind) for i, kind in enumerate(kinds, 1)}
    renderer = PlainRenderer()
    tell(renderer, state())
    line = tell(renderer, state(1, jobs=jobs, estimate=None), 60)[0]
    assert line == "1/100  1 %  2 running  1 on deck  1 frozen  mem 18.2/23.4 GiB"


def test_temporary_files_in_memory_are_told_and_what_they_and_the_disk_took_in_the_end() -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    machine = state().machine
    assert machine is not None
    machine = replace(machine, ramdisk=RamDisk("/dev/shm/x", 2**29, 4 * 2**30))
    line = tell(renderer, state(1, machine=machine, estimate=None), 60)[0]
    assert line == "1/100  1 %  0 running  mem 18.2/23.4 GiB  RAM disk 512/4096 MiB"
    end = replace(done(), machine=machine, disk_written=3 * 2**30, ramdisk=RamDiskUse(2**30))
    assert tell(renderer, end, 754, "ended")[-1] == (
        "stoker: done in 12:34, 100 jobs, peak 5.0 GiB, 3.0 GiB written to disk, at most 1.0 GiB in the RAM disk"
    )


def test_a_compiler_cache_is_told_with_its_rate_and_in_the_end_with_what_it_saved() -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    use = CacheUse("ccache", 100, 20, 3, size=2**30, size_limit=25 * 2**30, saved_seconds=720.0, saved_jobs=90)
    line = tell(renderer, state(1, cache=use, estimate=None), 60)[0]
    assert line == "1/100  1 %  0 running  mem 18.2/23.4 GiB  ccache 83.3 % hits"
    assert tell(renderer, replace(done(), cache=use), 754, "ended")[-3:] == [
        "stoker: ccache: 100 hits, 20 misses (83.3 % hits); holds 1.0 GiB of 25.0 GiB",
        "stoker: saved: about 12 min of compiling, from earlier times of 90 of the hits",
        "stoker: done in 12:34, 100 jobs, peak 5.0 GiB",
    ]


def test_of_a_cache_nothing_is_told_that_nobody_knows() -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    use = CacheUse("sccache", 0, 0, 4, errors=1, exact=False)
    assert "sccache" not in tell(renderer, state(1, cache=use, estimate=None), 60)[0]
    assert tell(renderer, replace(done(), cache=use), 754, "ended")[-2:] == [
        "stoker: sccache: 0 hits, 0 misses, 1 error; includes other builds",
        "stoker: done in 12:34, 100 jobs, peak 5.0 GiB",
    ]


def test_without_a_scheduler_it_tells_what_runs() -> None:
    renderer = PlainRenderer()
    early = state(schedulers={}, activity="cmake -S . -B build", estimate=None, machine=None)
    tell(renderer, early)
    assert tell(renderer, early, 60) == ["cmake -S . -B build"]


def test_an_unknown_total_is_not_guessed() -> None:
    renderer = PlainRenderer()
    tell(renderer, state(total=None))
    assert tell(renderer, state(7, total=None, estimate=None), 60)[0].startswith("7 done  0 running")


def test_steps_notices_decisions_and_failures_are_told_once() -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    news = state(
        step=Step("compile", 2, 3),
        notices=(Notice(START, "warning", "no pidfd here"), Notice(START, "info", "hello")),
        decisions=(DecisionEntry(START, "governor", "12→11", "hold x (needs 9 GiB)"),),
        failures=(Failure(START, "a.o", "g++ a.cpp", 1, (), 0, 0),),
    )
    assert tell(renderer, news) == [
        "step 2 of 3: compile",
        "warning: no pidfd here",
        "hello",
        "12→11 (hold x (needs 9 GiB))",
        "FAILED a.o (exit 1)",
    ]
    assert tell(renderer, news) == []
    more = replace(news, decisions=(*news.decisions, DecisionEntry(START + 1, "ada", "stop the build", "by request")))
    assert tell(renderer, more) == ["ada: stop the build (by request)"]


def governed(level: Level = LEVEL, *, later: float = 0.0, decisions: tuple[DecisionEntry, ...] = ()) -> BuildState:
    kinds: tuple[Literal["running", "on_deck"], ...] = ("running", "on_deck", "on_deck")
    jobs = {i: Job(i, 1, i, f"o{i}", "cxx", START, state=kind) for i, kind in enumerate(kinds, 1)}
    return state(level=level, jobs=jobs, time=START + later, decisions=decisions)


def test_the_level_and_pauses_are_told_when_they_change() -> None:
    renderer = PlainRenderer()
    assert tell(renderer, governed())[-1] == "level 16 (automatic)"
    assert tell(renderer, governed(replace(LEVEL, window=64))) == []
    assert tell(renderer, governed(replace(LEVEL, target=12))) == ["level 12 (automatic); 1 run, 2 on deck"]
    unguarded = Level("manual", 12, 128, "soft", guarded=False)
    assert tell(renderer, governed(unguarded)) == [
        "paused, nothing new starts; level 12 (by hand); ninja starts only 8; 1 run, 2 on deck; memory is not guarded"
    ]
    assert tell(renderer, governed(replace(unguarded, paused="hard")))[0].startswith("everything is frozen; level 12")


def test_the_start_reads_the_same_whenever_one_looks() -> None:
    """A viewer sees the level before the plan, a reader of the journal both at once, with more on deck."""
    full = governed(later=1)
    first = replace(full, time=START, schedulers={1: replace(full.schedulers[1], plan=None)}, jobs={})
    live, late = PlainRenderer(), PlainRenderer()
    seen = tell(live, first) + tell(live, full, 1)
    assert seen == tell(PlainRenderer(), full, 1)
    shell = replace(first, schedulers={})
    assert tell(late, shell) + tell(late, first) + tell(late, full, 1) == seen, "also where a shell starts the ninja"
    assert seen[-2:] == ["ninja 1.13.2 in out: 100 jobs", "level 16 (automatic)"]


def test_the_level_does_not_wait_long_for_a_plan_and_never_for_that_of_make() -> None:
    full = governed()
    without = replace(full, schedulers={1: replace(full.schedulers[1], plan=None)})
    made = replace(full, schedulers={1: replace(full.schedulers[1], tool="make", plan=None)})
    assert tell(PlainRenderer(), made)[-1] == "level 16 (automatic)"
    renderer = PlainRenderer()
    nothing = replace(full, schedulers={}, jobs={})
    assert not any("level 16" in line for line in tell(renderer, nothing))
    assert any("level 16" in line for line in tell(renderer, replace(nothing, time=START + 60), 60))
    renderer = PlainRenderer()
    assert "level 16 (automatic)" not in tell(renderer, without)
    assert tell(renderer, replace(without, time=START + 60), 60)[0] == "level 16 (automatic)"


def test_what_a_person_set_is_told_once_and_with_the_name() -> None:
    renderer = PlainRenderer()
    tell(renderer, governed())
    word = DecisionEntry(START + 5, "ada", "level 16 → 12", "asked for; 1 run, 2 on deck")
    changed = governed(Level("manual", 12, 128), later=5, decisions=(word,))
    assert tell(renderer, changed) == ["ada: level 16 → 12 (asked for; 1 run, 2 on deck)"]
    later = replace(changed, level=Level("manual", 8, 128), time=START + 60)
    assert tell(renderer, later) == ["level 8 (by hand); 1 run, 2 on deck"]


def test_routine_is_summed_up_once_a_minute_and_what_is_grave_is_told_each_time() -> None:
    renderer = PlainRenderer(interval=10**6)
    tell(renderer, governed())
    decisions: list[DecisionEntry] = []
    told: list[str] = []
    for i in range(600):  # ten minutes of a build short of memory: three decisions each second
        decisions += [
            DecisionEntry(START + i, "governor", f"{verb} o{i}", "9 GiB") for verb in ("hold", "admit", "thaw")
        ]
        if i % 200 == 0:
            decisions.append(DecisionEntry(START + i, "governor", f"freeze big{i}", "1.1 GiB left"))
        told += tell(renderer, governed(later=i, decisions=tuple(decisions[-500:])), after=i)
    freezes = [line for line in told if "freeze" in line]
    assert freezes == [f"freeze big{i} (1.1 GiB left)" for i in (0, 200, 400)]
    sums = [line for line in told if line not in freezes]
    assert len(sums) == 10
    assert sums[0] == "1 started, 1 held back, 1 thawed; last: thaw o0 (9 GiB)"
    assert sums[1] == "60 started, 60 held back, 60 thawed; last: thaw o60 (9 GiB)"


def test_a_single_hold_is_told_whole() -> None:
    renderer = PlainRenderer()
    tell(renderer, governed())
    hold = DecisionEntry(START + 1, "governor", "hold flash.o", "needs ~9.1 GiB, 6.2 GiB unpromised above the reserve")
    line = "hold flash.o (needs ~9.1 GiB, 6.2 GiB unpromised above the reserve)"
    assert tell(renderer, governed(decisions=(hold,))) == [line]


def test_a_person_who_freezes_or_starts_a_job_is_always_told() -> None:
    renderer = PlainRenderer()
    tell(renderer, governed())
    words = tuple(
        DecisionEntry(START + i, "ada", f"{verb} o1", "by request") for i, verb in enumerate(("thaw", "hold"))
    )
    assert tell(renderer, governed(decisions=words)) == ["ada: thaw o1 (by request)", "ada: hold o1 (by request)"]


def test_a_step_that_runs_again_is_told_and_its_failures_afresh() -> None:
    renderer = PlainRenderer()
    failure = Failure(START, "a.o", "g++ a.cpp", 1, (), 0, 0)
    tell(renderer, state(step=Step("build", 1, 1), failures=(failure,)))
    again = state(step=Step("build", 1, 1, attempt=2), failures=(replace(failure, time=START + 9),))
    assert tell(renderer, again) == ["step 1 of 1, attempt 2: build", "FAILED a.o (exit 1)"]
    assert tell(renderer, again) == []


def test_decisions_that_push_older_ones_out_are_still_told_once() -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    all_of_them = [DecisionEntry(START + i, "governor", f"d{i}", "r") for i in range(20)]
    told: list[str] = []
    for i in range(1, 21):
        told += tell(renderer, state(decisions=tuple(all_of_them[max(0, i - 5) : i])))
    assert told == [f"d{i} (r)" for i in range(20)]


def test_a_late_viewer_is_not_flooded() -> None:
    decisions = tuple(DecisionEntry(START + i, "governor", f"d{i}", "r") for i in range(300))
    lines = [line for line in tell(PlainRenderer(), state(decisions=decisions)) if "(r)" in line or "earlier" in line]
    assert lines[0] == f"{300 - MAX_BURST} earlier decisions"
    assert lines[-1] == "d299 (r)"
    assert len(lines) == MAX_BURST + 1


def test_one_line_left_out_is_one_decision() -> None:
    decisions = tuple(DecisionEntry(START + i, "governor", f"d{i}", "r") for i in range(MAX_BURST + 1))
    assert "1 earlier decision" in tell(PlainRenderer(), state(decisions=decisions))


def test_lines_come_in_the_order_of_their_times() -> None:
    renderer = PlainRenderer()
    late = governed(
        later=50,
        decisions=(
            DecisionEntry(START + 20, "governor", "freeze a.o", "r"),
            DecisionEntry(START + 45, "ada", "pause", "r"),
        ),
    )
    failures = (Failure(START + 30, "b.o", "g++ b.cpp", 1, (), 0, 0),)
    late = replace(late, failures=failures, notices=(Notice(START + 40, "info", "hello"),))
    lines = renderer.update(Update(late, "live", ""), START + 51)[2:]
    words = ("ninja 1.13.2", "freeze a.o", "FAILED b.o", "hello", "pause", "level 16")
    assert [word for line in lines for word in words if word in line] == list(words), lines
    known_late = replace(late, notices=(*late.notices, Notice(START + 47, "info", "more")))
    lines += renderer.update(Update(known_late, "live", ""), START + 52)
    assert "more" in lines[-1]
    stamps = [line[7:15] for line in lines]
    assert stamps == sorted(stamps)


def test_a_lost_link_is_told_and_its_return_too() -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    assert tell(renderer, state(), 60, "lost", "no answer") == [
        "link to the build lost (no answer); the build itself continues; looking for it"
    ]
    assert tell(renderer, state(50), 90, "lost") == []
    assert tell(renderer, state(50), 91)[0] == "link to the build is back"


def test_after_a_failure_with_which_ninja_stops_the_lines_say_what_does_not_run() -> None:
    running = state(37)
    ninja = replace(running.schedulers[1], failed=1, failures=1)
    renderer = PlainRenderer()
    tell(renderer, running)
    stopping = replace(running, schedulers={1: ninja})
    (line,) = tell(renderer, stopping, 60)
    assert "1 failed  62 will not run" in line
    assert "ETA" not in line
    over = replace(
        stopping, schedulers={1: replace(ninja, ended=START + 61)}, outcome="failed", phase="failed", exit_code=1
    )
    assert "failed with exit status 1" in (end := tell(renderer, over, 62, "ended")[-1])
    assert ", 62 jobs not run;" in end


def test_a_link_that_has_not_been_there_yet_is_not_lost() -> None:
    renderer = PlainRenderer()
    told = tell(renderer, BuildState(), 2, "lost", "the engine is starting")
    assert told == ["the build is running; its status follows in a moment (the engine is starting)"]
    assert not any("link" in line for line in tell(renderer, state(1), 3))
    assert "link to the build lost" in tell(renderer, state(1), 4, "lost")[0]


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (done(), "stoker: done in 12:34, 100 jobs, peak 5.0 GiB"),
        (
            replace(done(), outcome="failed", exit_code=2, reason="no luck"),
            "stoker: failed with exit status 2 after 12:34, peak 5.0 GiB: no luck; output: /somewhere/output.log",
        ),
        (
            replace(done(), outcome="failed", exit_code=2, reason="exit status 2"),
            "stoker: failed with exit status 2 after 12:34, peak 5.0 GiB; output: /somewhere/output.log",
        ),
        (
            replace(done(), outcome="failed", exit_code=2, reason="step x: exit status 2: bad"),
            "stoker: failed with exit status 2 after 12:34, peak 5.0 GiB: step x: bad; output: /somewhere/output.log",
        ),
        (
            replace(done(), outcome="stopped", exit_code=143, reason="stopped by ada"),
            "stoker: stopped by ada after 12:34",
        ),
        (
            replace(done(), outcome="stopped", exit_code=143, reason="stopped: the supervisor was sent a signal"),
            "stoker: stopped after 12:34: the supervisor was sent a signal",
        ),
        (replace(done(), outcome=None, ended=None, time=START + 5), "stoker: the build was lost after 0:05"),
    ],
)
def test_the_end_is_one_line(ended: BuildState, line: str) -> None:
    renderer = PlainRenderer()
    tell(renderer, state())
    assert tell(renderer, ended, 754, "ended") == [line]
    assert tell(renderer, ended, 755, "ended") == []


def test_hostile_names_do_no_harm() -> None:
    evil = "a\x1b]52;c;x\x07\x1b[2J\nb\u202ec"
    renderer = PlainRenderer(colour=True)
    news = state(
        name=evil,
        id=evil,
        command=(evil, "x" * 10_000),
        failures=(Failure(START, evil, evil, 1, (evil,), 0, 0),),
        notices=(Notice(START, "error", evil),),
        decisions=(DecisionEntry(START, evil, evil, evil),),
        reason=evil,
        log_path=evil,
        outcome="failed",
    )
    for line in renderer.update(Update(news, "ended"), START):
        assert re.sub(r"\x1b\[[0-9;]*m", "", line).isprintable()
        assert len(line) < 1000


def test_colour_only_where_it_is_wanted() -> None:
    news = state(1, decisions=(DecisionEntry(START, "governor", "12→11", "größer"),), name="größer")
    lines = PlainRenderer(interval=0).update(Update(news, "live"), START + 1)
    assert not any("\x1b" in line for line in lines)
    assert any("\x1b[" in line for line in PlainRenderer(colour=True).update(Update(news, "live"), START + 1))


FOUND = Report(
    ok=False,
    files=(FileReport("/b/libk.so", 9, archs=(HeldArch("cubin", "sm_80", 1, 9),), verdicts=("native", "no", "no")),),
    requested=(RequestedArch("sm_80", "present", 9), RequestedArch("sm_90", "missing")),
    devices=(
        DeviceReport("NVIDIA A100", "8.0", "native", "machine code for 1 of 1 modules"),
        *(DeviceReport("NVIDIA H100", "9.0", "no", "no code for sm_90"),) * 2,
    ),
    problems=(
        Problem("error", "/b/libk.so", "will not run on NVIDIA H100", "build with 9.0"),
        Problem("warning", "/b/libk.so", "\x1b[2J[bold]"),
        Problem("info", "/b/libk.so", "some note"),
    ),
)


def test_the_verdict_comes_once_and_before_the_end() -> None:
    renderer = PlainRenderer()
    told = [*tell(renderer, state()), *tell(renderer, state(verification=FOUND))][3:]
    verdict = "sm_90 asked for and missing; will not run on 2 NVIDIA H100 (9.0); runs natively on NVIDIA A100 (8.0)"
    assert told == [
        f"stoker: verified: {verdict}",
        "stoker:   NVIDIA H100 (9.0): will not run: no code for sm_90",
        "stoker:   error: libk.so: will not run on NVIDIA H100 -> build with 9.0",
        "stoker:   warning: libk.so: [bold]",
    ]
    assert tell(renderer, done(verification=FOUND)) == ["stoker: done in 12:34, 100 jobs, peak 5.0 GiB"]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "runs natively on NVIDIA A100 (8.0)"),
        ({"devices": ()}, "holds sm_80; no GPU here to judge for"),
        (
            {"devices": (), "requested": (RequestedArch("sm_80", "present", 9),)},
            "holds sm_80 as asked for; no GPU here to judge for",
        ),
        (
            {"devices": (), "requested": (RequestedArch("sm_90", "present", 9), RequestedArch("sm_80", "extra", 9))},
            "holds sm_80; no GPU here to judge for",
        ),
        ({"devices": (), "files": ()}, "no device code was found"),
        (
            {"devices": (), "verdict": "part", "problems": (Problem("warning", "/b/prog", "no GPU runs all of it"),)},
            "prog: no GPU runs all of it; holds sm_80; no GPU here to judge for",
        ),
        (
            {"devices": (*FOUND.devices[:1], DeviceReport("L4", "8.9", "part", ""))},
            "runs in part on L4 (8.9); runs natively on NVIDIA A100 (8.0)",
        ),
        ({"ok": False, "problems": FOUND.problems[:1]}, "1 error; runs natively on NVIDIA A100 (8.0)"),
        (
            {"devices": (DeviceReport("compute capability 9.0", "9.0", "ptx-jit", ""),)},
            "slow first start on compute capability 9.0",
        ),
        (
            {"condition": "librmm-cu12, not installed here, brings librmm.so"},
            "runs natively on NVIDIA A100 (8.0), if librmm-cu12, not installed here, brings librmm.so",
        ),
    ],
)
def test_the_verdict_in_one_line(changes: dict[str, Any], verdict: str) -> None:
    found = replace(FOUND, ok=True, requested=(), devices=FOUND.devices[:1], problems=())
    assert headline(replace(found, **changes))[1] == verdict


def test_a_small_budget_is_shown_in_mebibytes() -> None:
    renderer = PlainRenderer()
    small = machine(0.43, 0.59)
    tell(renderer, state(machine=small))
    (line,) = tell(renderer, state(1, machine=small), 60)
    assert "mem 440/604 MiB" in line
