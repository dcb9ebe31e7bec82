"""From what a build said, and what the kernel counted, to another attempt: across attempts and engines."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.decide.recovery.deaths import MAX_RERUNS, MORE, Again, GiveUp
from stoker.engine.aftermath.recovery import PART, Recovery
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.engine.jobs.output_watch import OutputWatch
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.samples import MachineSample
from stoker.model.state import MAX_FAILURES, BuildState
from stoker.record.journal_reader import load_state
from stoker.record.journal_writer import JournalWriter
from stoker.sense.proc.jobs import JobProcess
from support.jobs import managed_job, use_of
from support.kernel_log import needs_kernel_log
from support.memory_group import MemoryGroup

DATA = Path(__file__).parent.parent / "data" / "deaths"
GIB = 2**30
MACHINE = MachineSample(50.0, (50,), 1.0, 6 * GIB, GIB, 5 * GIB, "/group")
ERROR = b"FAILED: [code=1] b.o \ng++ -c b.cpp -o b.o\nb.cpp:1:1: error: 'nope' was not declared\n"
KILLED = b"FAILED: [code=1] a.o \ng++ -c a.cpp -o a.o\ng++: fatal error: Killed signal terminated program cc1plus\n"
SILENT = b"FAILED: [code=137] a.o \ng++ -c a.cpp -o a.o\n"
STOPPED = b"ninja: build stopped: subcommand failed.\n"


class Build:
    """One build's folder, with an engine that writes down what it is told; `restart` kills it."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._folder, self._pid = folder, pid
        self._time = 1000.0
        self.log = folder / "output.log"
        self.log.touch()
        self._open()
        self.tell(ev.BuildStarted("b-1", "b", ("ninja",), "/src", str(self.log), "host", 2, 8 * GIB, "0"))
        self.begin(1)

    def _open(self) -> None:
        self._journal = JournalWriter(self._folder / "journal.jsonl")
        self.state: BuildState = load_state(self._folder / "journal.jsonl")
        self._watch = OutputWatch(self.log, self.state)
        self.owners: dict[int, ManagedJob] = {}
        self.recovery = Recovery(self._pid, self.log, self.state, lambda pid: self.owners.get(pid))

    def restart(self) -> None:
        """Another engine, which knows only the files."""
        self.close()
        self._open()

    def close(self) -> None:
        self._journal.close()
        self.recovery.close()

    def tell(self, *events: ev.Event) -> None:
        for event in events:
            self._time += 1
            record, _ = self._journal.append(event, self._time)
            self.state = reduce(self.state, record)
            self.recovery.heard([event])
        self._journal.flush()

    def begin(self, attempt: int) -> None:
        count, said = self.recovery.oom_kills(), self.log.stat().st_size
        self.tell(ev.StepStarted(1, 1, "b", ("ninja",), 7, attempt, count, said))
        self.tell(ev.SchedulerStarted(attempt, "ninja", 7, "/src", "1.13", 4))
        self.tell(ev.Sampled(MACHINE, (), 0, 1, 0, "", 0))

    def says(self, *text: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(b"".join(text))
        self.tell(*self._watch.read_all([]))

    def ends(self, output: str, peak: int | None = None) -> None:
        """A job has failed, as its scheduler's book tells."""
        self.tell(
            ev.JobFinished(None, self.state.step.attempt if self.state.step else 1, output, "cxx", 9, "failed", peak)
        )

    def verdict(self) -> Again | GiveUp:
        found, events = self.recovery.verdict(self.state)
        self.tell(*events)
        return found

    def decided(self) -> list[tuple[str, str, str]]:
        return [(d.who, d.what, d.why) for d in self.state.decisions]


def member(output: str, *, rss: int = 0, command: str = "", jid: int = 1, pid: int = 9) -> ManagedJob:
    """A live job of the build."""
    argv = ("/bin/sh", "-c", command) if command else ()
    known = JobProcess(pid, 1, (7, 1), 1000.0, argv, output, "other")
    job = managed_job(jid, use=use_of(known, rss=rss))
    job.measure(replace(job.seen, pids=(pid,)))
    return job


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    with MemoryGroup(64 << 20) as made:
        yield made


@pytest.fixture
def build(tmp_path: Path, group: MemoryGroup) -> Iterator[Build]:
    """A build in a memory group of its own, in which the kernel really kills."""
    with subprocess.Popen(group.wrap(["sleep", "1000"])) as inside:
        while inside.pid not in group.pids():
            pass
        made = Build(tmp_path, inside.pid)
        yield made
        made.close()
        inside.kill()


def overrun(group: MemoryGroup) -> int:
    """Let the kernel kill one process in the group for its memory; its pid."""
    script = "open('/proc/self/oom_score_adj', 'w').write('900'); held = [bytearray(2**20) for _ in range(500)]"
    with subprocess.Popen(group.wrap([sys.executable, "-I", "-S", "-c", script])) as done:
        assert done.wait() == -signal.SIGKILL
    return done.pid


def killed(build: Build) -> list[tuple[str, str, int]]:
    return [(k.output, k.by, k.attempt) for k in build.state.killed]


def test_what_the_kernel_killed_runs_again_first_and_alone(build: Build, group: MemoryGroup) -> None:
    overrun(group)
    build.says(KILLED, KILLED.replace(b"a.", b"b."), STOPPED)
    found = build.verdict()
    assert isinstance(found, Again)
    assert build.recovery.must_run_alone() == {"a.o", "b.o"} == {*found.first}
    why = "2 jobs were killed for memory: a.o, b.o; they run first and alone"
    assert build.decided() == [("governor", "run the step again", why)]
    assert killed(build) == [("a.o", "memory", 1), ("b.o", "memory", 1)]


@needs_kernel_log
def test_a_death_is_told_at_once_with_whom_the_kernel_took(build: Build, group: MemoryGroup) -> None:
    assert build.recovery.look() == []
    overrun(group)
    (event,) = build.recovery.look()
    assert isinstance(event, ev.Noticed)
    assert event.severity == "warning"
    assert event.text.startswith("the kernel killed 1 process for lack of memory: python")
    assert " MiB)" in event.text
    assert build.recovery.look() == []


def test_sigkill_without_a_count_is_from_an_unknown_sender(build: Build) -> None:
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)
    assert killed(build) == [("a.o", "unknown", 1)]


def test_a_death_that_an_engine_saw_counts_for_the_next_one(build: Build, group: MemoryGroup) -> None:
    overrun(group)
    build.restart()
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)
    assert killed(build) == [("a.o", "memory", 1)]


@needs_kernel_log
def test_deaths_of_an_earlier_attempt_are_no_evidence_for_this_one(build: Build, group: MemoryGroup) -> None:
    overrun(group)
    build.says(KILLED, STOPPED)
    build.verdict()
    build.begin(2)
    build.restart()
    build.says(KILLED.replace(b"a.", b"c."), STOPPED)
    assert isinstance(build.verdict(), Again)
    assert killed(build)[1:] == [("c.o", "unknown", 2)]
    assert build.recovery.must_run_alone() == {"c.o"}
    assert set(build.recovery.needs()) == {"a.o"}


@needs_kernel_log
@pytest.mark.parametrize("restart", [False, True])
def test_an_output_that_dies_alone_as_well_is_given_up_in_figures(
    build: Build, group: MemoryGroup, restart: bool
) -> None:
    overrun(group)
    build.says(KILLED, STOPPED)
    build.verdict()
    build.begin(2)
    if restart:
        build.restart()
    assert build.recovery.needs()["a.o"] >= MORE * (build.state.killed[0].rss or 0) > 0
    overrun(group)
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)
    build.begin(3)
    if restart:
        build.restart()
    assert build.recovery.must_run_alone() == {"a.o"}
    assert not build.recovery.needs()
    overrun(group)
    overrun(group)
    build.says(KILLED, STOPPED)
    build.ends("a.o", int(5.2 * GIB))
    found = build.verdict()
    assert found == GiveUp("a.o was killed for memory even alone, at 5.2 GiB of 6.0 GiB")
    assert build.decided()[-1] == ("governor", "do not run the step again", found.why)


@needs_kernel_log
def test_the_kernels_own_figure_is_better_than_a_look_each_second(build: Build, group: MemoryGroup) -> None:
    build.says(KILLED, STOPPED)
    build.verdict()
    build.begin(2)
    overrun(group)
    build.says(KILLED, STOPPED)
    build.ends("a.o", 2**20)
    why = build.verdict().why
    assert why.startswith("a.o was killed for memory even alone, at ")
    assert "at 1.0 MiB" not in why


def test_a_real_error_is_never_tried_again(build: Build, group: MemoryGroup) -> None:
    overrun(group)
    build.says(KILLED, ERROR, STOPPED)
    found = build.verdict()
    assert found == GiveUp("b.o failed by itself; 1 job was killed beside it: a.o")


def test_an_ordinary_failure_has_nothing_to_do_with_any_of_this(build: Build) -> None:
    build.says(ERROR, STOPPED)
    assert build.verdict() == GiveUp("")
    assert (build.decided(), killed(build)) == ([], [])
    assert build.recovery.must_run_alone() == frozenset()


@pytest.mark.parametrize(
    ("by", "how", "need"), [("shed", "stopped to free memory", 7.5), ("person", "killed by a person", 5)]
)
def test_what_stoker_killed_runs_again(build: Build, by: ev.KilledBy, how: str, need: float) -> None:
    """Only a kill for memory says that it needs more than it held: a person kills for other reasons."""
    build.recovery.killed_by_stoker(member("a.o"), by)
    build.tell(ev.JobKilled("a.o", by, 5, jid=1))
    build.restart()
    build.says(SILENT, STOPPED)
    found = build.verdict()
    runs = f"it runs first, beside what fits where ~{round(need)} B is kept for it"
    assert found.why == f"1 job was {how}: a.o; {runs}"
    assert (build.recovery.must_run_alone(), build.recovery.needs()) == (frozenset(), {"a.o": need})
    build.restart()
    assert build.recovery.needs() == {}, "of the attempt that begins; its number is not known yet"
    build.recovery.begin_attempt(2, build.state)
    assert build.recovery.needs() == {"a.o": need}, "as the journal says"
    assert killed(build) == [("a.o", by, 1)]
    assert build.state.killed[0].rss == 5


def test_the_last_attempt_runs_one_job_at_a_time_and_a_decision_says_so(build: Build) -> None:
    """The level falls to 1 with it; of a level that fell without a word, people asked why."""
    for attempt in range(1, MAX_RERUNS + 1):
        assert not build.recovery.one_by_one
        output = f"{attempt}.o"
        build.recovery.killed_by_stoker(member(output), "shed")
        build.tell(ev.JobKilled(output, "shed", 5, jid=1))
        build.says(SILENT.replace(b"a.o", output.encode()), STOPPED)
        assert isinstance(build.verdict(), Again)
        build.begin(attempt + 1)
    assert build.recovery.one_by_one
    why = f"{MAX_RERUNS} attempts lost jobs to memory; until this step is over nothing runs beside another"
    assert build.decided()[-1] == ("governor", "one job at a time", why)
    assert sum(what == "one job at a time" for _, what, _ in build.decided()) == 1


def test_a_nameless_job_that_stoker_killed_is_known_by_its_command(build: Build) -> None:
    """Ninja before 1.12 tells no status, and nobody prints a word."""
    build.recovery.killed_by_stoker(member("", rss=5, command="./forge a.o 300"), "shed")
    assert build.recovery.look() == []
    build.says(b"FAILED: a.o \n./forge a.o 300\n")
    is_error, told = build.recovery.hear(build.state.failures[0], build.state)
    build.tell(*told)
    assert not is_error
    assert killed(build) == [("a.o", "shed", 1)]
    build.says(STOPPED)
    assert isinstance(build.verdict(), Again)
    assert build.recovery.needs() == {"a.o": 7.5}
    assert killed(build) == [("a.o", "shed", 1)]


def test_a_nameless_job_that_stoker_killed_gets_its_name_from_a_plan_that_comes_later(build: Build) -> None:
    """Below a tool that hides its output nothing else tells it."""
    build.recovery.killed_by_stoker(member("", command="./forge a.o 300", jid=3), "shed")
    build.tell(ev.JobFinished(3, 1, "a.o", "other", 1.0, "failed"))
    found = build.verdict()
    assert isinstance(found, Again)
    assert found.first == ("a.o",)


@needs_kernel_log
@pytest.mark.parametrize("said", [b"", b"a worker is gone\n", b"error: a worker is gone\n"])
def test_whom_the_kernel_took_out_of_a_job_makes_its_failure_a_death(
    build: Build, group: MemoryGroup, said: bytes
) -> None:
    """Whatever its command is, and whatever is said by those that waited for the process."""
    victim = overrun(group)
    build.owners[victim] = member("a.o", pid=victim)
    build.says(b"FAILED: [code=1] a.o \n./forge a.o 300\n", said)
    assert build.recovery.hear(build.state.failures[0], build.state)[0] is False
    build.says(STOPPED)
    assert isinstance(build.verdict(), Again)
    assert killed(build) == [("a.o", "memory", 1)]


def test_a_kill_that_nothing_else_accounts_for_explains_a_job_that_does_not_speak_of_it(
    build: Build, group: MemoryGroup
) -> None:
    overrun(group)
    build.says(b"FAILED: a.o \n./forge a.o 300\na worker is gone\n", STOPPED)
    assert isinstance(build.verdict(), Again)


def test_a_kill_explains_no_more_failures_than_there_were_kills(build: Build, group: MemoryGroup) -> None:
    overrun(group)
    build.says(b"FAILED: b.o \n./forge b.o\nno such table\n", KILLED, STOPPED)
    assert build.verdict() == GiveUp("b.o failed by itself; 1 job was killed beside it: a.o")


def test_what_stoker_killed_runs_again_even_if_the_build_says_nothing(build: Build) -> None:
    """Below a tool that hides its output."""
    build.recovery.killed_by_stoker(member("a.o"))
    build.ends("a.o")
    found = build.verdict()
    assert isinstance(found, Again)
    assert found.first == ("a.o",)


def test_a_silent_failure_that_nobody_can_explain_is_an_error(build: Build) -> None:
    build.recovery.killed_by_stoker(member("a.o"))
    build.ends("a.o")
    build.ends("b.o")
    assert isinstance(build.verdict(), GiveUp)


def test_a_second_question_after_a_restart_gets_the_same_answer_and_no_second_record(build: Build) -> None:
    """The engine may die between its words in the journal and its answer to the supervisor."""
    build.says(KILLED, STOPPED)
    first = build.verdict()
    build.restart()
    assert build.verdict() == first
    assert killed(build) == [("a.o", "unknown", 1)]


def test_a_failure_is_judged_the_moment_it_is_read(build: Build) -> None:
    build.recovery.killed_by_stoker(member("c.o"))
    build.says(KILLED, ERROR, SILENT.replace(b"a.", b"c.").replace(b"137", b"1"), STOPPED)
    assert {f.output: build.recovery.hear(f, build.state)[0] for f in build.state.failures} == {
        "a.o": False,
        "b.o": True,
        "c.o": False,
    }


def test_the_death_of_a_compiler_is_told_at_once_and_only_once(build: Build) -> None:
    """The others may run for an hour before the step runs again."""
    build.tell(ev.JobStarted(2, 1, 9, "z.o", "cxx", 1000.0))
    build.says(KILLED)
    build.ends("a.o", 5)
    build.tell(*build.recovery.hear(build.state.failures[0], build.state)[1])
    assert killed(build) == [("a.o", "unknown", 1)]
    assert build.state.killed[0].rss == 5
    [(who, what, why)] = build.decided()
    assert (who, what) == ("governor", "run the step again, later")
    assert "a.o" in why
    assert "SIGKILL" in why

    build.restart()
    build.says(STOPPED)
    assert isinstance(build.verdict(), Again)
    assert killed(build) == [("a.o", "unknown", 1)]


@pytest.mark.parametrize("restart", [False, True])
def test_nothing_is_promised_once_another_step_has_failed_by_itself(build: Build, *, restart: bool) -> None:
    build.tell(ev.JobStarted(2, 1, 9, "z.o", "cxx", 1000.0))
    build.says(ERROR)
    build.tell(*build.recovery.hear(build.state.failures[0], build.state)[1])
    assert build.decided() == []
    if restart:
        build.restart()
    build.says(KILLED)
    build.tell(*build.recovery.hear(build.state.failures[1], build.state)[1])
    [(_, what, why)] = build.decided()
    assert what == "let the others end"
    assert why.endswith("a.o; it is not to run again, as b.o failed by itself")


def test_a_promise_is_taken_back_when_another_step_fails_by_itself(build: Build) -> None:
    build.tell(ev.JobStarted(2, 1, 9, "z.o", "cxx", 1000.0))
    for number, said in enumerate((KILLED, ERROR)):
        build.says(said)
        build.tell(*build.recovery.hear(build.state.failures[number], build.state)[1])
    assert [what for _, what, _ in build.decided()] == ["run the step again, later", "let the others end"]
    assert build.decided()[1][2] == "b.o failed by itself; a.o, killed before, is not to run again"


def test_nothing_is_promised_where_the_step_may_not_run_again(build: Build) -> None:
    build.recovery.allow(retries=0)
    build.says(KILLED)
    assert build.recovery.hear(build.state.failures[0], build.state) == (False, [])


@pytest.mark.parametrize("restart", [False, True])
def test_a_death_alone_makes_everything_else_pointless_at_once(build: Build, restart: bool) -> None:
    build.says(KILLED, STOPPED)
    build.verdict()
    build.begin(2)
    if restart:
        build.restart()
    build.says(KILLED, KILLED.replace(b"a.", b"b."))
    assert [build.recovery.hear(f, build.state)[0] for f in build.state.failures] == [True, False]


@pytest.mark.parametrize("noise", [0, 3 * PART, 40 * PART])
def test_the_last_words_of_a_long_step_are_read(build: Build, noise: int) -> None:
    """NCCL's make inside a step of PyTorch's: hundreds of lines before the one that matters."""
    inside = b"Compiling all_reduce_sum_f16.cu\n" * (noise // 32)
    end = b"Killed\nmake[1]: *** [Makefile:76: obj/all_gather.o] Error 137\nmake: *** [Makefile:9: lib] Error 2\n"
    build.says(b"FAILED: [code=2] nccl/lib.a \ncd nccl && make -j4\n", inside, end, STOPPED)
    found = build.verdict()
    assert isinstance(found, Again)
    assert found.first == ("obj/all_gather.o",)
    assert found.why.startswith("1 job was killed by SIGKILL from an unknown sender: nccl/lib.a;")


def test_a_build_that_pip_showed_late_and_indented(build: Build, group: MemoryGroup) -> None:
    overrun(group)
    build.says((DATA / "pip-hidden.txt").read_bytes())
    found = build.verdict()
    assert isinstance(found, Again)
    assert found.first == ("a.o",)


def test_a_log_that_was_taken_away_leaves_the_journals_excerpt(build: Build) -> None:
    build.says(KILLED, STOPPED)
    build.log.unlink()
    assert isinstance(build.verdict(), Again)


def test_more_failures_than_are_kept_are_too_many_to_be_sure(build: Build) -> None:
    build.says(*(KILLED.replace(b"a.", b"u%d." % n) for n in range(MAX_FAILURES + 5)), STOPPED)
    assert build.verdict() == GiveUp(f"at least {MAX_FAILURES} steps failed")


def test_attempts_have_an_end(build: Build) -> None:
    answers = []
    for attempt in range(1, 8):
        build.says(KILLED.replace(b"a.", b"u%d." % attempt), STOPPED)
        answers.append(isinstance(build.verdict(), Again))
        build.begin(attempt + 1)
    assert answers == [True] * 5 + [False] * 2


def test_a_profile_may_allow_fewer_attempts(build: Build) -> None:
    build.recovery.allow(retries=1)
    build.says(KILLED.replace(b"a.", b"u1."), STOPPED)
    assert isinstance(build.verdict(), Again)
    build.begin(2)
    build.says(KILLED.replace(b"a.", b"u2."), STOPPED)
    found = build.verdict()
    assert isinstance(found, GiveUp)
    assert "the profile allows no further attempt at this step" in found.why


def test_an_engine_that_comes_after_the_answer_and_before_the_next_attempt_knows_what_died(build: Build) -> None:
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)
    build.restart()
    build.recovery.begin_attempt(2, build.state)
    build.begin(2)
    assert build.recovery.must_run_alone() == {"a.o"}
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), GiveUp), "it died although it ran alone"


def test_what_died_in_a_step_before_is_no_matter_in_the_next(build: Build) -> None:
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)
    build.begin(2)
    build.recovery.begin_step()
    build.tell(ev.StepStarted(2, 2, "next", ("ninja",), 8, 1, build.recovery.oom_kills(), build.log.stat().st_size))
    assert build.recovery.must_run_alone() == frozenset()
    assert (build.state.killed, build.state.failures) == ((), ())
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)


def test_hostile_names_reach_no_sentence_unharmed(build: Build) -> None:
    build.says(b"FAILED: [code=137] \x1b[2J\x07evil.o \ng++ -c evil.cpp\n", STOPPED)
    why = build.verdict().why
    assert "evil.o" in why
    assert why.isprintable()


def test_the_group_of_a_process_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    build = Build(tmp_path, gone.pid)
    build.says(KILLED, STOPPED)
    assert isinstance(build.verdict(), Again)
    build.close()
