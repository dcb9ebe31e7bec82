"""Real C++ projects whose compilers need a chosen amount of memory and time, for builds that memory decides.

Knows nothing of stoker. Each source is a constant table, which costs the compiler's front end about a kilobyte a row,
and functions of branchy arithmetic, which cost the optimiser time and little memory. So a job climbs to its peak
first and holds it while it goes on computing, as large C++ sources do. With `cuda` the sources are template-heavy
kernels: cicc climbs to the peak at a third of the job and falls to a sixth of it, as flash-attention's do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CXX = "g++"
FLAGS = "-O1 --param ggc-min-expand=100 --param ggc-min-heapsize=131072"
"""The last two are what g++ takes with a gigabyte of memory and more; given here, its peak is the same everywhere."""

BASE_MIB, MIB_PER_ROW = 50, 0.00093
SECONDS_PER_ROW, SECONDS_PER_SPIN = 4.2e-6, 0.047
"""Resident MiB and CPU seconds of g++ 12 on a 2.x GHz server core, measured with the flags above."""

NVCC_FLAGS = "-arch=sm_90 -ftemplate-depth 2000"
CICC_BASE_MIB, CICC_MIB_PER_SERIES = 85, 34
"""cicc of nvcc 13.0: an empty kernel, and each series of 400 instantiations."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One source: the peak of its compiler in MiB, and its CPU seconds (g++: at least what the table costs)."""

    name: str
    mib: int
    seconds: float
    cuda: bool = False

    @property
    def output(self) -> str:
        """What it is compiled to, below the project's folder."""
        return f"obj/{self.name}.o"

    @property
    def source(self) -> str:
        """Its file."""
        return f"{self.name}.cu" if self.cuda else f"{self.name}.cpp"


def mixed(heavy: int, light: int, *, mib: int = 600, seconds: float = 4.0) -> list[Unit]:
    """Few heavy sources in a row after a third of many light ones."""
    lights = [Unit(f"light{n:02}", 70, 0.6) for n in range(light)]
    heavies = [Unit(f"heavy{n:02}", mib, seconds) for n in range(heavy)]
    return [*lights[: light // 3], *heavies, *lights[light // 3 :]]


def heavy_only(sizes: Sequence[int], *, seconds: float = 1.5) -> list[Unit]:
    """Sources of these MiB, in this order; `seconds` go on beyond the climb."""
    return [Unit(f"heavy{n:02}", mib, _rows(mib) * SECONDS_PER_ROW + seconds) for n, mib in enumerate(sizes)]


def uniform(count: int, *, mib: int = 110, seconds: float = 1.0) -> list[Unit]:
    """Sources that are all alike."""
    return [Unit(f"unit{n:02}", mib, seconds) for n in range(count)]


def kernels(sizes: Sequence[int]) -> list[Unit]:
    """CUDA sources whose cicc needs these MiB. Their bytes differ from run to run: nvcc puts random names in."""
    return [Unit(f"kernel{n:02}", mib, 1 + mib / 140, cuda=True) for n, mib in enumerate(sizes)]


def write_heavy_ninja(folder: Path, units: Sequence[Unit]) -> Path:
    """The project with a build.ninja that compiles and archives it; returns the folder."""
    _write_sources(folder, units)
    lines = [
        f"rule cxx\n  command = {CXX} {FLAGS} -frandom-seed=$out -c $in -o $out",
        f"rule nvcc\n  command = nvcc {NVCC_FLAGS} -c $in -o $out",
        "rule archive\n  command = rm -f $out && ar rcsD $out $in",
        *(f"build {u.output}: {'nvcc' if u.cuda else 'cxx'} {u.source}" for u in units),
        f"build libheavy.a: archive {' '.join(u.output for u in units)}",
        "default libheavy.a",
    ]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    return folder


def write_heavy_make(folder: Path, units: Sequence[Unit]) -> Path:
    """The same with a Makefile."""
    _write_sources(folder, units)
    rules = [f"{u.output}: {u.source}\n\t{CXX} {FLAGS} -frandom-seed=$@ -c $< -o $@" for u in units]
    objects = " ".join(u.output for u in units)
    archive = f"libheavy.a: {objects}\n\trm -f $@ && ar rcsD $@ $^"
    (folder / "Makefile").write_text("\n".join([archive, *rules]) + "\n")
    return folder


def clean(folder: Path) -> None:
    """Take away all that a build made, ninja's log included: the next one is as the first."""
    for file in (*folder.glob("obj/*"), folder / "libheavy.a", folder / ".ninja_log", folder / ".ninja_deps"):
        file.unlink(missing_ok=True)


def digests(folder: Path) -> dict[str, str]:
    """Every output's SHA-256 by its path below the folder."""
    outputs = [*folder.glob("obj/*.o"), folder / "libheavy.a"]
    return {str(o.relative_to(folder)): hashlib.sha256(o.read_bytes()).hexdigest() for o in outputs if o.exists()}


# -- sources -----------------------------------------------------------------------------------------------------------


def _write_sources(folder: Path, units: Sequence[Unit]) -> None:
    (folder / "obj").mkdir(parents=True, exist_ok=True)
    for unit in units:
        text = _kernel(unit) if unit.cuda else _cxx(unit)
        (folder / unit.source).write_text(text)


def _rows(mib: int) -> int:
    return max(0, round((mib - BASE_MIB) / MIB_PER_ROW))


def _cxx(unit: Unit) -> str:
    rows = _rows(unit.mib)
    spins = max(0, round((unit.seconds - rows * SECONDS_PER_ROW) / SECONDS_PER_SPIN))
    return "\n".join([*_table(unit.name, rows), *_spins(unit.name, spins)]) + "\n"


def _table(name: str, rows: int) -> Iterator[str]:
    """A constant of that many rows, by macros that each stand for eight of the one before."""
    if not rows:
        return
    yield "struct Row { int v[2]; };"
    yield "#define R0 {1, 2},"
    digits = [rows // 8**power % 8 for power in range(8)]
    for power in range(1, 8):
        yield f"#define R{power} " + " ".join([f"R{power - 1}"] * 8)
    body = " ".join(f"R{power}" for power in range(8) for _ in range(digits[power]))
    yield f"constexpr Row table[] = {{ {body} }};"
    yield f"int {name}_row(int i) {{ return table[i].v[i % 2]; }}"


def _spins(name: str, count: int) -> Iterator[str]:
    yield "#define S0 s ^= s << 13; if (s & n) s += n; else s ^= s >> 7; a[s % 8] += s; s ^= s << 17;"
    yield "#define S1 " + " ".join(["S0"] * 8)
    yield "#define S2 " + " ".join(["S1"] * 8)
    for n in range(count):
        body = f"unsigned long a[8]{{}}; S2 return s + a[n % 8] + {n};"
        yield f"unsigned long {name}_spin{n}(unsigned long s, unsigned long n) {{ {body} }}"


_KERNEL = """
template <int S, int N> struct Node {
  static constexpr unsigned weight = Node<S, N - 1>::weight * 3 + unsigned(S);
  struct Lane { long v[N % 5 + 1]; };
  template <int M> struct Pair { static constexpr unsigned both = weight + unsigned(M); long pad[M % 3 + 1]; };
  static constexpr unsigned other =
      Pair<N>::both + Pair<N + 1>::both + Pair<N + 2>::both + unsigned(sizeof(Pair<N + 3>) + sizeof(Lane));
};
template <int S> struct Node<S, 0> { static constexpr unsigned weight = S, other = S; };
template <int S, int N> struct Sum {
  static constexpr unsigned value = Sum<S, N - 1>::value + Node<S, N>::other;
};
template <int S> struct Sum<S, 0> { static constexpr unsigned value = 0; };
template <int S> __global__ void kernel(long* p) { p[threadIdx.x] += Sum<S, 400>::value; }

template <int T, int K> __global__ void gemm(const float* __restrict__ a, const float* __restrict__ b, float* c) {
  float acc[T][T] = {};
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int i = 0; i < T; ++i)
#pragma unroll
      for (int j = 0; j < T; ++j)
        acc[i][j] += a[(k * T + i) * 128 + threadIdx.x] * b[(k * T + j) * 128 + threadIdx.x];
#pragma unroll
  for (int i = 0; i < T; ++i)
#pragma unroll
    for (int j = 0; j < T; ++j) c[(i * T + j) * 128 + threadIdx.x] = acc[i][j];
}
template __global__ void gemm<8, 96>(const float*, const float*, float*);
"""


def _kernel(unit: Unit) -> str:
    series = max(1, round((unit.mib - CICC_BASE_MIB) / CICC_MIB_PER_SERIES))
    uses = "\n".join(f"template __global__ void kernel<{n}>(long*);" for n in range(1, series + 1))
    return f"{_KERNEL}{uses}\n"
