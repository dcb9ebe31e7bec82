"""`stoker compare`: two builds, or several runs of each, beside each other."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.recorded_build import load
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration
from stoker.report.comparison import FIGURES, LEAST_RUNS, Change, Comparison, compare
from stoker.report.recorded import RecordedBuild

MOST_RUNS, MOST_JOBS = 50, 20
"""Runs of one side that are read, and jobs that are listed."""

USUAL = 0.05
"""The share above which something has changed, where none is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker compare`."""
    help_text = "a build's ID, or a journal; several runs of it as A1,A2,A3"
    parser.add_argument("before", metavar="A", help=help_text)
    parser.add_argument("after", metavar="B", help="the same, for what is compared with A")
    parser.add_argument(
        "--fail-above",
        type=_share,
        metavar="5%",
        help=f"exit with {FAILURE} if time, CPU time, memory, kills or misses grew by more, above noise",
    )
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Compare and print; 1 if something became worse and that was asked."""
    sides = [_side(words) for words in (args.before, args.after)]
    found = compare(sides[0], sides[1], USUAL if args.fail_above is None else args.fail_above)
    if args.fail_above is not None and min(found.runs) < LEAST_RUNS:
        raise CliError("one run shows no noise; give two or more of each side, as A1,A2 B1,B2")
    print(json.dumps(_as_json(found)) if args.json else "\n".join(_lines(found)))
    return FAILURE if args.fail_above is not None and found.regressed else 0


def _side(words: str) -> list[RecordedBuild]:
    """The runs of a side, each once and ended well: what failed took less of everything."""
    builds = [load(one) for one in _runs(words)]
    seen: set[str] = set()
    for build in builds:
        name, code = clean(build.state.id, 80), build.state.exit_code
        if code != 0:
            how = "has no exit status" if code is None else f"ended with status {code}"
            raise CliError(f"{name} {how}; only builds that ended well can be compared")
        if name in seen:
            raise CliError(f"{name} is named twice; a run counts once")
        seen.add(name)
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
        raise argparse.ArgumentTypeError(f"{text!r} is no share; write it as 5%")
    return share


def _as_json(found: Comparison) -> dict[str, object]:
    return {
        "runs": list(found.runs),
        "totals": [asdict(change) for change in found.totals],
        "jobs": [{**asdict(change), "job": clean(change.job)} for change in found.jobs],
        "gone": [clean(output) for output in found.gone],
        "new": [clean(output) for output in found.new],
        "regressed": [change.figure for change in found.regressed],
    }


def _lines(found: Comparison) -> list[str]:
    lines = [f"{'':<20}{'before':>12}{'after':>12}{'change':>9}"]
    lines += [f"{FIGURES[c.figure]:<20}{_sides(c)}" for c in found.totals]
    if min(found.runs) < LEAST_RUNS:
        lines.append(
            "\none run of a side shows no noise, so nothing is called better or worse; give more, as A1,A2 B1,B2"
        )
    if found.jobs:
        lines.append("\njobs that changed")
        lines += [f"{_sides(c)}  {c.figure.partition('_')[0]:<5}{clean(c.job)}" for c in found.jobs[:MOST_JOBS]]
        lines += [f"{len(found.jobs) - MOST_JOBS} more: --json"] if len(found.jobs) > MOST_JOBS else []
    for word, outputs in (("only before", found.gone), ("only after", found.new)):
        if outputs:
            names = ", ".join(clean(output, 80) for output in outputs[:3])
            lines.append(f"{word}: {len(outputs)} jobs ({names}{', …' if len(outputs) > 3 else ''})")
    return lines


def _sides(change: Change) -> str:
    share = "" if change.share is None else f"{100 * change.share:+.0f} %"
    word = "" if change.verdict in ("same", "unknown") else f"  {change.verdict}"
    return f"{_value(change.figure, change.before):>12}{_value(change.figure, change.after):>12}{share:>9}{word}"


def _value(figure: str, value: float | None) -> str:
    if value is None:
        return "-"
    if figure == "peak_bytes":
        return format_bytes(value)
    if figure.endswith("seconds"):
        return format_duration(value) if value >= 60 else f"{value:.1f} s"
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"
