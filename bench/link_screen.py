"""The worst case for a screen, in which every figure changes each second: its data source, and the program to show it.

    python -m bench.link_screen [--jobs 30] [--end-rate 0] [--theme dark] [--ticks FILE]

With `--ticks` the build's name counts the seconds, and FILE records when each began (CLOCK_MONOTONIC), so that a reader
of the terminal knows the delay. Knows nothing of terminals.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from stoker.config.themes import load_themes, theme_folders
from stoker.model import events as ev
from stoker.model.job_tree import ProcessTree
from stoker.model.reduce import reduce, reduce_all
from stoker.model.samples import OUTLOOK_SECONDS, GpuSample, JobSample, MachineSample
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.model.update import Update
from stoker.show.tui.app import run_tui

GIB = 2**30
TOOLS: tuple[Tool, ...] = ("cxx", "nvcc", "link")
TICK = "tick{:05}"


class Log:
    """Output that grows."""

    def __init__(self) -> None:
        self.data = b""

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


class Busy:
    """A source whose every figure changes each second."""

    read_only = False

    def __init__(self, jobs: int, end_rate: int, ticks: Path | None) -> None:
        self.log = Log()
        self._ticks = ticks
        self._jobs = jobs
        self._end_rate = end_rate
        self._random = random.Random(1)
        self._seq = 0
        self._next = 1
        self._live: list[int] = []

    def _record(self, event: ev.Event) -> ev.Record:
        self._seq += 1
        return ev.Record(self._seq, time.time(), event)

    def _begin(self) -> ev.Event:
        jid, self._next = self._next, self._next + 1
        self._live.append(jid)
        output = f"caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/native/cuda/Kernel{jid}.cu.o"
        return ev.JobStarted(jid, 1, 4000 + jid, output, TOOLS[jid % 3], time.time() - self._random.random() * 300)

    def _first(self) -> BuildState:
        command = ("pip", "install", "--no-build-isolation", "-v", ".")
        events: list[ev.Event] = [
            ev.BuildStarted("b", "pytorch", command, "/src", "/tmp/output.log", "host", 16, 64 * GIB, "0"),
            ev.StepStarted(1, 1, "build", command, 1),
            ev.SchedulerStarted(1, "ninja", 2, "/src/build", "1.13.2", 48),
            ev.SchedulerPlanned(1, 6579, "dry-run"),
            ev.LevelSet("auto", 32),
            ev.Decided("governor", "12→11 hold flash_bwd_hdim256", "needs ~9.1 GiB, 6.2 free above reserve"),
            *(self._begin() for _ in range(self._jobs)),
        ]
        return reduce_all([self._record(event) for event in events])

    def _second(self) -> list[ev.Event]:
        roll = self._random
        events: list[ev.Event] = []
        for _ in range(self._end_rate):
            jid = self._live.pop(roll.randrange(len(self._live)))
            events += [ev.JobFinished(jid, 1, f"o{jid}", "cxx", 12.0, "ok", GIB), self._begin()]
        used = int((20 + roll.random() * 20) * GIB)
        machine = MachineSample(
            cpu_percent=roll.random() * 100,
            cpu_cores=tuple(roll.randrange(101) for _ in range(16)),
            cpu_available=16,
            memory_budget=55 * GIB,
            memory_used=used,
            memory_available=55 * GIB - used,
            memory_limit_source="/docker/abc",
            load=roll.random() * 40,
            disk_free=int(roll.random() * 400 * GIB),
            disk_write_rate=roll.random() * 2**26,
            gpus=(GpuSample(0, "NVIDIA H200", roll.random() * 100, int(roll.random() * 140) * GIB, 140 * GIB),),
        )
        samples = tuple(
            JobSample(jid, int(roll.random() * 9 * GIB), roll.random() * 110, roll.choice(("cicc", "ptxas", "cc1plus")))
            for jid in self._live
        )
        outlook = tuple(int(roll.random() * 50 * GIB) for _ in OUTLOOK_SECONDS)
        events.append(
            ev.Sampled(
                machine, samples, used - 4 * GIB, 99, self._seq * 2**20, "", 0, max(outlook), GIB, outlook=outlook
            )
        )
        events.append(ev.Estimated(1600, 1400 + roll.random() * 60, 1900))
        self.log.data += b"[%d/6579] Building CUDA object caffe2/CMakeFiles/torch_cuda.dir/x.cu.o\n" % self._seq * 5
        return events

    async def updates(self) -> AsyncIterator[Update]:
        state = self._first()
        number = 0
        while True:
            for event in self._second():
                state = reduce(state, self._record(event))
            if self._ticks is not None:
                number += 1
                state = replace(state, name=TICK.format(number))
                with self._ticks.open("a") as file:
                    file.write(f"{time.monotonic():.4f}\n")
            yield Update(replace(state), "live")
            # A little off a second, or a screen that draws once a second would be as late each time.
            await asyncio.sleep(1 if self._ticks is None else self._random.uniform(0.8, 1.3))

    async def command(self, verb: str, **arguments: object) -> None:
        """Nothing can be done with a bench."""

    async def processes(self, jid: int) -> ProcessTree:  # noqa: ARG002
        """Its jobs have none."""
        return ProcessTree()


def main() -> None:
    """The screen itself, on the terminal that it was given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--end-rate", type=int, default=0, help="jobs that end and begin each second")
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--ticks", type=Path)
    args = parser.parse_args()
    themes, _errors = load_themes(theme_folders())
    run_tui(Busy(args.jobs, args.end_rate, args.ticks), themes=themes, theme_name=args.theme)


if __name__ == "__main__":
    main()
