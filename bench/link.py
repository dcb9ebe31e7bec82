"""What the screen costs a slow link: bytes written per second and CPU, in a real PTY, with 30 jobs that all change.

    python bench/link.py [--size 80x24] [--seconds 20] [--jobs 30] [--end-rate 0] [--full] [--screen KEY] [--check]

`--end-rate` jobs end and begin each second. `--full` measures Textual's own driver. `--check` fails above the targets.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import pty
import random
import re
import resource
import select
import struct
import sys
import termios
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from stoker.model import events as ev
from stoker.model.reduce import reduce, reduce_all
from stoker.model.state import BuildState
from stoker.model.update import Update

MAX_BYTES_PER_SECOND = 2048
MAX_CPU_PERCENT = 3.0
WARM_UP = 5.0
GIB = 2**30
TOOLS: tuple[ev.Tool, ...] = ("cxx", "nvcc", "link")
CPR = b"\x1b[6n"


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

    def __init__(self, jobs: int, end_rate: int) -> None:
        self.log = Log()
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
        machine = ev.MachineSample(
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
            gpus=(ev.GpuSample(0, "NVIDIA H200", roll.random() * 100, int(roll.random() * 140) * GIB, 140 * GIB),),
        )
        samples = tuple(
            ev.JobSample(
                jid, int(roll.random() * 9 * GIB), roll.random() * 110, roll.choice(("cicc", "ptxas", "cc1plus"))
            )
            for jid in self._live
        )
        events.append(ev.Sampled(machine, samples, used - 4 * GIB, 99, self._seq * 2**20, "", 0))
        events.append(ev.Estimated(1600, 1400 + roll.random() * 60, 1900))
        self.log.data += b"[%d/6579] Building CUDA object caffe2/CMakeFiles/torch_cuda.dir/x.cu.o\n" % self._seq * 5
        return events

    async def updates(self) -> AsyncIterator[Update]:
        state = self._first()
        while True:
            for event in self._second():
                state = reduce(state, self._record(event))
            yield Update(replace(state), "live")
            await asyncio.sleep(1)

    async def command(self, verb: str, **arguments: object) -> None:
        """Nothing can be done with a bench."""


def child(args: argparse.Namespace) -> None:
    """The screen itself, on the PTY."""
    from stoker.config.themes import load_themes, theme_folders
    from stoker.show.tui.app import run_tui

    themes, _errors = load_themes(theme_folders())
    run_tui(Busy(args.jobs, args.end_rate), themes=themes, theme_name=args.theme)


def measure(args: argparse.Namespace) -> tuple[float, float]:
    """Bytes per second and percent of one core, after the warm-up."""
    width, height = map(int, args.size.split("x"))
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.environ.pop("NO_COLOR", None)
        if args.full:
            os.environ["STOKER_FULL_REPAINT"] = "1"
        child(args)
        sys.exit(0)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    total, began, mark, keyed = 0, time.monotonic(), (0.0, 0, 0.0), not args.screen
    pending = b""
    while time.monotonic() - began < WARM_UP + args.seconds:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            data = os.read(master, 65536)
            total += len(data)
            pending = (pending + data)[-65536 - 8 :]
            for _ in range(data.count(CPR)):
                os.write(master, b"\x1b[1;1R")
            if b"\x1b[?2026$p" in data:
                os.write(master, b"\x1b[?2026;2$y")
        now = time.monotonic() - began
        if now > 2 and not keyed:
            os.write(master, args.screen.encode())
            keyed = True
        if now > WARM_UP and not mark[0]:
            mark = (now, total, _cpu(pid))
    span = time.monotonic() - began - mark[0]
    rate, cpu = (total - mark[1]) / span, (_cpu(pid) - mark[2]) / span * 100
    os.write(master, b"q")
    _drain(master)
    os.waitpid(pid, 0)
    if args.dump:
        print(re.sub(rb"\x1b\[\?2026h", b"\n\\g<0>", pending)[-4000:])
    return rate, cpu


def _cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        return


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--end-rate", type=int, default=0)
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--screen", default="", help="a key to press first, such as t")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--dump", action="store_true", help="print the last bytes that were written")
    args = parser.parse_args()
    rate, cpu = measure(args)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{args.size}: {rate:.0f} B/s, {cpu:.1f} % of one core, {memory:.0f} MiB at most")
    return int(args.check and (rate > MAX_BYTES_PER_SECOND or cpu > MAX_CPU_PERCENT))


if __name__ == "__main__":
    sys.exit(main())
