"""Holds what stoker says of device code and of a GPU against the GPU itself.

    python -m bench.gpu [--seconds 20] [--json FILE] [--write]

Two parts. First, nvcc compiles libraries and images for and beside a Hopper GPU; stoker judges each for this machine,
and then each runs: as it is, and with CUDA_DISABLE_PTX_JIT=1, which tells machine code from PTX that the driver
compiles. Second, a program loads the GPU in steps while stoker watches it and nvidia-smi notes the same figures. Needs
nvcc 13 and an H100, H200 or GH200 with its driver. The exit status is 1 if any verdict differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import gpu_cases
from bench.figures import add_arguments, machine, publish, table
from bench.gpu_compared import Meter, compared, meaning, witnessed
from support.program import Stoker

WITNESS = Path(__file__).with_name("gpu_witness.py")

AT_ONCE = 6
"""Witnesses at once: each has a context on the GPU, of half a GiB."""

NO_JIT = {"CUDA_DISABLE_PTX_JIT": "1", "CUDA_CACHE_DISABLE": "1"}

LOAD = r"""
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
__global__ void spin(long long cycles) { long long begin = clock64(); while (clock64() - begin < cycles); }
int main(int, char **words) {
  int seconds = atoi(words[1]);
  void *held;
  for (int second = 0; second < seconds; ++second) {
    if (second % 4 == 0 && cudaMalloc(&held, 2ull << 30)) return 1;
    if (second / 4 % 2) { for (int i = 0; i < 10; ++i) spin<<<1, 1>>>(150000000ll); cudaDeviceSynchronize(); }
    else sleep(1);
  }
}
"""
"""Every four seconds 2 GiB more, and by turns a kernel and none."""


@dataclass(frozen=True, slots=True)
class Case:
    """A piece of code: stoker's verdict, CUDA's status of its parts as it is and without PTX, and what those mean."""

    name: str
    said: str
    status: list[int]
    machine_code_alone: list[int]
    truth: str

    @property
    def right(self) -> bool:
        """Whether stoker said what happened."""
        return self.said == self.truth


def ran(words: Sequence[str], env: dict[str, str]) -> list[int]:
    """The witness's answer; raises CalledProcessError if it has none."""
    command = [sys.executable, str(WITNESS), *words]
    told = subprocess.run(command, env={**os.environ, **env}, check=True, capture_output=True, text=True)
    return [int(word) for word in told.stdout.split()]


def verdict(stoker: Stoker, path: Path) -> str:
    """What `stoker verify` says for this machine's first GPU."""
    told = subprocess.run(stoker.argv("verify", "--json", str(path)), env=stoker.env, capture_output=True, check=False)
    devices = json.loads(told.stdout)["devices"]
    return str(devices[0]["verdict"]) if devices else "no device"


def judged(stoker: Stoker, name: str, path: Path, words: Sequence[str]) -> Case:
    """One piece of code, judged and run."""
    said = verdict(stoker, path)
    status, alone = ran(words, {"CUDA_CACHE_DISABLE": "1"}), ran(words, NO_JIT)
    return Case(name, said, status, alone, meaning(status, alone))


def cases(stoker: Stoker, root: Path, nvcc: str) -> list[Case]:
    """All of them, compiled by all cores, then judged and run."""
    folders = [root / str(number) for number in range(len(gpu_cases.LIBRARIES))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda one, folder: gpu_cases.build(one, folder, nvcc), gpu_cases.LIBRARIES, folders))
    asked = [
        (library.name, path, ["library", str(path), str(library.called or len(library.modules))])
        for library, path in zip(gpu_cases.LIBRARIES, made, strict=True)
    ]
    asked += [(name, path, ["image", str(path)]) for name, path in gpu_cases.images(root / "images", nvcc)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda one: judged(stoker, *one), asked))


def meters(stoker: Stoker, root: Path, nvcc: str, seconds: int) -> list[Meter]:
    """Load the GPU under stoker, beside nvidia-smi, and compare."""
    source, program, noted = root / "load.cu", root / "load", root / "smi.csv"
    source.write_text(LOAD)
    subprocess.run([nvcc, "-arch=sm_90", str(source), "-o", str(program)], check=True, capture_output=True)
    query = "timestamp,memory.used,utilization.gpu,temperature.gpu,power.draw"
    with (
        noted.open("w") as out,
        subprocess.Popen(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-lms", "200", "-i", "0"],
            stdout=out,
        ) as smi,
    ):
        words = stoker.argv("run", "--plain", "--", str(program), str(seconds))
        subprocess.run(words, check=True, env=stoker.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        smi.terminate()
    (folder,) = stoker.state.glob("stoker/builds/*/journal.jsonl")
    samples = [e for e in stoker.events(folder.parent.name) if e["type"] == "sampled" and e["machine"].get("gpus")]
    return compared(samples, witnessed(noted.read_text()))


def told(found: Sequence[Case], figures: Sequence[Meter]) -> str:
    """The tables."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    card = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    right = sum(case.right for case in found)
    rows = [[c.name, c.said, c.truth, _words(c.status), _words(c.machine_code_alone)] for c in found]
    gaps = [[m.name, str(m.samples), f"{m.middle:.1f}", f"{m.most:.1f}"] for m in figures]
    return (
        f"{card}; {machine()}. {right} of {len(found)} verdicts are what happened.\n\n"
        f"{table(['code', 'stoker', 'happened', 'status', 'without PTX'], rows)}\n\n"
        f"{table(['figure', 'samples', 'difference, median', 'most'], gaps)}\n"
    )


def _words(status: Sequence[int]) -> str:
    return " ".join(map(str, status))


def main() -> int:
    """Compile, judge, run, compare, publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20)
    add_arguments(parser)
    args = parser.parse_args()
    nvcc = shutil.which("nvcc")
    if nvcc is None or shutil.which("nvidia-smi") is None:
        parser.error("it needs nvcc and a GPU with nvidia-smi")
    root = Path(tempfile.mkdtemp(prefix="stoker-gpu-"))
    stoker = Stoker(root)
    try:
        found = cases(stoker, root, nvcc)
        figures = meters(stoker, root, nvcc, args.seconds)
    finally:
        shutil.rmtree(stoker.runtime, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=True)
    wrong = [case for case in found if not case.right]
    kept = {"cases": [dataclasses.asdict(c) for c in found], "meters": [dataclasses.asdict(m) for m in figures]}
    publish("gpu", kept, told(found, figures), out=args.json, write=args.write, summary={"wrong": len(wrong)})
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
