"""Lists all benches: what each shows, how long it takes, and its arguments for a full and for a quick run.

Does not know how they are run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


def _lacking(*tools: str) -> str:
    gone = [tool for tool in tools if shutil.which(tool) is None]
    return f"it needs {' and '.join(gone)}" if gone else ""


def memory_groups() -> str:
    """What is missing for builds in memory groups."""
    folder = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    if os.geteuid() != 0 or not folder.exists():
        return "it needs root and cgroup v1"
    return compilers()


def compilers() -> str:
    """What is missing for real C++ builds."""
    return _lacking("g++", "cmake")


def distcc() -> str:
    """What is missing for builds behind distcc."""
    return _lacking("g++", "distcc", "distccd")


def sources() -> str:
    """What is missing to fetch C and C++ projects of others and to build them with CMake."""
    return _lacking("apt-get") or compilers()


def other_projects() -> str:
    """What is missing to fetch and build projects of others."""
    return _lacking("apt-get", "meson", "gfortran", "ninja") or memory_groups()


def gpu() -> str:
    """What is missing to compile for a GPU and to run that."""
    return _lacking("nvcc", "nvidia-smi")


@dataclass(frozen=True, slots=True)
class Bench:
    """`minutes` for a whole and for a quick run, on two cores; `missing` says in words why it cannot run here."""

    name: str
    shows: str
    minutes: tuple[float, float]
    quick: Sequence[str] = ()
    timed: bool = True
    missing: Callable[[], str] = lambda: ""


BENCHES = (
    Bench(
        "squeeze",
        "real g++ builds with too little memory: stoker beside every fixed -j and ninja -l",
        (30, 4.5),
        ("--shape", "heavy", "--rounds", "1", "--levels", "3"),
        missing=memory_groups,
    ),
    Bench(
        "overhead",
        "time, CPU and memory that governing adds, beside bare ninja",
        (45, 0.5),
        ("--pairs", "1", "--seconds", "0.1", "--seconds", "1", "--level", "8", "--work", "12"),
    ),
    Bench(
        "neighbour",
        "builds beside a neighbour that thrashes, with and without stoker",
        (8, 1.5),
        ("--pairs", "3"),
        missing=memory_groups,
    ),
    Bench(
        "remote",
        "builds behind distcc with and without stoker, and the price of watching a hundred hosts",
        (7, 1.5),
        ("--pairs", "1", "--units", "16", "--looks", "8"),
        missing=distcc,
    ),
    Bench("latency", "from a key, a death, or a want of memory to its effect on jobs", (9, 1), ("--times", "5")),
    Bench("scale", "engine, journal, reduce, replay and simulate with 1,000 to 100,000 jobs", (25, 0.7), ("--quick",)),
    Bench(
        "link",
        "bytes a second that the screen writes, how far it lags on 4 KB/s, beside other monitors",
        (15, 1.2),
        ("--quick",),
    ),
    Bench("footprint", "CPU and memory of engine and supervisor around 30 running jobs", (4, 0.5), ("--quick",)),
    Bench("sense_footprint", "the engine's share for looking at processes, machine and files", (1, 0.2), ("--quick",)),
    Bench("icecream_hosts", "the engine's share for following a hundred hosts of icecream", (2, 0.2), ("--quick",)),
    Bench("diagnose", "the CPU seconds that a cause in a log of 500 MB takes", (2, 0.2), ("--quick",)),
    Bench(
        "eta",
        "the predicted time left beside the truth and beside ninja's own estimate",
        (15, 0.2),
        ("--paper", "--seeds", "1"),
        missing=compilers,
    ),
    Bench(
        "simulate",
        "the squeeze on paper, 32 to 128 GiB and 16 to 128 cores",
        (60, 3),
        ("--builds", "flash-attn", "--cores", "16", "32", "--ram", "32", "64"),
        timed=False,
    ),
    Bench(
        "witness",
        "how near stoker comes to the best schedule that a search finds, on paper",
        (10, 0.5),
        ("--builds", "flash-attn", "--machines", "16x32"),
        timed=False,
    ),
    Bench(
        "pace",
        "who starts what first, on paper: stoker beside both ninjas on the graphs of real projects",
        (10, 0.2),
        ("--builds", "flac", "tiff", "--cores", "8"),
        timed=False,
    ),
    Bench(
        "pace_clock",
        "real projects with plenty of memory, built again: stoker beside both ninjas, by the clock",
        (28, 2),
        ("--only", "libuv", "--rounds", "1"),
        missing=sources,
    ),
    Bench(
        "fleet",
        "when other machines pay, on paper: PyTorch's recorded build with 10 to 1,000 slots elsewhere",
        (0.5, 0.1),
        ("--cores", "16", "--slots", "30", "300"),
        timed=False,
    ),
    Bench(
        "trust",
        "totals, counts, memory and ends that stoker tells, beside ninja, processes and kernel, on others' projects",
        (40, 4),
        ("--only", "brotli", "hiredis"),
        timed=False,
        missing=other_projects,
    ),
    Bench(
        "chaos",
        "builds whose engine, supervisor, ninja and jobs are killed or stopped: what must never happen",
        (20, 1),
        ("--rounds", "8"),
        timed=False,
        missing=memory_groups,
    ),
    Bench(
        "gpu",
        "verdicts on device code, and the GPU's meters, beside what the GPU and nvidia-smi do",
        (1, 1),
        ("--seconds", "8"),
        timed=False,
        missing=gpu,
    ),
    Bench(
        "shapes",
        "builds of unknown tools that die under ninja -j8: how they end, and whom the kernel kills",
        (20, 1.5),
        ("--builds", "4", "--climbers", "2"),
        timed=False,
        missing=memory_groups,
    ),
)
