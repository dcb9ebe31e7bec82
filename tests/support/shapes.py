"""Builds whose jobs are tools that nobody knows and take memory in every way there is.

Knows nothing of stoker. One Python program, called by many names, is every job: to a class of jobs by tool it is a
stranger, and what its first run needed says little of the next.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = r"""
# OUTPUT MIB SECONDS SHAPE: climbs to MIB within SECONDS in that shape, goes on for SECONDS / 2, writes OUTPUT.
import mmap, os, sys, time
output, mib, seconds, shape = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
CHUNK = 4
held = []

def take(chunks):
    for _ in range(chunks):
        if shape in ("mmap", "shm"):
            flags = mmap.MAP_SHARED if shape == "shm" else mmap.MAP_PRIVATE
            area = mmap.mmap(-1, CHUNK << 20, flags=flags | mmap.MAP_ANONYMOUS)
            for page in range(0, CHUNK << 20, 4096):
                area[page] = 1
            held.append(area)
        else:
            held.append(bytearray(b"x") * (CHUNK << 20))

def burn(until):
    while time.monotonic() < until:
        sum(range(1000))

def climb(mib, seconds, parts):
    begin, chunks = time.monotonic(), mib // CHUNK
    for part in range(parts):
        take(chunks * (part + 1) // parts - chunks * part // parts)
        burn(begin + seconds * (part + 1) / parts)

def fork(share):
    pids = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            climb(share, seconds, 20)
            os._exit(0)
        pids.append(pid)
    return all([os.waitpid(pid, 0)[1] == 0 for pid in pids])

begin = time.monotonic()
if shape == "fails":
    burn(begin + seconds)
    sys.exit("no such thing")
if shape == "forks":
    if not fork(mib // 3):
        sys.exit("a worker is gone")
elif shape == "spike":
    climb(mib, seconds / 10, 5)
    held.clear()
elif shape == "steps":
    climb(mib, seconds, 4)
elif shape == "late":
    burn(begin + seconds)
    climb(mib, seconds / 5, 20)
elif shape == "saw":
    for part in (0.3, 0.6, 1.0):
        climb(int(mib * part), seconds / 3, 10)
        held.clear()
else:  # ramp, mmap, shm
    climb(mib, seconds, 50)
burn(time.monotonic() + seconds / 2)
open(output, "w").close()
"""

SHAPES = ("ramp", "spike", "steps", "late", "saw", "mmap", "shm", "forks")
"""Ways to take memory; "fails" takes none, and ends with status 1."""

NAMES = ("forge", "weave", "mint", "brew")
"""What the program is called: tools of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Grow:
    """One job: it climbs to so many MiB within so many seconds, and goes on for half of that."""

    output: str
    mib: int
    seconds: float
    shape: str = "ramp"
    name: str = "forge"


@dataclass(frozen=True, slots=True)
class Project:
    """Jobs, the MiB that they get, and whether one after the other they would end well."""

    about: str
    jobs: tuple[Grow, ...]
    limit_mib: int
    good: bool = True


def climbers(big: int = 3, small: int = 12, *, mib: int = 900, limit_mib: int = 1536) -> Project:
    """A few jobs that climb within a second, all at once, before many small ones of the very same tool."""
    jobs = [Grow(f"big{n}", mib, 1.0) for n in range(big)]
    jobs += [Grow(f"small{n:02}", 32, 0.2) for n in range(small)]
    return Project(f"{big} of {mib} MiB within a second, {small} of 32 MiB", tuple(jobs), limit_mib)


def drawn(seed: int) -> Project:
    """A build of any shapes. The same seed draws the same; two of twenty hold a job that fails whoever runs it."""
    chance = random.Random(seed)
    limit = chance.choice((768, 1024, 1536))
    shapes = chance.sample(SHAPES, chance.choice((1, 2, 3)))
    heavy = [
        Grow(
            f"heavy{n}",
            round(limit * chance.uniform(0.4, 0.6)),
            chance.choice((0.3, 1.0, 2.0)),
            chance.choice(shapes),
            chance.choice(NAMES),
        )
        for n in range(chance.randint(3, 5))
    ]
    light = [
        Grow(f"light{n:02}", chance.randint(8, 48), chance.uniform(0.1, 0.4), "ramp", chance.choice(NAMES))
        for n in range(chance.randint(4, 12))
    ]
    jobs = [*heavy, *light]
    chance.shuffle(jobs)
    good = seed % 10 != 9
    if not good:
        jobs.append(Grow("broken", 8, 0.3, "fails", chance.choice(NAMES)))
    about = f"{len(heavy)} of {'/'.join(sorted({j.shape for j in heavy}))} up to {max(j.mib for j in heavy)} MiB"
    return Project(f"{about}, {len(light)} light{'' if good else ', one that fails'}", tuple(jobs), limit, good)


def write_project(folder: Path, jobs: Sequence[Grow]) -> Path:
    """A build.ninja of these jobs, in this order; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        program = folder / name
        program.write_text(f"#!{sys.executable} -IS\n{_PROGRAM}")
        program.chmod(0o755)
    lines = ["rule grow", "  command = ./$name $out $mib $seconds $shape && touch $out"]
    for job in jobs:
        lines += [f"build {job.output}: grow", f"  name = {job.name}", f"  mib = {job.mib}"]
        lines += [f"  seconds = {job.seconds:.2f}", f"  shape = {job.shape}"]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    return folder


def clean(folder: Path, jobs: Sequence[Grow]) -> None:
    """Take away all that a build made, ninja's log included."""
    for name in (*(job.output for job in jobs), ".ninja_log", ".ninja_deps"):
        (folder / name).unlink(missing_ok=True)
