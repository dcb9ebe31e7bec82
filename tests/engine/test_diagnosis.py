"""Why a build failed, by what it printed and what was killed: the journal's own words about real logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.diagnose.around import line_at
from stoker.diagnose.killed_causes import cause_of_step, failures_first, placed
from stoker.diagnose.own_rules import usable_rules
from stoker.diagnose.step_cause import step_cause
from stoker.engine.aftermath import find_cause
from stoker.engine.aftermath.find_cause import NO_ROOM, find_causes
from stoker.engine.aftermath.recovery import GIVEN_UP
from stoker.model import events as ev
from stoker.model.diagnosis import MAX_CAUSES, MAX_CONTEXT, Action
from stoker.model.killed import killers_of
from stoker.model.reduce import reduce_all
from stoker.model.samples import MachineSample
from stoker.model.state import BuildState
from support.gitrepo import with_submodules

MIB = 2**20
LOGS = Path(__file__).parents[1] / "diagnose" / "logs"
SUBMODULE = b"  /src/third_party/gloo\n  does not contain a CMakeLists.txt file.\n"
KILLED = b"g++: fatal error: Killed signal terminated program cc1plus\n"


def state_of(*events: ev.Event, attempt: int = 1, log_start: int = 0) -> BuildState:
    begun: tuple[ev.Event, ...] = (
        ev.BuildStarted("b1", "b", ("ninja",), "/src", "/log", "host", 8, 2**34, "0"),
        ev.StepStarted(1, 1, "b", ("ninja",), 1, attempt, None, log_start),
    )
    return reduce_all(ev.Record(n, float(n), event) for n, event in enumerate([*begun, *events], 1))


def log(folder: Path, *parts: bytes) -> Path:
    path = folder / "output.log"
    path.write_bytes(b"".join(parts))
    return path


def ran(count: int) -> ev.Sampled:
    """A second in which so many jobs ran, of a build that may hold 600 MiB."""
    machine = MachineSample(0.0, (), 8.0, 600 * MIB, 0, 600 * MIB, "/docker/x")
    return ev.Sampled(machine, (), 0, 0, 0, "", 0)


def failed(data: bytes, output: str, start: bytes) -> ev.FailureFound:
    at = data.index(start)
    return ev.FailureFound(output, "c++ ...", 1, (), at, len(data))


@pytest.mark.parametrize("name", sorted(p.name for p in LOGS.glob("*.log"))[::7])
def test_the_place_is_where_the_line_is(tmp_path: Path, name: str) -> None:
    data = (LOGS / name).read_bytes()
    found = find_causes(log(tmp_path, data), state_of(), str(tmp_path))
    assert found.complete
    assert len(found.causes) <= MAX_CAUSES
    for cause in found.causes:
        assert cause.line is not None
        assert cause.offset is not None
        lines = data.split(b"\n")
        assert data[cause.offset :].split(b"\n")[0] == lines[cause.line - 1]
        here = cause.context[cause.line - cause.context_line]
        assert len(cause.context) <= MAX_CONTEXT
        assert here.strip()[:20] in " ".join(cause.text.split()) or cause.text.strip()[:20] in here


def test_what_an_attempt_before_died_of_is_not_the_cause(tmp_path: Path) -> None:
    path = log(tmp_path, KILLED, b"[1/2] cc\n", b"a.cpp:3:1: error: no such name\n")
    found = find_causes(path, state_of(attempt=2, log_start=len(KILLED)), str(tmp_path))
    assert [(c.rule, c.line) for c in found.causes] == [("compile-error", 3)]
    assert found.causes[0].context[0] == "[1/2] cc"


def test_the_job_is_the_failed_step_that_said_so(tmp_path: Path) -> None:
    data = b"[1/9] ok\nFAILED: x/a.o \nc++ a\na.cpp:3:1: error: no such name\n"
    state = state_of(failed(data, "x/a.o", b"FAILED"))
    assert find_causes(log(tmp_path, data), state, str(tmp_path)).causes[0].job == "x/a.o"


def test_nothing_known_and_nothing_to_read_are_told_apart(tmp_path: Path) -> None:
    assert find_causes(log(tmp_path, b"all is quiet\n"), state_of(), str(tmp_path)).complete
    assert not find_causes(tmp_path / "gone.log", state_of(), str(tmp_path)).complete


def test_a_failure_that_no_rule_knows_has_a_likely_place_and_no_action(tmp_path: Path) -> None:
    data = b"[1/9] frob\nFAILED: x \nfrob x\nFATAL no knobs\nninja: build stopped: subcommand failed.\n"
    found = find_causes(log(tmp_path, data), state_of(failed(data, "x", b"FAILED")), str(tmp_path))
    (cause,) = found.causes
    assert (cause.rule, cause.line, cause.job, found.action) == ("unknown-failure", 4, "x", None)
    assert data[cause.offset :].startswith(b"FATAL")


def test_of_a_large_output_the_part_before_the_first_failure_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_cause, "MAX_BYTES", 2 * MIB)
    noise = b"[1/9] Building CXX object\n" * 150_000
    data = noise + b"FAILED: a.o \na.cpp:3:1: error: no such name\n" + noise
    found = find_causes(log(tmp_path, data), state_of(failed(data, "a.o", b"FAILED")), str(tmp_path))
    assert not found.complete
    assert [(c.rule, c.line, c.job) for c in found.causes] == [("compile-error", 150_002, "a.o")]
    assert find_causes(log(tmp_path, noise, KILLED), state_of(), str(tmp_path)).causes[0].rule == "compiler-killed"


def test_a_hostile_output_comes_out_harmless_and_bounded(tmp_path: Path) -> None:
    nasty = b"\x1b]52;c;cm0=\x07\x1b[2J\xe2\x80\xae[/red] " + b"z" * 100_000 + b"\n"
    found = find_causes(log(tmp_path, nasty, KILLED, nasty * 3), state_of(), str(tmp_path))
    (cause,) = found.causes
    assert all(line.isprintable() and len(line) <= 301 for line in cause.context)


# -- what is safe to do about it -------------------------------------------------------------------------------


def test_submodules_come_from_git_and_not_from_the_output(tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "deps/one", "deps/two")
    path = log(tmp_path, b"  /src/third_party/--upload-pack=evil\n", SUBMODULE)
    (clone / "build").mkdir()
    found = find_causes(path, state_of(), str(clone / "build"))
    assert found.action == Action("update-submodules", names=("deps/one", "deps/two"))
    assert find_causes(path, state_of(), "/").action is None


@pytest.mark.parametrize(("level", "offered"), [(8, 4), (3, 1), (1, None)])
def test_fewer_jobs_are_half_as_many_and_none_where_one_ran(tmp_path: Path, level: int, offered: int | None) -> None:
    path = log(tmp_path, b"g++: internal compiler error: Segmentation fault signal terminated program cc1plus\n")
    action = find_causes(path, state_of(ev.LevelSet("auto", level)), str(tmp_path)).action
    assert action == (None if offered is None else Action("retry-at-lower-level", level=offered))


def test_jobs_that_crash_between_two_looks_ran_together(tmp_path: Path) -> None:
    said = b"g++: internal compiler error: Segmentation fault signal terminated program cc1plus\n"
    crashes = [ev.FailureFound(f"o{n}", "c++ ...", 1, (), 0, len(said)) for n in range(4)]
    scheduler = ev.SchedulerStarted(1, "ninja", 101, "/src", "1.13.2", 4)
    seen = (scheduler, ev.JobStarted(1, 1, 200, "o0", "other", 0.0), ran(1))
    state = state_of(ev.LevelSet("auto", 4), *seen, *crashes)
    assert find_causes(log(tmp_path, said), state, str(tmp_path)).action == Action("retry-at-lower-level", level=2)


def test_without_a_level_the_cores_count(tmp_path: Path) -> None:
    found = find_causes(log(tmp_path, KILLED), state_of(), str(tmp_path))
    assert found.action == Action("retry-at-lower-level", level=4)


# -- deaths ----------------------------------------------------------------------------------------------------


def deaths(data: bytes, *killed: ev.JobKilled, why: str, more: tuple[ev.Event, ...] = ()) -> BuildState:
    failures = [failed(data, k.output, b"FAILED: %s" % k.output.encode()) for k in killed]
    return state_of(ran(1), *failures, *killed, *more, ev.Decided("governor", GIVEN_UP, why))


def test_a_build_given_up_for_memory_says_so_in_figures_whatever_stands_before(tmp_path: Path) -> None:
    data = b"a.cpp:3:1: error: of a configure check\nFAILED: a.o \n" + KILLED
    why = "1 job was killed for memory: a.o; the profile allows no further attempt at this step"
    state = deaths(data, ev.JobKilled("a.o", "memory", 589 * MIB), why=why)
    found = find_causes(log(tmp_path, data), state, str(tmp_path))
    assert [c.rule for c in found.causes] == ["compiler-killed", "compile-error"]
    assert (found.causes[0].job, found.causes[0].line) == ("a.o", 3)
    assert found.facts == (
        "killed for lack of memory: a.o at 589 MiB",
        "the build's budget is 600 MiB (the cgroup x)",
        why,
    )
    assert found.action == Action("retry-alone", names=("a.o",))


def test_what_does_not_fit_even_alone_is_not_tried_again(tmp_path: Path) -> None:
    data = b"FAILED: a.o \n" + KILLED
    why = "a.o was killed for memory even alone, at 589 MiB of 600 MiB"
    state = deaths(data, ev.JobKilled("a.o", "memory", 589 * MIB), why=why)
    found = find_causes(log(tmp_path, data), state, str(tmp_path), frozenset({"a.o"}))
    assert found.action is None
    assert found.causes[0].remedy == NO_ROOM
    assert found.facts == ("the build's budget is 600 MiB (the cgroup x)", why)


def test_deaths_of_which_the_output_is_silent_are_told(tmp_path: Path) -> None:
    data = b"FAILED: a.o \ncc a\n"
    state = deaths(data, ev.JobKilled("a.o", "memory"), why="x")
    cause = find_causes(log(tmp_path, data), state, str(tmp_path)).causes[0]
    assert (cause.rule, cause.job, cause.line, cause.offset) == ("compiler-killed", "a.o", None, 0)


def test_an_error_beside_a_death_is_the_cause(tmp_path: Path) -> None:
    data = b"FAILED: b.o \nb.cpp:3:1: error: no such name\nFAILED: a.o \n" + KILLED
    state = deaths(
        data, ev.JobKilled("a.o", "memory"), why="b.o failed by itself", more=(failed(data, "b.o", b"FAILED: b.o"),)
    )
    assert find_causes(log(tmp_path, data), state, str(tmp_path)).causes[0].rule == "compile-error"


@pytest.mark.parametrize(
    ("by", "title"),
    [
        ("memory", "Out of memory: the kernel killed a compiler"),
        ("unknown", "A job was killed, and not by the kernel for lack of memory"),
        ("shed", "Out of memory: stoker ended a job to save the others"),
    ],
)
def test_the_kernel_is_blamed_only_for_what_it_has_counted(tmp_path: Path, by: ev.KilledBy, title: str) -> None:
    data = b"FAILED: a.o \n" + KILLED
    state = deaths(data, ev.JobKilled("a.o", by, 589 * MIB), why="x")
    for alone in (frozenset[str](), frozenset({"a.o"})):
        assert find_causes(log(tmp_path, data), state, str(tmp_path), alone).causes[0].title == title


@pytest.mark.parametrize(
    ("by", "title"),
    [
        ("memory", "Out of memory: the kernel killed a compiler"),
        ("unknown", "A job was killed, and not by the kernel for lack of memory"),
        ("person", "A job was killed by a person"),
    ],
)
def test_one_step_is_told_by_its_own_killer_whoever_killed_others(tmp_path: Path, by: ev.KilledBy, title: str) -> None:
    data, other = b"FAILED: a.o \ng++ a\n" + KILLED, b"FAILED: b.o \ng++ b\n"
    state = state_of(
        ev.JobKilled("a.o", by),
        ev.JobKilled("b.o", "unknown" if by == "memory" else "memory"),
        ev.FailureFound("a.o", "g++ a", 1, (), 0, len(data)),
        ev.FailureFound("b.o", "g++ b", 1, (), len(data), len(data + other)),
    )
    rules = usable_rules()
    with log(tmp_path, data, other).open("rb") as file:
        found = cause_of_step(file, state.failures[0], killers_of(state, state.failures[0]), rules)
        assert found is not None
        assert found.title == title
        unplaced = step_cause(file, 0, len(data), rules)
        assert unplaced is not None
        named = failures_first(file, [placed(file, line_at(file, 0), unplaced, state.failures)], state, rules)
        assert [cause.title for cause in named] == [title]


def test_a_silent_compiler_that_was_killed_from_outside_is_no_question_of_memory(tmp_path: Path) -> None:
    data = b"FAILED: a.o \nnvcc -c a.cu -o a.o\n"
    state = state_of(ev.JobKilled("a.o", "unknown"), ev.FailureFound("a.o", "nvcc", 255, (), 0, len(data)))
    with log(tmp_path, data).open("rb") as file:
        found = cause_of_step(file, state.failures[0], killers_of(state, state.failures[0]), usable_rules())
    assert found is not None
    assert found.heading == "A job was killed, and not by the kernel for lack of memory"


@pytest.mark.parametrize(
    ("used", "source", "notice", "title"),
    [
        (100, "/docker/x", "", "Something was killed, and memory was not short"),
        (599, "/docker/x", "", "A step was killed, most likely for memory"),
        (599, "machine", "", "A step was killed, most likely for memory"),
        (599, "--memory", "", "Something was killed, and memory was not short"),
        (100, "machine", "the kernel killed 1 process for lack of memory", "A step was killed, most likely for memory"),
        (None, "", "", "A step was killed, most likely for memory"),
    ],
)
@pytest.mark.parametrize("said", [b"Killed\n", b"sh: line 1:  4242 Killed                  ninja -C out\n"])
def test_a_build_tool_that_was_killed_was_so_for_memory_only_if_memory_was_short(
    tmp_path: Path, said: bytes, used: int | None, source: str, notice: str, title: str
) -> None:
    events: list[ev.Event] = [ev.Noticed("warning", notice)] if notice else []
    if used is not None:
        machine = MachineSample(0.0, (), 8.0, 600 * MIB, used * MIB, 0, source)
        events.append(ev.Sampled(machine, (), 0, 0, 0, "", 0))
    found = find_causes(log(tmp_path, b"[1/9] CXX a.o\n", said), state_of(*events), str(tmp_path))
    assert (found.causes[0].rule, found.causes[0].title) == ("step-killed", title)
    not_short = "not short" in title
    assert (found.action is None) is not_short, "fewer jobs at once are no remedy"
    assert (f"at most {used} MiB of 600 MiB" in found.causes[0].why) is not_short


HEADER = b"FAILED: b.o \nc++ -c b.cpp -o b.o\nb.cpp:3:10: fatal error: nccl_shim.h: No such file or directory\n"
KILLED_STEP = b"FAILED: a.o \nc++ -c a.cpp -o a.o\n" + KILLED


def beside(*parts: bytes, by: ev.KilledBy, more: bytes = b"b.o") -> BuildState:
    """A build in which a.o was killed, and another step failed by itself."""
    data = b"".join(parts)
    ends = {output: data.index(part) + len(part) for output in (b"a.o", more) for part in parts if output in part}
    failures = [
        ev.FailureFound(o.decode(), "c++ ...", 1, (), data.index(b"FAILED: " + o), end) for o, end in ends.items()
    ]
    given_up = ev.Decided("governor", GIVEN_UP, "b.o failed by itself; 1 job was killed beside it: a.o")
    return state_of(ran(1), ev.JobKilled("a.o", by, 193 * MIB), *failures, given_up)


@pytest.mark.parametrize("parts", [(KILLED_STEP, HEADER), (HEADER, KILLED_STEP)])
@pytest.mark.parametrize(
    ("by", "title"),
    [
        ("memory", "Out of memory: the kernel killed a compiler"),
        ("unknown", "A job was killed, and not by the kernel for lack of memory"),
        ("shed", "Out of memory: stoker ended a job to save the others"),
        ("person", "A job was killed by a person"),
    ],
)
def test_a_failure_comes_before_a_kill_beside_it_which_is_told_by_its_killer(
    tmp_path: Path, by: ev.KilledBy, title: str, parts: tuple[bytes, bytes]
) -> None:
    found = find_causes(log(tmp_path, *parts), beside(*parts, by=by), str(tmp_path))
    assert [(c.rule, c.job) for c in found.causes] == [("missing-header", "b.o"), ("compiler-killed", "a.o")]
    assert found.causes[1].title == title
    assert "stoker run" not in found.causes[1].remedy  # it runs under stoker


def test_a_failure_that_no_rule_knows_comes_before_a_kill_too(tmp_path: Path) -> None:
    parts = (KILLED_STEP, b"FAILED: b.o \nfrob b.o\nFATAL no knobs\n")
    found = find_causes(log(tmp_path, *parts), beside(*parts, by="unknown"), str(tmp_path))
    assert [(c.rule, c.line) for c in found.causes] == [("unknown-failure", 6), ("compiler-killed", 3)]
    assert found.action is None


def test_a_make_whose_compiler_was_killed_is_no_failure_beside_the_kill(tmp_path: Path) -> None:
    data = b"FAILED: all \nmake -C sub\n" + KILLED + b"make: *** [Makefile:2: a.o] Error 1\n"
    failure = ev.FailureFound("all", "make -C sub", 2, (), 0, len(data))
    state = state_of(ran(1), ev.JobKilled("a.o", "unknown"), failure)
    cause = find_causes(log(tmp_path, data), state, str(tmp_path)).causes[0]
    assert (cause.rule, cause.title) == (
        "compiler-killed",
        "A job was killed, and not by the kernel for lack of memory",
    )
