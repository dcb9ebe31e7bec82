"""Measures what remote slots gain under stoker, and what watching a hundred hosts costs. See bench/README.md.

    python -m bench.remote [--pairs 5] [--units 48] [--seconds 2] [--clients 100] [--looks 20] [--json FILE] [--write]

A build behind a distccd on loopback, whose compilers sleep before they begin: bare ninja with a job for each slot and
core, and `stoker run -- ninja`, take turns. Then an engine whose build has a hundred clients that wait for a hundred
hosts (bench/fake_distcc.c), beside one with as many jobs that sleep on this machine: what the former uses more is the
price of watching other machines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bench.figures import add_arguments, machine, publish, spread, table
from support.distcc import Farm, write_build
from support.program import PYPI_NINJA, Stoker, until

TICKS = os.sysconf("SC_CLK_TCK")
SLOTS = 8
CLIENT = "rule r\n  command = {command} {seconds}\n"


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("pairs", 5), ("units", 48), ("seconds", 2), ("clients", 100), ("looks", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    add_arguments(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as name:
        pairs = _pairs(Path(name), args.pairs, args.units, args.seconds)
    costs = {kind: _cost(kind, args.clients, args.looks) for kind in ("local", "remote")}
    found = [{"pairs": pairs, "costs": costs}]
    ratios = spread([governed / bare for bare, governed in pairs])
    bare, governed = spread([p[0] for p in pairs]), spread([p[1] for p in pairs])
    head = ["pairs", "bare ninja, s", "under stoker, s", "ratio"]
    rows = [[str(len(pairs)), bare.text(), governed.text(), ratios.text()]]
    wide, remote, local = SLOTS + _cores(), costs["remote"], costs["local"]
    about = (
        f"{args.units} files, {SLOTS} slots whose compilers sleep {args.seconds} s: `ninja -j{wide}` beside "
        f"`stoker run -- ninja`, from ninja's start to its end.\n\n{table(head, rows)}\n\n"
        f"An engine with {args.clients} jobs that wait for 100 hosts uses {remote:.2f} % of a core, with as many that "
        f"sleep here {local:.2f} %: {remote - local:.2f} % for looking at other machines."
    )
    summary = {"ratio": ratios, "cost": spread([remote - local])}
    publish("remote", found, f"{machine()}.\n\n{about}\n", out=args.json, write=args.write, summary=summary)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


# -- wall time -------------------------------------------------------------------------------------------------


def _pairs(root: Path, pairs: int, units: int, seconds: int) -> list[tuple[float, float]]:
    farm = Farm(root / "farm")
    try:
        farm.start("127.0.0.1", SLOTS, seconds)
        farm.let_go()
        project = write_build(root / "project", units)
        return [(_bare(project, farm), _governed(project, farm, root)) for _ in range(pairs)]
    finally:
        farm.end()


def _bare(project: Path, farm: Farm) -> float:
    _clean(project)
    begin = time.monotonic()
    words = [PYPI_NINJA, "--quiet", f"-j{SLOTS + _cores()}"]
    subprocess.run(words, cwd=project, env={**os.environ, **farm.env}, check=True, start_new_session=True)
    return time.monotonic() - begin


def _governed(project: Path, farm: Farm, root: Path) -> float:
    """From ninja's start to its end: what comes before and after is in `bench.overhead`."""
    _clean(project)
    stoker = Stoker(Path(tempfile.mkdtemp(dir=root)))
    stoker.env |= farm.env
    ninja, begun = stoker.root / "ninja", stoker.root / "begun"
    ninja.write_text(f'#!/bin/sh\ndate +%s.%N > {begun}\nexec {PYPI_NINJA} "$@"\n')
    ninja.chmod(0o755)
    words = stoker.argv("run", "--plain", "--no-doctor", "--", str(ninja))
    subprocess.run(words, cwd=project, env=stoker.env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (exit_file,) = stoker.state.glob("stoker/builds/*/exit.json")
    seconds: float = json.loads(exit_file.read_bytes())["ended"] - float(begun.read_text())
    shutil.rmtree(stoker.runtime, ignore_errors=True)
    return seconds


def _clean(project: Path) -> None:
    for file in (*project.glob("*.o"), *project.glob("*.so"), project / ".ninja_log"):
        file.unlink(missing_ok=True)


# -- the engine's share ----------------------------------------------------------------------------------------


def _cost(kind: str, clients: int, looks: int) -> float:
    """Percent of a core that an engine uses in `looks` seconds beside jobs that only wait."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as name:
        root = Path(name)
        (root / "bin").mkdir()
        (root / "state" / "state").mkdir(parents=True)
        fake = root / "bin" / "distcc"
        subprocess.run(["gcc", "-O1", "-o", str(fake), str(Path(__file__).with_name("fake_distcc.c"))], check=True)
        shutil.copy(fake, root / "bin" / "g++")
        command = f"{fake if kind == 'remote' else ''} {root}/bin/g++ -c f.cpp -o $out"
        edges = "".join(f"build o{n}: r\n" for n in range(clients))
        (root / "build.ninja").write_text(CLIENT.format(command=command, seconds=3600) + edges)
        stoker = Stoker(root)
        stoker.env |= {"DISTCC_DIR": str(root / "state"), "DISTCC_HOSTS": "h"}
        stoker.env["PATH"] = f"{root / 'bin'}:{stoker.env['PATH']}"
        try:
            return _share(stoker, kind, clients, looks)
        finally:
            stoker.end_all()
            shutil.rmtree(stoker.runtime, ignore_errors=True)


def _share(stoker: Stoker, kind: str, clients: int, looks: int) -> float:
    build = stoker.detach(PYPI_NINJA, cwd=stoker.root, jobs=clients if kind == "local" else None)
    counted = "remote" if kind == "remote" else "running"
    if kind == "local":
        stoker.run("jobs", build, str(clients), "--ignore-memory")
    until(lambda: stoker.status(build)["progress"][counted] == clients, "all clients wait")
    engine = stoker.engine_pid(build)
    time.sleep(5)
    before, begin = _ticks(engine), time.monotonic()
    time.sleep(looks)
    return 100.0 * (_ticks(engine) - before) / TICKS / (time.monotonic() - begin)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    main()
