"""Jobs that burn CPU time: what is stopped does not age, as a compiler does not, unlike a `sleep`.

Knows nothing of stoker. One small program is every job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.compiled import compile_to

_SOURCE = r"""
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <cstring>
// burn OUTPUT CPU_SECONDS [MIB]: holds MIB after a tenth of its CPU time, and writes OUTPUT at its end.
static double used() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
int main(int, char** argv) {
  const double end = atof(argv[2]);
  const size_t mib = argv[3] ? size_t(atoi(argv[3])) : 0;
  size_t held = 0;
  for (double now = used(); now < end; now = used()) {
    for (; held < mib && double(held) < double(mib) * 10 * now / end; ++held) memset(malloc(1 << 20), 1, 1 << 20);
    for (volatile int i = 0; i < 10000; ++i) {}
  }
  FILE* output = fopen(argv[1], "w");
  fprintf(output, "%s\n", argv[1]);
  fclose(output);
}
"""


@dataclass(frozen=True, slots=True)
class Burn:
    """One job: its output, CPU seconds, and MiB. A job of the console pool has the terminal for itself."""

    output: str
    seconds: float
    mib: int = 0
    console: bool = False


def burns(count: int, seconds: float, mib: int = 0) -> list[Burn]:
    """Jobs that are all alike."""
    return [Burn(f"o{n:03}", seconds, mib) for n in range(count)]


def write_burns(folder: Path, jobs: Sequence[Burn]) -> Path:
    """A build.ninja of these jobs, in this order; returns the folder."""
    compile_burner(folder)
    lines = ["rule burn", "  command = ./burn $out $seconds $mib"]
    for job in jobs:
        lines += [f"build {job.output}: burn", f"  seconds = {job.seconds}", f"  mib = {job.mib}"]
        lines += ["  pool = console"] if job.console else []
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    return folder


def write_burn_makefile(folder: Path, jobs: Sequence[Burn]) -> Path:
    """The same for make."""
    compile_burner(folder)
    outputs = " ".join(job.output for job in jobs)
    rules = [f"{job.output}:\n\t./burn $@ {job.seconds} {job.mib}" for job in jobs]
    (folder / "Makefile").write_text("\n".join([f"all: {outputs}", *rules]) + "\n")
    return folder


def compile_burner(folder: Path) -> None:
    """The program itself, as `burn` in the folder."""
    compile_to(folder / "burn", _SOURCE, ["g++", "-O1", "-static", "-x", "c++"])
