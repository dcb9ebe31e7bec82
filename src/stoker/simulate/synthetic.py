"""Synthetic builds: kernels drawn from real memory curves of nvcc, short compiles that behave like g++. Knows no
machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from random import Random
from typing import Literal

from stoker.decide.memory.curves import Point
from stoker.simulate.trace import MIB, TraceJob

Order = Literal["scattered", "row"]

GIB = 2**30

Maker = Callable[[Random, int], TraceJob]
"""Draws the job with that number."""

ROW_START = 0.3
"""Where in the build heavy jobs begin if they come in a row: PyTorch's kernels come neither first nor last."""

LIGHT_SECONDS = (1.9, 0.9)
"""Mean and deviation of the logarithm of a light compile's CPU seconds: half take less than 7 s, a few a minute."""

LIGHT_GIB = (-0.6, 0.4, 1.8)
"""The same for its peak in GiB (half below 0.55), and the maximum."""

UNIT_SPREAD = 0.12
"""How much short C++ compiles of one kind vary in size and in time (standard deviation of the logarithm)."""


def pytorch(order: Order = "scattered", seed: int = 1, jobs: int = 6470) -> list[TraceJob]:
    """PyTorch-like: 70 heavy kernels among 6,400 light compiles, in that proportion for any number of jobs."""
    heavy = max(1, round(jobs * 70 / 6470))
    return _build(heavy, jobs - heavy, order, seed)


def flash_attn(order: Order = "scattered", seed: int = 1, jobs: int = 82) -> list[TraceJob]:
    """flash-attention: 72 kernels and 10 light compiles."""
    heavy = max(1, round(jobs * 72 / 82))
    return _build(heavy, jobs - heavy, order, seed)


def vllm(order: Order = "scattered", seed: int = 1, jobs: int = 500) -> list[TraceJob]:
    """vLLM-like: 200 heavy kernels and 300 light compiles."""
    heavy = max(1, round(jobs * 2 / 5))
    return _build(heavy, jobs - heavy, order, seed)


def cxx(order: Order = "scattered", seed: int = 1, jobs: int = 68) -> list[TraceJob]:
    """Short C++ compiles on a small machine: 8 that grow to 1.4 GiB among 60 small ones."""
    heavy = max(1, round(jobs * 8 / 68))
    return _build(heavy, jobs - heavy, order, seed, _heavy_unit, _small_unit)


def cxx_heavy(order: Order = "scattered", seed: int = 1, jobs: int = 24) -> list[TraceJob]:
    """Only the large jobs of `cxx`."""
    return _build(jobs, 0, order, seed, _heavy_unit, _small_unit)


def cxx_uniform(order: Order = "scattered", seed: int = 1, jobs: int = 100) -> list[TraceJob]:
    """Only the small jobs of `cxx`."""
    return _build(0, jobs, order, seed, _heavy_unit, _small_unit)


def uniform(order: Order = "scattered", seed: int = 1, jobs: int = 1000) -> list[TraceJob]:
    """Light compiles only: memory does not matter with 2 GiB per core."""
    del order
    return _build(0, jobs, "scattered", seed)


BUILDS: dict[str, Callable[..., list[TraceJob]]] = {
    "pytorch": pytorch,
    "flash-attn": flash_attn,
    "vllm": vllm,
    "uniform": uniform,
    "cxx": cxx,
    "cxx-heavy": cxx_heavy,
    "cxx-uniform": cxx_uniform,
}
"""Names as on the command line."""


def kernels() -> list[tuple[str, tuple[Point, ...]]]:
    """Return name and curve of the measured kernels: nvcc 13.0, flash-attention 2.8.3, one architecture."""
    text = resources.files("stoker.simulate").joinpath("kernels.json").read_text(encoding="utf-8")
    return [
        (str(k["output"]), tuple(Point(float(a), float(m) * MIB, str(p)) for a, m, p in k["points"]))
        for k in json.loads(text)
    ]


def _build(
    heavy: int, light: int, order: Order, seed: int, make_heavy: Maker | None = None, make_light: Maker | None = None
) -> list[TraceJob]:
    random = Random(seed)  # noqa: S311  (a build to play with is no secret)
    make_heavy, make_light = make_heavy or _kernel_maker(), make_light or _light
    heavy_jobs = [make_heavy(random, number) for number in range(heavy)]
    light_jobs = [make_light(random, number) for number in range(light)]
    if order == "row":
        start = round(ROW_START * light)
        return [*light_jobs[:start], *heavy_jobs, *light_jobs[start:]]
    jobs = [*heavy_jobs, *light_jobs]
    random.shuffle(jobs)
    return jobs


def _kernel_maker() -> Maker:
    curves = kernels()

    def make(random: Random, number: int) -> TraceJob:
        name, points = random.choice(curves)
        return TraceJob(name.replace(".o", f"_{number}.o"), "nvcc", points)

    return make


def _light(random: Random, number: int) -> TraceJob:
    """Return a C++ compile: its memory rises for most of its life and then stays."""
    seconds = max(1.0, round(random.lognormvariate(*LIGHT_SECONDS), 1))
    peak = min(LIGHT_GIB[2], random.lognormvariate(LIGHT_GIB[0], LIGHT_GIB[1])) * GIB
    points = (Point(0.0, 0.3 * peak, "cc1plus"), Point(0.7 * seconds, peak, "cc1plus"), Point(seconds, peak, "as"))
    return TraceJob(f"src/unit_{number}.cpp.o", "cxx", points)


def _heavy_unit(random: Random, number: int) -> TraceJob:
    """Return a file full of templates: its memory rises steadily until shortly before the end."""
    return _steady(random, f"src/heavy_{number}.cpp.o", seconds=12.0, gib=1.4)


def _small_unit(random: Random, number: int) -> TraceJob:
    return _steady(random, f"src/unit_{number}.cpp.o", seconds=1.5, gib=0.15)


def _steady(random: Random, output: str, seconds: float, gib: float) -> TraceJob:
    """Return a job like g++'s: cc1plus grows almost linearly for nine tenths of its life, the assembler is small."""
    seconds *= random.lognormvariate(0, UNIT_SPREAD)
    peak = gib * GIB * random.lognormvariate(0, UNIT_SPREAD)
    points = (
        Point(0.0, 0.1 * min(peak, GIB), "cc1plus"),
        Point(0.9 * seconds, peak, "cc1plus"),
        Point(0.91 * seconds, 0.05 * GIB, "as"),
        Point(seconds, 0.05 * GIB, "as"),
    )
    return TraceJob(output, "cxx", points)
