"""`stoker compare`: two builds, or several runs of each, beside each other."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict

from stoker.cli import arguments
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.recorded_build import load
from stoker.cli.recorded_screens import full_screen_fits, show_comparison
from stoker.model.text import clean
from stoker.report.comparison import (
    FIGURES,
    LEAST_RUNS,
    USUAL_CHANGE,
    Change,
    Comparison,
    UnfitError,
    check_side,
    compare,
)
from stoker.report.recorded import RecordedBuild
from stoker.show.comparison_text import UNLIKE, figure_text, share_text

MOST_RUNS, MOST_JOBS, FEW_JOBS = 50, 20, 5
"""Runs of one side that are read, jobs that are listed, and those that are listed unjudged."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker compare`."""
    help_text = "a build's ID, or a journal; several runs of it as A1,A2,A3"
    parser.add_argument("before", metavar="A", help=help_text)
    parser.add_argument("after", metavar="B", help="the same, for the builds to compare with A")
    parser.add_argument(
        "--fail-above",
        type=_share,
        metavar="5%",
        help=f"exit with {FAILURE} if time, CPU time, memory, kills or misses grew by more, beyond noise",
    )
    parser.add_argument("--plain", action="store_true", help="print text, even on a terminal")
    parser.add_argument("--json", action="store_true", help="JSON, for programs")
    arguments.theme(parser)


def run(args: argparse.Namespace) -> int:
    """Compare and print, or show it on a terminal; 1 if something became worse and that was asked."""
    if full_screen_fits() and not (args.plain or args.json or args.fail_above is not None):
        return show_comparison(_runs(args.before), _runs(args.after), args.theme)
    sides = [_side(words) for words in (args.before, args.after)]
    found = compare(sides[0], sides[1], USUAL_CHANGE if args.fail_above is None else args.fail_above)
    unfinished = [*found.unfinished[0], *found.unfinished[1]]
    if args.fail_above is not None and unfinished:
        raise CliError(f"{unfinished[0]}; --fail-above judges only builds that ended well")
    if args.fail_above is not None and min(found.runs) < LEAST_RUNS:
        raise CliError("one run shows no noise; give two or more of each side, as A1,A2 B1,B2")
    print(json.dumps(_as_json(found)) if args.json else "\n".join(_lines(found)))
    return FAILURE if args.fail_above is not None and found.regressed else 0


def _side(words: str) -> list[RecordedBuild]:
    """The runs of a side, each once."""
    builds = [load(one) for one in _runs(words)]
    try:
        check_side(builds)
    except UnfitError as err:
        raise CliError(str(err)) from err
    return builds


def _runs(words: str) -> list[str]:
    runs = [word for word in words.split(",") if word]
    if not runs or len(runs) > MOST_RUNS:
        raise CliError(f"{clean(words, 60)!r}: from 1 to {MOST_RUNS} runs make a side, as A1,A2")
    return runs


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 <= share < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage; write it as 5%")
    return share


def _as_json(found: Comparison) -> dict[str, object]:
    return {
        "runs": list(found.runs),
        "totals": [asdict(change) for change in found.totals],
        "jobs": [{**asdict(change), "job": clean(change.job)} for change in found.jobs],
        "gone": [clean(output) for output in found.gone],
        "new": [clean(output) for output in found.new],
        "unfinished": [list(side) for side in found.unfinished],
        "regressed": [change.figure for change in found.regressed],
    }


def _lines(found: Comparison) -> list[str]:
    lines = [f"{'':<20}{'before':>12}{'after':>12}{'change':>9}"]
    lines += [f"{FIGURES[c.figure]:<20}{_sides(c)}" for c in found.totals]
    if any(found.unfinished):
        lines += ["", *found.unfinished[0], *found.unfinished[1]]
        lines.append(f"{UNLIKE}; jobs that ended well on both sides: {len(found.pairs)}")
    if min(found.runs) < LEAST_RUNS:
        lines.append(
            "\none run of a side shows no noise, so nothing is called better or worse; give more, as A1,A2 B1,B2"
        )
    if found.jobs:
        lines.append("\njobs that changed")
        lines += [f"{_sides(c)}  {c.figure.partition('_')[0]:<5}{clean(c.job)}" for c in found.jobs[:MOST_JOBS]]
        lines += [f"{len(found.jobs) - MOST_JOBS} more: --json"] if len(found.jobs) > MOST_JOBS else []
    if min(found.runs) < LEAST_RUNS and (apart := _furthest_apart(found)):
        lines.append("\njobs that differ most, by chance or not")
        lines += [f"{_sides(c)}  {c.figure.partition('_')[0]:<5}{clean(c.job)}" for c in apart]
    before, after = (" (the other side did not finish)" if side else "" for side in found.unfinished)
    for word, outputs in ((f"only before{after}", found.gone), (f"only after{before}", found.new)):
        if outputs:
            names = ", ".join(clean(output, 80) for output in outputs[:3])
            count = "1 job" if len(outputs) == 1 else f"{len(outputs)} jobs"
            lines.append(f"{word}: {count} ({names}{', …' if len(outputs) > 3 else ''})")
    return lines


def _furthest_apart(found: Comparison) -> list[Change]:
    """Return the figures of jobs that are large enough to be judged and differ most, where runs are too few for it."""
    changes = [c for pair in found.pairs for c in (pair.cpu, pair.memory) if c.verdict == "unknown" and c.share]
    return sorted(changes, key=lambda c: -abs(c.share or 0.0))[:FEW_JOBS]


def _sides(change: Change) -> str:
    share = share_text(change)
    word = "" if change.verdict in ("same", "unknown") else f"  {change.verdict}"
    return (
        f"{figure_text(change.figure, change.before):>12}{figure_text(change.figure, change.after):>12}{share:>9}{word}"
    )
