"""Injects random faults into governed builds, round after round. See bench/README.md.

    python -m bench.chaos [--rounds 100] [--seed 1] [--fault NAME ...] [--json FILE] [--write]

Counts the faults and their consequences; exits with 1 if anything happened that must never happen.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.figures import add_arguments, machine, publish, table
from support.chaos import FAULTS, Round, play, write_project


def measure(rounds: int, seed: int, faults: Sequence[str]) -> list[Round]:
    """All rounds, each printed as it ends. The files of a wrong one are kept."""
    root = Path(tempfile.mkdtemp(prefix="stoker-chaos-"))
    project = write_project(root / "project")
    results = []
    try:
        for number in range(rounds):
            home = root / f"round{number}"
            home.mkdir()
            begin = time.monotonic()
            result = play(home, project, random.Random(f"{seed}.{number}"), faults)
            results.append(result)
            what = ", ".join(result.faults) or "no fault came in time"
            verdict = f"WRONG, kept in {home}: {result}" if result.wrong else f"{result.state} {result.reason}"
            print(f"{seed}.{number}: {what}: {verdict} ({time.monotonic() - begin:.1f} s)", flush=True)
            if result.wrong:
                shutil.copy(project / ".ninja_log", home)
            else:
                shutil.rmtree(home)
    finally:
        shutil.rmtree(project)
        if not any(result.wrong for result in results):
            shutil.rmtree(root)
    return results


def text_of(results: Sequence[Round]) -> str:
    """What happened, by fault."""
    faults = sorted({name for result in results for name in result.faults})
    rows = []
    for name in faults:
        having = [result for result in results if name in result.faults]
        ended = Counter(result.state for result in having)
        rows.append([name, str(len(having)), *(str(ended[state]) for state in ("done", "failed"))])
    never = {
        "hung": sum(result.hung for result in results),
        "processes left stopped": sum(len(result.left_stopped) for result in results),
        "orphans": sum(len(result.orphans) for result in results),
        "journal records lost": sum(result.lost_records for result in results),
        "untrue endings": sum(len(result.untrue) for result in results),
        "wrong counts": sum(len(result.miscounted) for result in results),
    }
    counts = "; ".join(f"{name}: {count}" for name, count in never.items())
    truly = sum(not result.hung and not result.untrue for result in results)
    done = sum(len(result.faults) for result in results)
    told = f"{len(results)} builds, {done} faults; {truly} builds ended, and ended truly. {counts}."
    return f"{told}\n\n{table(['fault', 'builds', 'done', 'failed'], rows)}"


def main() -> int:
    """Play and publish."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        choices=FAULTS,
        help="this one in each build in place of any, such as 'engine killed'; given twice: one after the other",
    )
    add_arguments(parser)
    args = parser.parse_args()
    results = measure(args.rounds, args.seed, args.fault)
    text = f"{machine()}.\n\n{text_of(results)}\n"
    rounds = [asdict(result) for result in results]
    summary = {
        "builds": len(results),
        "faults": sum(len(result.faults) for result in results),
        "ended_truly": sum(not result.hung and not result.untrue for result in results),
        "left_stopped": sum(len(result.left_stopped) for result in results),
        "records_lost": sum(result.lost_records for result in results),
        "wrong": sum(result.wrong for result in results),
    }
    publish("chaos", rounds, text, out=args.json, write=args.write, summary=summary)
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main())
