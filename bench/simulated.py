"""Makes tables, plots and targets of the simulated builds. Knows only their figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.figures import table
from bench.witness import best_known
from stoker.report.svg import Axis, Bar, bars

GIB = 2**30
Figure = dict[str, Any]
"""What one build on paper came to: its grid's place (build, order, seed, cores, gib, policy), and its Result."""

TARGETS = {"pytorch": 1.10, "flash-attn": 1.40, "vllm": 1.40}
"""Makespan over the bound that noisy history must not exceed. Besides: nothing over the memory, and no kills."""

TARGETED = {(16, 32), (32, 64), (64, 128)}
"""Cores and GiB of the machines for which these are stated: with less memory for each core the bound is out of reach,
since it knows no peaks."""

TITLES = {"pytorch": "PyTorch-like", "flash-attn": "flash-attention-like", "vllm": "vLLM-like"}
OWN = {"stoker exact": "exact", "stoker noisy": "noisy", "stoker absent": "first build"}
WAYS = (*OWN, "best fixed", "fixed", "load", "kill-and-restart", "psi")
NAMES = {
    **OWN,
    "best fixed": "best -j, by hindsight",
    "fixed": "-j CORES",
    "load": "ninja -l CORES",
    "kill-and-restart": "kill and restart",
    "psi": "PSI limiter",
}


def text_of(figures: Sequence[Figure]) -> str:
    """For each build a table of ratios, what was lost over all machines, and every single run behind a fold."""
    found = []
    for build in dict.fromkeys(f["build"] for f in figures):
        own = [f for f in figures if f["build"] == build]
        jobs, orders = own[0]["jobs"], " and ".join(dict.fromkeys(f["order"] for f in own))
        found.append(
            f"**{TITLES[build]}**, {jobs:,} jobs; heavy ones: {orders}. Makespan over the lower bound, at worst; of "
            "stoker, behind that, over the best schedule that is known:"
        )
        found += ["", _ratios(own), "", _losses(own), "", _details(own), ""]
    return "\n".join([*found, _verdict(figures)])


def summary_of(figures: Sequence[Figure]) -> dict[str, Any]:
    """Worst ratio of each build, machine and way; kills and what missed its target."""
    cells = {
        f"{build}, {cores} cores, {gib} GiB": {way: _worst(_of(machine, way)) for way in WAYS}
        for build in dict.fromkeys(f["build"] for f in figures)
        for (cores, gib), machine in _by_machine([f for f in figures if f["build"] == build]).items()
    }
    own = [f for f in figures if f["policy"] in OWN]
    return {"worst_ratio": cells, "kills": sum(f["kills"] for f in own), "missed": [_place(f) for f in missed(figures)]}


def missed(figures: Iterable[Figure]) -> list[Figure]:
    """Runs of stoker that killed, or with noisy history took longer than the target."""
    own = [f for f in figures if f["policy"] in OWN]
    return [f for f in own if f["kills"] or (_is_targeted(f) and f["ratio"] > TARGETS[f["build"]])]


def _is_targeted(figure: Figure) -> bool:
    return figure["policy"] == "stoker noisy" and (figure["cores"], figure["gib"]) in TARGETED


def plots_of(figures: Sequence[Figure]) -> dict[str, str]:
    """One plot of each build: noisy stoker beside what people use."""
    shown = ("stoker noisy", "best fixed", "load", "kill-and-restart", "psi")
    found = {}
    for build in dict.fromkeys(f["build"] for f in figures):
        groups = {
            f"{cores} cores, {gib} GiB": [_bar(_of(machine, way)) for way in shown]
            for (cores, gib), machine in _by_machine([f for f in figures if f["build"] == build]).items()
        }
        names = ["stoker, noisy history", *(NAMES[way] for way in shown[1:])]
        axis = Axis("makespan over the lower bound; † means that jobs were killed", mark=1.0, top=6.0)
        found[f"simulate-{build}"] = bars(f"{TITLES[build]} build on paper", names, groups, axis)
    return found


def _bar(runs: Sequence[Figure]) -> Bar:
    if not runs:
        return Bar(None, note="none survives")
    return Bar(_worst(runs), note="†" if any(f["kills"] for f in runs) else "")


def _of(figures: Sequence[Figure], way: str) -> list[Figure]:
    """The runs of one way on one machine; `best fixed` is the fastest level without a kill, in each order and seed."""
    if way != "best fixed":
        return [f for f in figures if f["policy"] == way or (":" in f["policy"] and _level(f, way) == f["cores"])]
    found = []
    for place in dict.fromkeys((f["order"], f["seed"]) for f in figures):
        here = [f for f in figures if (f["order"], f["seed"]) == place and f["policy"].startswith("fixed:")]
        alive = [f for f in here if not f["kills"]]
        found += [min(alive, key=lambda f: float(f["makespan"]))] if alive else []
    return found


def _level(figure: Figure, way: str) -> int:
    kind, _, number = figure["policy"].partition(":")
    return int(number) if kind == way else 0


def _worst(runs: Sequence[Figure]) -> float | None:
    return max((f["ratio"] for f in runs), default=None)


def _by_machine(figures: Sequence[Figure]) -> dict[tuple[int, int], list[Figure]]:
    places = sorted({(f["gib"], f["cores"]) for f in figures})
    return {(c, g): [f for f in figures if (f["cores"], f["gib"]) == (c, g)] for g, c in places}


def _ratios(figures: Sequence[Figure]) -> str:
    rows = []
    for (cores, gib), machine in _by_machine(figures).items():
        bound = max(f["bound"] for f in machine)
        best = best_known(machine[0]["build"], cores, gib)
        cells = [_ratio(_of(machine, way), "none survives" if way == "best fixed" else "") for way in WAYS]
        for place, way in enumerate(OWN):
            cells[place] += over_best([f["makespan"] for f in _of(machine, way)], best)
        rows.append([f"{gib} GiB, {cores}", f"{bound:,.0f}", "" if best is None else f"{best:,.0f}", *cells])
    return table(["memory, cores", "bound, s", "best known, s", *(NAMES[way] for way in WAYS)], rows)


def over_best(makespans: Sequence[float], best: float | None) -> str:
    """The longest over the best known, to stand behind the ratio to the bound; empty where none is known."""
    return f" · {max(makespans) / best:.2f}" if best is not None and makespans else ""


def _ratio(runs: Sequence[Figure], none: str) -> str:
    if not runs:
        return none
    kills, never = sum(f["kills"] for f in runs), sum(f["given_up"] for f in runs)
    lost = f" ({kills:,} kills" + (f", {never:,} jobs never built)" if never else ")") if kills else ""
    return f"{_worst(runs):.2f}{lost}"


def _losses(figures: Sequence[Figure]) -> str:
    """Over all machines, orders and seeds."""
    rows = []
    for way in WAYS:
        runs = [f for machine in _by_machine(figures).values() for f in _of(machine, way)]
        if runs:
            lost, spent = sum(f["lost_seconds"] for f in runs), sum(f["makespan"] * f["cores"] for f in runs)
            rows.append(
                [
                    NAMES[way],
                    str(len(runs)),
                    str(sum(f["kills"] for f in runs)),
                    str(sum(f["restarts"] for f in runs)),
                    f"{lost / 3600:,.1f}",
                    f"{max(f['peak'] / f['gib'] / GIB for f in runs):.0%}",
                    f"{sum(f['idle'] * f['cores'] for f in runs) / spent:.0%}",
                ]
            )
    head = ["over all machines", "runs", "kills", "restarts", "CPU hours lost", "most memory in use", "cores idle"]
    return table(head, rows)


def _details(figures: Sequence[Figure]) -> str:
    rows = []
    for (cores, gib), machine in _by_machine(figures).items():
        for way in WAYS:
            rows += [_detail(f, f"{gib} GiB, {cores}", way) for f in _of(machine, way)]
    head = ["memory, cores", "heavy jobs", "way", "makespan, s", "× bound", "kills", "lost, s", "peak", "idle, s"]
    return f"<details><summary>each run</summary>\n\n{table(head, rows)}\n\n</details>"


def _detail(figure: Figure, machine: str, way: str) -> list[str]:
    level = f" (-j{figure['policy'].partition(':')[2]})" if way == "best fixed" else ""
    return [
        machine,
        figure["order"],
        NAMES[way] + level,
        f"{figure['makespan']:,.0f}",
        f"{figure['ratio']:.2f}",
        str(figure["kills"]),
        f"{figure['lost_seconds']:,.0f}",
        f"{figure['peak'] / figure['gib'] / GIB:.0%}",
        f"{figure['idle']:,.0f}",
    ]


def _verdict(figures: Sequence[Figure]) -> str:
    own = [f for f in figures if f["policy"] in OWN]
    targeted = [f for f in own if _is_targeted(f)]
    late = missed(figures)
    most = max(f["peak"] / f["gib"] / GIB for f in own)
    names = dict.fromkeys(f["build"] for f in figures)
    builds = ", ".join(f"{TARGETS[build]:.2f} for {TITLES[build]}" for build in names)
    told = (
        f"stoker: {len(own)} runs, {sum(f['kills'] for f in own)} kills, at most {most:.1%} of the memory in use. "
        f"Targets with noisy history and 2 GiB a core up to 128 GiB: {builds}; missed in "
        f"{sum(f in late for f in targeted)} of {len(targeted)} runs"
    )
    return told + ("".join(f"; {_place(f)}: {f['ratio']:.2f}" for f in late) or "") + "."


def _place(figure: Figure) -> str:
    return f"{figure['build']} ({figure['order']}), {figure['cores']} cores, {figure['gib']} GiB, {figure['policy']}"
