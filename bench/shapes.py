"""Runs builds that die under plain `ninja -j8`: their tools take memory in every possible way. See bench/README.md.

    python -m bench.shapes [--builds 40] [--climbers 20] [--first 0] [--ninja PATH] [--json FILE] [--write]

Each build runs in its own control group: plain, then under stoker, first time. A build ends correctly if its status is
that of `ninja -j1`. Exits with 1 if one ends differently, or was killed more often than plain.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.figures import add_arguments, machine, publish, spread, table
from bench.squeezed import run_in_group
from support.memory_group import MIB
from support.program import PYPI_NINJA, Stoker
from support.shapes import Project, climbers, drawn, write_project
from support.shapes import clean as clean_project

LEVEL = 8

ENGINE_MIB = 64
"""What supervisor and engine take of the group beside the build: more memory for both ways, so that they are alike."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One build, plain and below stoker. `shed` counts jobs that stoker ended to save others, `attempts` its tries."""

    kind: str
    about: str
    good: bool
    plain_status: int
    plain_kills: int
    plain_seconds: float
    status: int
    kills: int
    shed: int
    attempts: int
    seconds: float
    peak_mib: int

    @property
    def right(self) -> bool:
        """It ended as its jobs would one after the other."""
        return (self.status == 0) == self.good

    @property
    def worse(self) -> bool:
        """Plain ninja got through and stoker did not."""
        return self.plain_status == 0 and self.status != 0


def play(kind: str, project: Project, root: Path, ninja: str) -> Outcome:
    """One build, both ways."""
    folder = write_project(root / "project", project.jobs)
    limit = project.limit_mib + ENGINE_MIB
    command = [ninja, "-C", str(folder)]
    plain = run_in_group([*command, f"-j{LEVEL}"], limit)
    clean_project(folder, project.jobs)
    stoker = Stoker(root / "home")
    try:
        ours = run_in_group(stoker.argv("run", "--plain", "-j", str(LEVEL), "--", *command), limit, stoker.env)
        told = stoker.events(stoker.status()["id"])
    finally:
        stoker.end_all()
        shutil.rmtree(stoker.runtime, ignore_errors=True)
    shed = sum(e["type"] == "job_killed" and e["by"] == "shed" for e in told)
    attempts = sum(e["type"] == "step_started" for e in told)
    return Outcome(
        kind,
        project.about,
        project.good,
        plain.status,
        plain.kills,
        plain.seconds,
        ours.status,
        ours.kills,
        shed,
        attempts,
        ours.seconds,
        ours.held_peak // MIB,
    )


def measure(builds: Sequence[tuple[str, Project]], ninja: str, keep: Path | None = None) -> list[Outcome]:
    """All of them, each told as it ends; `keep` gets the files of those that end as they must not."""
    found = []
    for kind, project in builds:
        root = Path(tempfile.mkdtemp(prefix="stoker-shapes-"))
        outcome = play(kind, project, root, ninja)
        found.append(outcome)
        if keep is not None and not outcome.right:
            shutil.copytree(root, keep / root.name, symlinks=True, ignore_dangling_symlinks=True)
        shutil.rmtree(root, ignore_errors=True)
        print(json.dumps(asdict(outcome) | {"right": outcome.right}), flush=True)
    return found


def text_of(found: Sequence[Outcome]) -> str:
    """A row for each kind of build."""
    head = ["builds", "number", "plain died", "plain kills", "right ends", "worse", "kernel kills", "at most", "shed"]
    head += ["attempts", "seconds"]
    rows = []
    for kind in dict.fromkeys(outcome.kind for outcome in found):
        some = [outcome for outcome in found if outcome.kind == kind]
        rows.append([
            kind,
            str(len(some)),
            str(sum(o.plain_status != 0 for o in some)),
            str(sum(o.plain_kills for o in some)),
            str(sum(o.right for o in some)),
            str(sum(o.worse for o in some)),
            str(sum(o.kills for o in some)),
            str(max(o.kills for o in some)),
            str(sum(o.shed for o in some)),
            str(sum(o.attempts for o in some)),
            spread([o.seconds for o in some]).text(1),
        ])  # fmt: skip
    return table(head, rows)


def main() -> int:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--builds", type=int, default=40, help="builds of any shapes")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the seed of the first of them")
    parser.add_argument("--climbers", type=int, default=20, help="builds of jobs that climb to 900 MiB in a second")
    parser.add_argument("--ninja", default=PYPI_NINJA, help="which (default: PyPI's)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the files of builds that end wrongly here")
    add_arguments(parser)
    args = parser.parse_args()
    builds = [("drawn", drawn(args.first + n)) for n in range(args.builds)]
    builds += [("climbers", climbers())] * args.climbers
    found = measure(builds, args.ninja, args.keep)
    text = f"{machine()}.\n\n{text_of(found)}\n"
    wrong = sum(not outcome.right for outcome in found)
    summary = {"builds": len(found), "wrong": wrong, "worse": sum(o.worse for o in found)}
    publish("shapes", [asdict(outcome) for outcome in found], text, out=args.json, write=args.write, summary=summary)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
