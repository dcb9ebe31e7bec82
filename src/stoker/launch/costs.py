"""What GPU architectures have cost before: the time of CUDA files and the size of the result, with the source of each
figure.

Remembered jobs of this build folder take precedence; before there are any, the shipped classes of kernels whose sources
are in the tree. A file without a figure is counted, and nothing is made up for it. Unaware of which architectures are
requested.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from stoker.config.priors import load_priors, priors_files
from stoker.decide.memory.prior_classes import Prior
from stoker.doctor.need import Cost, Need
from stoker.doctor.switches import switch
from stoker.launch.needs import heaviest_known
from stoker.record.history import MAX_ROWS, KnownJob
from stoker.sense.machine.cgroup import find_cgroups
from stoker.sense.machine.cpu import cpu_available
from stoker.verify.archs import arch_named
from stoker.verify.binary.byte_source import Deadline, FileSource, UnreadableError
from stoker.verify.binary.read_binary import read_binary

READ_SECONDS = 0.5
"""For one binary: libtorch_cuda.so of 975 MB took 25 ms from the page cache."""

MAX_LIBRARIES = 200

_KERNELS: Mapping[str, str] = {
    "third_party/flash-attention/csrc/flash_attn/src": "USE_FLASH_ATTENTION",
    "aten/src/ATen/native/transformers/cuda/flash_attn/kernels": "USE_FLASH_ATTENTION",
    "aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernels": "USE_MEM_EFF_ATTENTION",
    "aten/src/ATen/native/cuda": "",
    "csrc/flash_attn/src": "",
}
"""Folders of CUDA files, and the switch that leaves them out: PyTorch's before and since it included flash-attention's
own sources, and flash-attention's."""

_LIBRARIES = ("lib/*.so", "lib.*/*.so", "lib.*/*/*.so", "../torch/lib/*.so")
"""Where PyTorch and setuptools put what they link, from the build folder."""


def with_cost(need: Need, env: Mapping[str, str]) -> Need:
    """Return the need with the cost of one architecture, as far as it is known."""
    if need.cuda == "no" or not need.knobs:
        return need
    cost = _remembered(need) or _shipped(need, env)
    library, sizes = _last_build(need.build)
    cores = cpu_available(os.getpid(), find_cgroups(os.getpid()).cpu_quota())
    return replace(need, cost=replace(cost, cores=cores, library=library, sizes=sizes))


def _remembered(need: Need) -> Cost | None:
    """Return the CUDA files that were compiled in this build folder. Their objects show for how many architectures."""
    known = heaviest_known(MAX_ROWS)
    jobs = list(_once(job for job in known if job.tool == "nvcc" and os.path.isfile(_path(need, job))))
    archs = {arch for job in jobs[:1] for arch, _ in _sizes(_path(need, job))}
    if not archs:
        return None
    seconds = sum(job.seconds for job in jobs)
    return Cost(len(jobs), seconds / len(archs), f"remembered of this folder, for {' '.join(sorted(archs))}")


def _once(jobs: Iterable[KnownJob]) -> Iterator[KnownJob]:
    """Return one set of flags per output: the heaviest, which come first."""
    seen: set[str] = set()
    for job in jobs:
        if job.output not in seen:
            seen.add(job.output)
            yield job


def _path(need: Need, job: KnownJob) -> str:
    return os.path.join(need.build, job.output)


def _shipped(need: Need, env: Mapping[str, str]) -> Cost:
    priors, _ = load_priors(priors_files())
    classes = [priors.of(f"{name}.o", "nvcc") for name in _sources(need.source, env)]
    measured = [prior for prior in classes if _is_of_kernels(prior)]
    seconds = sum(prior.curve.duration for prior in measured)
    return Cost(len(measured), seconds, "by priors.yaml: nvcc 13.0, sm_80", len(classes) - len(measured))


def _is_of_kernels(prior: Prior) -> bool:
    """Return a class for files of this name; those for any CUDA file say nothing about a single file's time."""
    return bool(prior.tool == "nvcc" and prior.output)


def _sources(folder: str, env: Mapping[str, str]) -> Iterator[str]:
    for place, unless in _KERNELS.items():
        if not unless or switch(env.get(unless)) is not False:
            with contextlib.suppress(OSError):
                yield from (name for name in sorted(os.listdir(f"{folder}/{place}")) if name.endswith(".cu"))


def _last_build(build: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return the largest library of the last build with device code, and its bytes by architecture."""
    found = [path for pattern in _LIBRARIES for path in Path(build).glob(pattern)][:MAX_LIBRARIES]
    for path in sorted(found, key=_size, reverse=True)[:2]:
        if sizes := _sizes(str(path)):
            return path.name, sizes
    return "", ()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sizes(path: str) -> tuple[tuple[str, int], ...]:
    """Return machine code by architecture, in bytes; nothing for a file that cannot be read."""
    try:
        with FileSource(Path(path)) as source:
            report = read_binary(path, source, Deadline(READ_SECONDS)).report
    except (OSError, UnreadableError):
        return ()
    return tuple((arch_named(use.arch).number, use.bytes) for use in report.code if use.kind == "cubin")
