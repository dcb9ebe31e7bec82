"""`stoker simulate`: simulates a recorded or synthetic build under every policy or one. Only parses and prints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.in_processes import worked_out
from stoker.cli.recorded_build import load, paper_of, progress
from stoker.cli.remote_table import as_json, far_of, ladder, lines
from stoker.model.units import format_bytes, format_duration, parse_size
from stoker.report.paper import PaperBuild
from stoker.report.whatif import note
from stoker.simulate.oracle import PREDICTIONS, Prediction
from stoker.simulate.runner import Result, UnknownPolicyError, best_fixed, driver_of, simulate
from stoker.simulate.synthetic import BUILDS, Order
from stoker.simulate.trace import TraceError, TraceJob, read, write

FIRST_LINE = 1 << 16
"""Bytes of a file that are read: a journal shows within these that it is one."""

HEAD = ("policy", "makespan", "x bound", "peak", "kills", "restarts", "lost", "idle")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    source = parser.add_argument_group("the build")
    source.add_argument(
        "trace", nargs="?", metavar="ID|FILE", help="a recorded build, its journal, or a trace: one JSON object per job"
    )
    source.add_argument("--synthetic", choices=sorted(BUILDS), help="a made-up build instead")
    source.add_argument("--jobs", type=_positive, metavar="N", help="with --synthetic: total number of jobs")
    source.add_argument(
        "--order", choices=get_args(Order), default="scattered", help="with --synthetic: placement of the heavy jobs"
    )
    source.add_argument("--seed", type=int, default=1, help="random seed of build and noise (default: 1)")
    source.add_argument("--write", type=Path, metavar="FILE", help="write the build as a trace and stop")
    run = parser.add_argument_group("the machine and the policy")
    run.add_argument("--ram", type=_size, metavar="SIZE", help="memory, such as 64G (default: as recorded)")
    run.add_argument("--cores", type=_positive, metavar="N", help="number of cores (default: as recorded)")
    names = "stoker, fixed:N, longest:N, load:N, kill-and-restart or psi (default: all but longest)"
    run.add_argument("--policy", metavar="NAME", help=names)
    run.add_argument(
        "--predictions", choices=PREDICTIONS, help="how well stoker predicts the jobs (default: noisy, or as recorded)"
    )
    run.add_argument(
        "--remote",
        type=far_of,
        metavar="SLOTS[,BANDWIDTH]",
        help="simulate other machines that compile for it, such as 100,10G (bit/s)",
    )
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Simulate and print, or write a trace; the exit status."""
    paper = _recorded(args)
    jobs = _jobs(args) if paper is None else paper.jobs
    if args.write is not None:
        return _write(jobs, args.write)
    if paper is not None:
        args.cores, args.ram = args.cores or paper.cores, args.ram or paper.memory
        args.predictions = args.predictions or "recorded"
    if args.remote is not None:
        return _remote(jobs, args)
    if args.ram is None or args.cores is None:
        raise CliError("simulate needs a machine; add --ram 64G --cores 32")
    results = _results(jobs, args, paper)
    if args.json:
        print(json.dumps(_as_json(results) | ({} if paper is None else _measured(paper))))
    else:
        print("\n".join(_table(results)))
        if paper is not None:
            ratio = results[0].makespan / max(1.0, paper.measured)
            print(f"\nmeasured: {format_duration(paper.measured)} ({results[0].policy} on paper: {ratio:.2f} x)")
            as_it_was = (args.cores, args.ram, results[0].policy) == (paper.cores, paper.memory, "stoker")
            print(note(paper, results[0].makespan if as_it_was else None))
    return 0


def _remote(jobs: Sequence[TraceJob], args: argparse.Namespace) -> int:
    if args.cores is None:
        raise CliError("simulate --remote needs to know the cores here; add --cores 16")
    with progress("simulating") as far:
        results = ladder(jobs, args.cores, args.remote, far)
    if args.json:
        print(json.dumps(as_json(results, args.remote)))
    else:
        print("\n".join(lines(results, args.cores, args.remote)))
    return 0


def _recorded(args: argparse.Namespace) -> PaperBuild | None:
    """Return the recorded build that is meant, on paper; None for a trace or a made-up build."""
    if args.synthetic or args.trace is None or _is_trace(Path(args.trace)):
        return None
    return paper_of(load(args.trace))


def _is_trace(path: Path) -> bool:
    """Whether this is a file, and no journal: the first line of a journal says what kind of line it is."""
    try:
        with path.open("rb") as file:
            return b'"type":"' not in file.readline(FIRST_LINE).replace(b" ", b"")
    except OSError:
        return "/" in str(path) or path.suffix == ".jsonl"


def _measured(paper: PaperBuild) -> dict[str, Any]:
    return {"measured": paper.measured, "others": paper.others, "outside": paper.outside}


def _jobs(args: argparse.Namespace) -> Sequence[TraceJob]:
    if (args.trace is None) == (args.synthetic is None):
        raise CliError("simulate takes a recorded build or a trace, or --synthetic NAME for a made-up build")
    if args.synthetic:
        more = {} if args.jobs is None else {"jobs": args.jobs}
        return BUILDS[args.synthetic](order=args.order, seed=args.seed, **more)
    try:
        return read(Path(args.trace))
    except OSError as err:
        raise CliError(f"cannot read {args.trace}: {err.strerror}", FAILURE) from err
    except (TraceError, UnicodeDecodeError) as err:
        raise CliError(str(err), FAILURE) from err


def _write(jobs: Iterable[TraceJob], path: Path) -> int:
    try:
        count = write(jobs, path)
    except OSError as err:
        raise CliError(f"cannot write {path}: {err.strerror}", FAILURE) from err
    print(f"{count} jobs in {path}")
    return 0


def _results(jobs: Sequence[TraceJob], args: argparse.Namespace, paper: PaperBuild | None) -> list[Result]:
    prediction: Prediction = args.predictions or "noisy"
    others, level = (0.0, None) if paper is None else (paper.others, paper.level)

    def result(policy: str, far: Callable[[float], None]) -> Result | None:
        if not policy:
            return best_fixed(jobs, args.cores, args.ram, others)
        return simulate(jobs, args.cores, args.ram, policy, prediction, args.seed, others=others, level=level, far=far)

    if args.policy:
        try:
            driver_of(args.policy)
        except UnknownPolicyError as err:
            raise CliError(str(err)) from err
    names = ("stoker", f"fixed:{args.cores}", f"load:{args.cores}", "kill-and-restart", "psi")
    with progress("simulating") as far:
        tried = worked_out(result, (args.policy,) if args.policy else (*names, ""), far)
    results = [one for one in tried if one is not None]
    if len(results) > len(names):
        best = results.pop()
        results[1:1] = [best] if best.policy not in names else []
    return results


def _as_json(results: list[Result]) -> dict[str, Any]:
    """Return the first result; where several were asked for, all of them under `compared`."""
    first = asdict(results[0])
    return first if len(results) == 1 else {**first, "compared": [asdict(r) for r in results]}


def _table(results: list[Result]) -> list[str]:
    rows = [HEAD, *(_row(r) for r in results), ("lower bound", format_duration(results[0].bound), "1.00", *[""] * 5)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return [
        "  ".join(
            c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(result: Result) -> tuple[str, ...]:
    return (
        result.policy,
        format_duration(result.makespan),
        f"{result.ratio:.2f}",
        format_bytes(result.peak),
        str(result.kills),
        str(result.restarts),
        format_duration(result.lost_seconds),
        format_duration(result.idle),
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as err:
        raise argparse.ArgumentTypeError(str(err)) from err
    if size <= 0:
        raise argparse.ArgumentTypeError("a machine has some memory; write it as 64G")
    return size
