"""Simulates when other machines pay: PyTorch's recorded build with 10 to 1,000 slots elsewhere. See bench/README.md.

    python -m bench.fleet [--cores 16 ...] [--slots 10 ...] [--json FILE] [--write]

The build is the one in bench/builds, with the CPU seconds that each job really took; `bench.fleet_costs` measured the
cost of sending. Nothing is timed, so every machine gives the same result, however busy.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.figures import add_arguments, publish, table
from bench.pace import recorded
from stoker.report.svg import Axis, lines
from stoker.simulate.remote_build import GIGABIT, MEASURED, STEPS, Far, RemoteResult, simulate_remote
from stoker.simulate.trace import TraceJob

BUILD = "pytorch"
CORES = (8, 16, 64)
BANDWIDTHS = {"100 Mbit/s": GIGABIT / 10, "1 Gbit/s": GIGABIT, "10 Gbit/s": 10 * GIGABIT}
DRAWN, NARROW = "1 Gbit/s", "100 Mbit/s"
NARROWED = 16
"""Cores of the machine that is drawn on the narrow wire too."""

HEAD = ["cores here", "wire", "alone, s", *(f"{n} slots" for n in STEPS), "bound by, with the most"]


def main() -> None:
    """Simulate and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", nargs="+", type=int, default=CORES)
    parser.add_argument("--slots", nargs="+", type=int, default=STEPS)
    add_arguments(parser)
    args = parser.parse_args()
    jobs = recorded(BUILD)
    figures: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    for cores in args.cores:
        for name, bandwidth in BANDWIDTHS.items():
            results = [simulate_remote(jobs, cores, Far(slots, bandwidth)) for slots in (0, *args.slots)]
            figures += [{"cores": cores, "wire": name, "bound_by": r.bound_by, **asdict(r)} for r in results]
            rows.append(row(cores, name, results))
            print(*rows[-1], flush=True)
    head = [*HEAD[:3], *(f"{n} slots" for n in args.slots), HEAD[-1]]
    publish(
        "fleet",
        figures,
        f"{about(jobs)}\n\n{table(head, rows)}\n",
        out=args.json,
        write=args.write,
        summary={"costs": asdict(MEASURED)},
        plots={"fleet": plot(figures)},
    )


def about(jobs: Sequence[TraceJob]) -> str:
    """What the build is."""
    far = sum(j.cpu for j in jobs if j.tool == "cxx")
    total = sum(j.cpu for j in jobs)
    share = f"{far / total:.1%} of them compilations that can go elsewhere"
    return f"{len(jobs)} jobs, {total / 3600:.1f} CPU hours, {share}. Times faster than alone:"


def row(cores: int, wire: str, results: Sequence[RemoteResult]) -> list[str]:
    """How many times faster each fleet is."""
    alone = results[0].makespan
    return [
        str(cores),
        wire,
        f"{alone:,.0f}",
        *(f"{alone / r.makespan:.2f}" for r in results[1:]),
        results[-1].bound_by,
    ]


def plot(figures: Sequence[dict[str, Any]]) -> str:
    """Times faster over slots: a line for each number of cores here, and one for a narrow wire."""
    series = {}
    for cores in dict.fromkeys(f["cores"] for f in figures):
        for wire in (DRAWN, NARROW) if cores == NARROWED else (DRAWN,):
            own = [f for f in figures if (f["cores"], f["wire"]) == (cores, wire)]
            alone = next(f["makespan"] for f in own if not f["slots"])
            series[f"{cores} cores, {wire}"] = [(f["slots"], alone / f["makespan"]) for f in own if f["slots"]]
    title = "PyTorch's C++ build on paper, with other machines"
    return lines(title, series, Axis("slots elsewhere", log=True), Axis("times faster than alone", mark=1.0))


if __name__ == "__main__":
    main()
