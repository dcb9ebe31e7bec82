"""Builds made of events, as a journal would tell them, and a source that shows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from stoker.model import events as ev
from stoker.model.cache_use import CacheUse
from stoker.model.diagnosis import Action, Cause, Diagnosis
from stoker.model.job_tree import ProcessTree
from stoker.model.reduce import reduce_all
from stoker.model.remote import RemoteEngine, RemoteHost
from stoker.model.samples import GpuSample, JobSample, MachineSample, Pressure, RamDisk
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused, Link, Update

GIB = 2**30
MIB = 2**20
START = 1_790_000_000.0
HOSTILE = (
    "error [/usr/include/x.h]",
    "[@click=app.quit]x[/]",
    "\x1b]52;c;cm0gLXJm\x07boom",
    "\x1b[2Jcleared\x9b31m",
    "nul\x00 and\ttab\r\nnewline",
    "\u202egnp.exe\u202c",
    "[/foo] as [/bar]",
    "漢字" * 40,
    "\udc80\udcff",
)


class FakeLog:
    """Output in memory."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.longest_read = 0

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        self.longest_read = max(self.longest_read, length)
        return bytes(self.data[offset : offset + length])


class FakeSource:
    """A source that a test feeds by hand."""

    def __init__(
        self, state: BuildState, link: Link = "live", *, note: str = "", read_only: bool = False, log: bytes = b""
    ) -> None:
        self.read_only = read_only
        self.log = FakeLog(log)
        self.commands: list[tuple[str, dict[str, object]]] = []
        self.refusal = ""
        self.tree: ProcessTree | None = None
        self.answering = asyncio.Event()
        """Cleared: commands arrive and get no answer yet, as over a slow link."""
        self.answering.set()
        self.last = Update(state, link, note)
        self._queue: asyncio.Queue[Update] = asyncio.Queue()
        self._queue.put_nowait(self.last)

    def put(self, state: BuildState, link: Link = "live", note: str = "") -> None:
        self.last = Update(state, link, note)
        self._queue.put_nowait(self.last)

    async def updates(self) -> AsyncIterator[Update]:
        while True:
            update = await self._queue.get()
            yield update
            if update.link == "ended":
                return

    async def command(self, verb: str, **arguments: object) -> None:
        self.commands.append((verb, arguments))
        await self.answering.wait()
        if self.refusal:
            raise CommandRefused(self.refusal)

    async def processes(self, jid: int) -> ProcessTree:
        if self.tree is None:
            raise CommandRefused("no engine answers now")
        return self.tree


class Story:
    """Events one after the other, perhaps after those of another story; `at` is in seconds since the start."""

    def __init__(self, before: Story | None = None) -> None:
        self.records: list[ev.Record] = list(before.records) if before else []
        self._before = (list(self.records), before.state if before else BuildState())

    def add(self, at: float, *events: ev.Event) -> Story:
        self.records += [ev.Record(len(self.records) + 1 + i, START + at, event) for i, event in enumerate(events)]
        return self

    @property
    def state(self) -> BuildState:
        """What a viewer sees; the other story's state is known already, unless a test has changed its records here."""
        before, state = self._before
        if self.records[: len(before)] != before:
            return reduce_all(self.records)
        return reduce_all(self.records[len(before) :], state)


STARTED = ev.BuildStarted(
    id="b1",
    name="pytorch",
    command=(
        "pip",
        "install",
        "-v",
        "--no-build-isolation",
        "--config-settings=cmake.define.USE_CUDA=ON",
        "./pytorch-v2.9.0",
    ),
    cwd="/src",
    log_path="/home/ann/.local/state/stoker/builds/b1/output.log",
    host="builder",
    cores=16,
    memory_total=64 * GIB,
    version="0.1.0",
)

MACHINE = MachineSample(
    cpu_percent=63.2,
    cpu_cores=(12, 99, 100, 34, 76, 88, 5, 100, 61, 40, 90, 20, 99, 98, 0, 44),
    cpu_available=16.0,
    memory_budget=55 * GIB,
    memory_used=int(22.9 * GIB),
    memory_available=int(32.1 * GIB),
    memory_limit_source="/docker/4f9c2a77d01be1",
    swap_used=0,
    swap_total=8 * GIB,
    load=17.4,
    pressure_memory=Pressure(0.0, 0.0),
    disk_free=381 * GIB,
    disk_write_rate=12.3 * MIB,
    gpus=(GpuSample(0, "NVIDIA H200", 3.0, 2 * GIB, 140 * GIB, 34.0, 78.0),),
)

OUTPUTS = (
    ("caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/native/cuda/ReduceSumProdKernel.cu.o", "nvcc", "cicc"),
    ("caffe2/CMakeFiles/flash_attention.dir/__/third_party/flash_bwd_hdim256_bf16_causal_sm80.cu.o", "nvcc", "ptxas"),
    ("third_party/protobuf/cmake/CMakeFiles/libprotobuf.dir/__/src/google/protobuf/descriptor.cc.o", "cxx", "cc1plus"),
    ("lib/libtorch_cuda.so", "link", "ld"),
    ("c10/test/core/漢字/DispatchKeySet_test.cpp.o", "cxx", "cc1plus"),
    ("lib/libonnx_proto.a", "archive", "ar"),
    ("version.py", "other", "python3"),
)


def jobs(count: int, at: float, sid: int = 1) -> list[ev.Event]:
    """`count` jobs that have just begun."""
    found: list[ev.Event] = []
    for i in range(count):
        output, tool, _phase = OUTPUTS[i % len(OUTPUTS)]
        if i >= len(OUTPUTS):
            output = output.replace(".", f"_{i}.", 1)
        found.append(ev.JobStarted(i + 1, sid, 4000 + i, output, tool, START + at - 7 * (count - i)))  # type: ignore[arg-type]
    return found


def job_samples(count: int) -> tuple[JobSample, ...]:
    """What those jobs take."""
    return tuple(
        JobSample(i + 1, int((0.2 + (i * 37 % 50) / 10) * GIB), 95.0 + i % 7, OUTPUTS[i % len(OUTPUTS)][2])
        for i in range(count)
    )


def sampled(count: int, machine: MachineSample = MACHINE, *, activity: str = "") -> ev.Sampled:
    """A measurement with `count` running jobs."""
    return ev.Sampled(machine, job_samples(count), int(18.1 * GIB), 3 * count + 4, 48 * GIB, activity, 1_200_000)


def started() -> Story:
    """A build that has begun."""
    return Story().add(0, STARTED, ev.EngineStarted(4, adopted=False), ev.StepStarted(2, 4, "build", ("ninja",), 99))


@cache
def _an_hour(machine: MachineSample) -> Story:
    """What has happened in a build that is an hour in: many tests go on from there."""
    story = started().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src/build", "1.13.2", 48))
    story.add(6, ev.SchedulerPlanned(1, 6579, "dry-run", {"cxx": 6000, "nvcc": 500}))
    for i in range(1204):
        finished = ev.JobFinished(None, 1, f"obj/{i}.o", "cxx", 2 + i % 40, "ok", (100 + i) * MIB)
        story.add(8 + i * 3, finished)
    for i in range(120):
        own = 2 + 17 * abs(i % 40 - 20) / 20
        swing = replace(machine, memory_used=int((own + 4.8) * GIB), cpu_percent=40 + i % 60)
        story.add(10 + i * 30, replace(sampled(0, swing), build_rss=int(own * GIB), build_cpu=16.0 * (30 + i % 60)))
    return Story(story)  # which knows the state


def running(count: int = 12, machine: MachineSample = MACHINE) -> Story:
    """A build in full swing, an hour in."""
    story = Story(_an_hour(machine))
    story.add(3700, *jobs(count, 3700), ev.Estimated(1650, 1440, 1860))
    story.add(
        3650, ev.Decided("governor", "12→11 hold flash_bwd_hdim256", "needs ~9.1 GiB, 6.2 unpromised above the reserve")
    )
    story.add(3680, ev.Decided("ann", "level 16", "by request"))
    story.add(3690, ev.Noticed("warning", "pidfd_open is refused here; polling instead"))
    return story.add(3723, sampled(count, machine))


FROZEN_JID = 3
NOW = 3723.0


RAMDISK = RamDisk("/dev/shm/stoker-ram-x", int(0.7 * GIB), 4 * GIB, 20 * GIB)


@cache
def _an_hour_of_memory() -> Story:
    """The same of a build that is short of memory."""
    story = started().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src/build", "1.13.2", 128))
    story.add(6, ev.SchedulerPlanned(1, 6579, "dry-run", {"cxx": 6000, "nvcc": 500}), ev.LevelSet("auto", 16))
    for i in range(1204):
        story.add(8 + i * 3, ev.JobFinished(None, 1, f"obj/{i}.o", "cxx", 2 + i % 40, "ok", (100 + i) * MIB))
    for i in range(60):
        swing = replace(MACHINE, memory_used=int((30 + 20 * abs(i % 20 - 10) / 10) * GIB), cpu_percent=60 + i % 40)
        story.add(10 + i * 60, replace(sampled(0, swing), build_rss=int((25 + i % 20) * GIB)))
    return Story(story)


def governed(
    count: int = 12, on_deck: int = 40, *, level: ev.LevelSet | None = None, ramdisk: RamDisk | None = None
) -> Story:
    """A build short of memory, an hour in: one job is frozen, and many are on deck."""
    story = Story(_an_hour_of_memory())
    story.add(3650, *governed_jobs(count, on_deck))
    story.add(3655, ev.JobMoved(FROZEN_JID, "frozen"))
    waiting = tuple(range(count + 1, count + on_deck + 1))
    story.add(
        3655,
        ev.JobsWaiting(waiting[:1], "memory", "needs up to 4.6 GiB within 2:10, 614 MiB unpromised above the reserve"),
    )
    story.add(
        3655,
        ev.JobsWaiting(
            waiting[1:4],
            "room",
            f"memory is kept for {OUTPUTS[5][0]}, and for what runs; 614 MiB left above the reserve",
        ),
    )
    story.add(3700, ev.Estimated(1650, 1440, 1860))
    story.add(3640, ev.Decided("ann", "level 24 → automatic", "asked for; 21 run, 24 on deck"))
    hold = "hold caffe2/CMakeFiles/flash_attention.dir/__/third_party/flash_bwd_hdim256_bf16_causal_sm80.cu.o"
    why = "needs up to 9.1 GiB within 4:25, 6.2 GiB unpromised above the reserve"
    story.add(3653, ev.Decided("governor", hold, why))
    freeze = "freeze third_party/protobuf/cmake/CMakeFiles/libprotobuf.dir/__/src/google/protobuf/descriptor.cc.o"
    story.add(
        3655,
        ev.Decided("governor", freeze, "1.1 GiB left, below the floor of 1.3 GiB; this one holds 2.6 GiB and grows on"),
    )
    if level is not None:
        story.add(3660, level)
    held = sum(job.rss for job in job_samples(count))
    own = held + int(1.5 * GIB)  # ninja, its shells, and what lives beside the jobs
    used = own + int(4.8 * GIB)
    machine = replace(MACHINE, memory_used=used, memory_available=MACHINE.memory_budget - used, ramdisk=ramdisk)
    promised = held + count * int(1.1 * GIB)
    outlook = tuple(int(promised * share) for share in (0.8, 0.9, 1.0, 0.9, 0.6, 0.5, 0.2, 0.0))
    sample = replace(sampled(count, machine), build_rss=own, promised=promised, reserve=int(3.3 * GIB), outlook=outlook)
    for i in range(6):
        earlier = replace(machine, memory_used=used - (5 - i) * 2 * GIB)
        story.add(NOW - 300 + 50 * i, replace(sample, machine=earlier, build_rss=max(0, own - (6 - i) * 2 * GIB)))
    if ramdisk is not None:
        sample = replace(sample, reserve=int(3.8 * GIB), ramdisk_reserve=int(0.5 * GIB))
    samples = tuple(replace(s, state="frozen") if s.jid == FROZEN_JID else s for s in sample.jobs)
    return story.add(NOW, replace(sample, jobs=samples))


def _killed_job(jid: int, output: str, by: ev.KilledBy, rss: int, seconds: float) -> tuple[ev.Event, ...]:
    who, why = ("ann", "") if by == "person" else ("", "0.9 GiB left, below the floor of 1.3 GiB; gives back 2.6 GiB")
    return (
        ev.JobStarted(jid, 1, 5000 + jid, output, "cxx", START + 3600),
        ev.JobKilled(output, by, rss, jid, who, why),
        ev.FailureFound(output, f"/usr/bin/c++ -c {output}", 137, (f"FAILED: [code=137] {output} ",), 20_000, 20_100),
        ev.JobFinished(jid, 1, output, "cxx", seconds, "failed", rss),
    )


def stopped_some() -> Story:
    """The governed build, of which stoker has stopped two jobs to free memory, and a person has killed a third."""
    story = governed()
    story.add(NOW, *_killed_job(901, "third_party/protobuf/descriptor.cc.o", "shed", int(2.6 * GIB), 71))
    story.add(NOW, *_killed_job(902, "third_party/protobuf/generated_message.cc.o", "shed", int(1.1 * GIB), 40))
    return story.add(NOW, *_killed_job(903, "c10/test/core/DispatchKeySet_test.cpp.o", "person", int(0.4 * GIB), 9))


def stopped_some_and_done() -> Story:
    """The same after the step has run again, and the build ended well."""
    again = ev.StepStarted(2, 4, "build", ("ninja",), 99, 2, log_start=30_000)
    second = ev.SchedulerStarted(2, "ninja", 101, "/src/build", "1.13.2", 128)
    names = ("descriptor.cc.o", "generated_message.cc.o", "DispatchKeySet_test.cpp.o")
    made = (ev.JobFinished(None, 2, name, "cxx", 60, "ok", GIB) for name in names)
    story = stopped_some().add(3800, ev.SchedulerEnded(1), again, second, *made, ev.SchedulerEnded(2))
    return story.add(3900, ev.BuildEnded("done", 0, ""))


def alone(state: ev.JobState = "running", who: str = "ann") -> Story:
    """The governed build, of which one job runs alone, or is to."""
    jid = 2 if state == "running" else 14
    others = (ev.JobMoved(n, "frozen", None, "word") for n in range(1, 13) if n not in (jid, FROZEN_JID))
    frozen = tuple(replace(s, state="frozen") for s in job_samples(12) if s.jid != jid)
    story = governed().add(NOW, *others, ev.JobMoved(jid, state, alone=True, alone_by=who))
    return story.add(NOW, replace(sampled(12), jobs=frozen))


CACHE = CacheUse(
    "ccache", 1003, 201, 12, size=int(11.4 * GIB), size_limit=25 * GIB, saved_seconds=5130.0, saved_jobs=968
)


def cached() -> Story:
    """The same build behind a compiler cache that knows most of it."""
    return governed().add(NOW, ev.CacheUsed(CACHE))


def done_cached() -> Story:
    """A build that ended well, most of it from a compiler cache."""
    story = running(0).add(3738, ev.CacheUsed(CACHE))
    return story.add(3740, ev.SchedulerEnded(1), ev.BuildEnded("done", 0, ""))


HOSTS = (
    RemoteHost("build-17.example.org", 24),
    RemoteHost("build-18.example.org", 16, taken=4, errors=1, fallbacks=2),
    RemoteHost("10.0.7.21", 8, errors=3, fallbacks=5, why_unused="it failed; distcc leaves it alone for 60 s"),
)


def remote() -> Story:
    """A build of which other machines compile the most: 12 local + 28 remote."""
    story = governed(40, 20, level=ev.LevelSet("auto", 12))
    story.add(3700, ev.RemoteSeen((RemoteEngine("distcc", HOSTS),)))
    story.add(3701, ev.JobMoved(FROZEN_JID, "running"))
    story.add(3702, *(ev.JobFinished(None, 1, f"far/{n}.o", "cxx", 9, "ok", host=HOSTS[n % 2].name) for n in range(31)))
    back = "10.0.7.21 has not compiled it; what it does here waits for its turn"
    story.add(3705, ev.Decided("governor", "take back aten/src/Bar.cpp.o", back))
    last = next(r.event for r in reversed(story.records) if isinstance(r.event, ev.Sampled))
    far = {jid: HOSTS[jid % 2].name for jid in range(2, 41) if jid % 10 not in (1, 5, 9)}
    far = dict(list(far.items())[:28])
    samples = tuple(
        replace(s, state="running", host=far[s.jid], phase="distcc", rss=4 * MIB, cpu=0.0)
        if s.jid in far
        else replace(s, state="running")
        for s in last.jobs
    )
    machine = replace(last.machine, memory_used=31 * GIB, memory_available=24 * GIB)
    few = replace(last, machine=machine, jobs=samples, build_rss=27 * GIB, promised=34 * GIB, outlook=())
    return story.add(NOW, few)


def governed_jobs(count: int, on_deck: int) -> list[ev.Event]:
    """`count` jobs that run and `on_deck` that wait, each with what it is expected to need."""
    found: list[ev.Event] = []
    for event in jobs(count + on_deck, 3650):
        assert isinstance(event, ev.JobStarted)
        waits = event.jid > count
        born = START + 3640 + event.jid if waits else event.started
        expected = int((0.8 + (event.jid * 53 % 70) / 10) * GIB)
        found.append(replace(event, started=born, expected=expected, state="on_deck" if waits else "running"))
    return found


EXCERPT = (
    "../aten/src/Foo.cpp: In function 'int main()':",
    "../aten/src/Foo.cpp:12:3: error: 'x' was not declared in this scope [/usr/include/x.h]",
    "   12 |   x = 1;",
    "      |   ^",
)


def failed(count: int = 0) -> Story:
    """A build that ended with a compile error."""
    story = running(count)
    for name in ("aten/src/Foo.cpp.o", "caffe2/CMakeFiles/torch_cpu.dir/Bar.cpp.o"):
        story.add(3724, ev.JobFinished(None, 1, name, "cxx", 4.2, "failed"))
        command = f"/usr/bin/c++ -DAT_PER_OPERATOR_HEADERS {'-Iaten/src ' * 30}-O2 -c -o {name}"
        excerpt = tuple(line.replace("Foo.cpp", Path(name).stem) for line in EXCERPT)
        story.add(3724, ev.FailureFound(name, command, 1, excerpt, 20_000, 20_400))
    return story.add(3730, ev.BuildEnded("failed", 1, "exit status 1: aten/src/Foo.cpp.o failed and 1 more"))


REAL_ERROR = (
    b"[38/69] Building CXX object aten/src/Foo.cpp.o\n"
    b"FAILED: [code=1] aten/src/Foo.cpp.o \n"
    b"/usr/bin/c++ -DAT_PER_OPERATOR_HEADERS -O2 -c -o aten/src/Foo.cpp.o\n"
    b"Foo.cpp:203:9: error: 'min' is not a member of 'std'\n"
)


def dropped(log_start: int = 0, count: int = 13) -> Story:
    """A build that still runs after a compile error, for which stoker has dropped the jobs on deck."""
    story = started().add(1, ev.StepStarted(1, 1, "build", ("ninja",), 7, log_start=log_start))
    story.add(2, ev.SchedulerStarted(1, "ninja", 8, "/src", "1.13", 9))
    story.add(3, ev.FailureFound("aten/src/Foo.cpp.o", "c++", 1, (), log_start, log_start + 20))
    return story.add(4, *(ev.JobFinished(None, 1, f"d{n}.cpp.o", "cxx", 0.0, "dropped") for n in range(count)))


def repeated(log_start: int) -> Story:
    """A build that is done: a person killed a job of its first attempt, which ends where the second one's output
    starts, at byte `log_start`."""
    story = started().add(1, ev.StepStarted(1, 1, "build", ("ninja",), 7))
    story.add(2, ev.SchedulerStarted(1, "ninja", 8, "/src", "1.13", 9))
    story.add(3, ev.JobStarted(1, 1, 5001, "killed.cpp.o", "cxx", START))
    story.add(3, ev.JobKilled("killed.cpp.o", "person", GIB, 1, "ann"))
    story.add(3, ev.JobFinished(1, 1, "killed.cpp.o", "cxx", 9.0, "failed", GIB))
    story.add(4, ev.SchedulerEnded(1), ev.StepStarted(1, 1, "build", ("ninja",), 9, 2, log_start=log_start))
    story.add(5, ev.SchedulerStarted(2, "ninja", 10, "/src", "1.13", 9))
    return story.add(9, ev.SchedulerEnded(2), ev.StepEnded(1, 0), ev.BuildEnded("done", 0, ""))


def dropped_log(lines: int, count: int = 13) -> bytes:
    """What ninja prints of it: the error, then a block of each dropped job, and what the other jobs say meanwhile."""
    command = f"/usr/bin/c++ -DAT_PER_OPERATOR_HEADERS {'-Iaten/src ' * 30}-O2 -c -o "
    blocks = [
        f"[39/69] Building CXX object d{n}.cpp.o\nFAILED: [code=137] d{n}.cpp.o \n{command}d{n}.cpp.o\n"
        for n in range(count)
    ]
    end = "[40/69] Building CXX object late.cpp.o\nninja: build stopped: subcommand failed.\n"
    return output_log(lines) + REAL_ERROR + "".join([*blocks, end]).encode()


def diagnosed(*causes: Cause, action: Action | None = None, facts: tuple[str, ...] = ()) -> Story:
    """The same with an answer to the question why."""
    story = failed()
    end = story.records.pop().event
    return story.add(3726, ev.Diagnosed(Diagnosis(causes, facts, action))).add(3730, end)


def killed() -> Story:
    """A build that was given up for memory."""
    job = OUTPUTS[1][0]
    context = (
        "[311/6583] Building CUDA object caffe2/CMakeFiles/flash_attention.dir/flash_bwd_hdim128_fp16_sm80.cu.o",
        f"FAILED: [code=255] {job} ",
        f"/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler {'-I/src/aten/src ' * 12}-c -o {job}",
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "ninja: build stopped: subcommand failed.",
    )
    cause = Cause(
        "compiler-killed",
        "Out of memory: the kernel killed a compiler",
        "Something sent SIGKILL to a compiler, and hardly anything but the kernel's out-of-memory killer does: the "
        "jobs that ran together needed more memory than the machine, the container or the cgroup has.",
        "Let stoker keep the jobs within the memory: stoker run -- COMMAND. Without it run fewer at once (MAX_JOBS=2, "
        "or -j 2); finished objects are kept. To see the limit: cat /sys/fs/cgroup/memory.max.",
        line=31414,
        offset=500,
        text=context[3],
        context=context,
        context_line=31411,
        job=job,
        count=3,
    )
    also = replace(cause, rule="compile-error", title="The source does not compile", line=31500, count=1, job="")
    facts = (
        "killed for lack of memory: flash_bwd_hdim256_bf16_causal_sm80.cu.o at 6.71 GiB",
        "the build's budget is 55.0 GiB (the cgroup 4f9c2a77d01be1)",
        f"1 job was killed for memory: {job}; the profile allows no further attempt at this step",
    )
    return diagnosed(cause, also, action=Action("retry-alone", names=(job,)), facts=facts)


def unfetched() -> Story:
    """A build of a tree without its submodules, at whose end nothing had failed but the configuration."""
    cause = Cause(
        "missing-submodule",
        "The sources of a third party are missing",
        "The project keeps other projects as git submodules, and theirs are empty: it was cloned without --recursive.",
        "Run: git submodule sync && git submodule update --init --recursive.",
        line=12,
        offset=100,
        text="  does not contain a CMakeLists.txt file.",
        context=("CMake Error at CMakeLists.txt:3 (add_subdirectory):", "  The source directory", "  does", *HOSTILE),
        context_line=10,
    )
    names = ("third_party/gloo", "third_party/pybind11", "third_party/fbgemm", "third_party/onnx")
    found = Diagnosis((cause,), action=Action("update-submodules", names=names))
    return started().add(30, ev.Diagnosed(found), ev.BuildEnded("failed", 1, "exit status 1"))


def done() -> Story:
    """A build that ended well."""
    story = running(0)
    heavy: Iterable[ev.Event] = (
        ev.JobFinished(None, 1, output, tool, 40 + 100 * i, "ok", (i + 1) * GIB)  # type: ignore[arg-type]
        for i, (output, tool, _phase) in enumerate(OUTPUTS)
    )
    return story.add(3740, *heavy, ev.SchedulerEnded(1), ev.BuildEnded("done", 0, ""))


def configuring() -> Story:
    """A build before its scheduler."""
    return started().add(12, sampled(0, activity="cmake -S . -B build -G Ninja -DUSE_CUDA=ON"))


def output_log(lines: int = 3000) -> bytes:
    """Output with colour, errors and long lines in it."""
    rows = []
    for i in range(lines):
        if i % 500 == 499:
            rows.append(
                f"\x1b[01m\x1b[Ka/b{i}.cpp:7:1:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kno 'Foo{i}' [-Werror]"
            )
        else:
            rows.append(
                f"[{i}/{lines}] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/file_{i}.cpp.o {'x' * (i % 90)}"
            )
    return "\n".join(rows).encode() + b"\n"
