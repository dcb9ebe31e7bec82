"""Measures the screen's bytes and delay on a slow link, and those of other monitors. See bench/README.md.

    python -m bench.link [--seconds 20] [--rounds 3] [--quick] [--check] [--json FILE] [--write]
    python -m bench.link --size 200x60 --jobs 128 --end-rate 3 --theme ansi-16 --screen t --full

Three parts: bytes written per second while every figure on the screen changes each second; the delay of a change
through a link of 4 KB/s; and a real build watched at the same time by stoker and, if installed, by htop, btop, glances
and top. The second form measures one screen. `--check` fails above the targets.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import Spread, add_arguments, machine, percentile, publish, spread, table
from bench.footprint import write_build
from bench.link_pty import SLICE_SECONDS, Pty, watch
from stoker.report.svg import Axis, Bar, bars
from support.program import PYPI_NINJA, Stoker

MAX_BYTES_PER_SECOND = 2048
MAX_CPU_PERCENT = 3.0
MAX_LAG_SECONDS = 0.5
"""By which the slow link may delay what is seen, beyond a fast one."""

LINK, FAST = 4096, 2**24
"""Bytes per second."""

WARM_UP = 5.0
SIZES = ("80x24", "120x40", "200x60")
JOBS = (4, 30, 128)
FULL = {"STOKER_FULL_REPAINT": "1"}
MONITORS = ("htop", "btop", "glances", "top")

Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Screen:
    """One screen to measure; `key` is pressed first, `full` is Textual's own way of writing."""

    about: str
    size: str = "80x24"
    jobs: int = 30
    end_rate: int = 0
    theme: str = "dark"
    key: str = ""
    full: bool = False

    def open(self, *, ticks: Path | None = None, rate: int | None = None) -> Pty:
        """The program on its terminal."""
        words = ["--jobs", str(self.jobs), "--end-rate", str(self.end_rate), "--theme", self.theme]
        words += ["--ticks", str(ticks)] if ticks is not None else []
        argv = [sys.executable, "-m", "bench.link_screen", *words]
        return Pty(argv, _size(self.size), FULL if self.full else None, rate)


MATRIX = [Screen(f"{jobs} jobs", size, jobs) for size in SIZES for jobs in JOBS]
OTHERS = [
    Screen("60x20", "60x20"),
    Screen("3 jobs a second end and begin", end_rate=3),
    Screen("theme `ansi-16`", theme="ansi-16"),
    Screen("timeline", key="t"),
    Screen("output", key="o"),
    Screen("Textual's own driver", full=True),
]


def _size(text: str) -> tuple[int, int]:
    columns, lines = map(int, text.split("x"))
    return columns, lines


def rates(screens: Sequence[Screen], seconds: float, rounds: int) -> list[Found]:
    """Bytes and CPU a second of each, all watched at the same time."""
    with ExitStack() as stack:
        ptys = [stack.enter_context(screen.open()) for screen in screens]
        watch(ptys, WARM_UP / 2)
        for screen, pty in zip(screens, ptys, strict=True):
            if screen.key:
                pty.type(screen.key)
        watch(ptys, WARM_UP / 2)
        windows = _windows(ptys, seconds, rounds)
        return [
            {**asdict(screen), "windows": own, "mib": pty.mib}
            for screen, pty, own in zip(screens, ptys, windows, strict=True)
        ]


def _windows(ptys: Sequence[Pty], seconds: float, rounds: int) -> list[list[dict[str, float]]]:
    """For each of them bytes and percent of a core in each of several stretches of time."""
    found: list[list[dict[str, float]]] = [[] for _ in ptys]
    for _ in range(rounds):
        before = [(pty.total, pty.cpu) for pty in ptys]
        begin = time.monotonic()
        watch(ptys, seconds)
        span = time.monotonic() - begin
        for own, pty, (total, cpu) in zip(found, ptys, before, strict=True):
            own.append({"bytes": (pty.total - total) / span, "cpu": 100 * (pty.cpu - cpu) / span})
    return found


def lags(sizes: Sequence[str], seconds: float) -> list[Found]:
    """How late each second is seen: through a fast link, a slow one, and a slow one with Textual's own driver."""
    ways = (("stoker's, fast link", False, FAST), ("stoker's", False, LINK), ("Textual's own", True, LINK))
    screens = [Screen(about, size, full=full) for size in sizes for about, full, _ in ways]
    links = [rate for _ in sizes for _, _, rate in ways]
    with tempfile.TemporaryDirectory(prefix="stoker-link-") as name, ExitStack() as stack:
        files = [Path(name, str(n)) for n in range(len(screens))]
        ptys = [
            stack.enter_context(screen.open(ticks=file, rate=rate))
            for screen, file, rate in zip(screens, files, links, strict=True)
        ]
        seen: list[dict[int, float]] = [{} for _ in ptys]
        end = time.monotonic() + 2 * WARM_UP + seconds
        while time.monotonic() < end:
            time.sleep(SLICE_SECONDS)
            for pty, own in zip(ptys, seen, strict=True):
                pty.read()
                number = _number(pty.top_line)
                if number and number not in own:
                    own[number] = time.monotonic()
        return [_lag(s, _times(file), own) for s, file, own in zip(screens, files, seen, strict=True)]


def _number(line: str) -> int:
    """The second that a screen's first line tells of, 0 if none."""
    text = line.partition("tick")[2][:5]
    return int(text) if text.isdecimal() else 0


def _times(file: Path) -> list[float]:
    return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


def _lag(screen: Screen, told: Sequence[float], seen: Mapping[int, float]) -> Found:
    """Seconds until each change was on the screen, or a later one was; those never seen count up to now."""
    now = time.monotonic()
    late = []
    for number, at in enumerate(told, 1):
        shown = min((when for n, when in seen.items() if n >= number), default=now)
        late.append(shown - at)
    return {**asdict(screen), "lags": late[int(2 * WARM_UP) :]}


def beside(sizes: Sequence[str], seconds: float, rounds: int) -> list[Found]:
    """A real build of 30 jobs, watched by all monitors that are there, and by stoker, at the same time."""
    there = [name for name in MONITORS if shutil.which(name)]
    root = Path(tempfile.mkdtemp(prefix="stoker-link-"))
    stoker = Stoker(root)
    found = []
    try:
        whole = len(sizes) * (WARM_UP + seconds * rounds) + 60
        project = root / "project"
        project.mkdir()
        write_build(project, 30, whole)
        started = stoker.run("run", "--detach", "-j", "30", "--", PYPI_NINJA, "-C", str(project))
        assert started.returncode == 0, started.stderr
        build = started.stdout.decode().strip()
        for size in sizes:
            found += _beside(stoker, build, there, size, seconds, rounds)
    finally:
        stoker.end_all()
        shutil.rmtree(stoker.runtime, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=True)
    return found


def _beside(stoker: Stoker, build: str, names: Sequence[str], size: str, seconds: float, rounds: int) -> list[Found]:
    programs = {"stoker": stoker.argv("attach", build), **{name: [name] for name in names}}
    with ExitStack() as stack:
        ptys = [stack.enter_context(Pty(argv, _size(size), stoker.env)) for argv in programs.values()]
        watch(ptys, WARM_UP)
        windows = _windows(ptys, seconds, rounds)
        return [
            {"program": name, "size": size, "windows": own, "mib": pty.mib, "ended": pty.process.poll()}
            for name, pty, own in zip(programs, ptys, windows, strict=True)
        ]


# -- what it comes to ------------------------------------------------------------------------------------------


def _of(windows: Sequence[Mapping[str, float]], key: str) -> Spread:
    return spread([window[key] for window in windows])


def text_of(found: Mapping[str, list[Found]]) -> str:
    """All tables."""
    parts = []
    if found["screens"]:
        rows = [
            [f["size"], f["about"], _bytes(f), f"{_of(f['windows'], 'cpu').median:.1f}", f"{f['mib']:.0f}"]
            for f in found["screens"]
        ]
        about = (
            "The screen in the worst case: every figure on it changes each second. "
            f"Target: {MAX_BYTES_PER_SECOND:,} bytes a second and {MAX_CPU_PERCENT:.0f} % of a core at 80x24."
        )
        parts.append(f"{about}\n\n{table(['size', 'what', 'bytes a second', 'CPU, %', 'MiB'], rows)}")
    if found["lags"]:
        head = ["size", "driver", "median", "95 of 100", "most"]
        about = (
            f"How late the same screen shows a change through a link of {LINK:,} bytes a second, in seconds (stoker "
        )
        about += "draws once a second, so half a second is what it takes anyway):"
        parts.append(f"{about}\n\n{table(head, [_lag_row(f) for f in found['lags']])}")
    if found["beside"]:
        parts.append(_beside_text(found["beside"]))
    return "\n\n".join(parts)


def _bytes(found: Found) -> str:
    rate = _of(found["windows"], "bytes")
    return f"{rate.median:,.0f} ({rate.low:,.0f}–{rate.high:,.0f})"


def _lag_row(found: Found) -> list[str]:
    late = found["lags"]
    return [found["size"], found["about"], *(f"{percentile(late, p):.2f}" for p in (50, 95, 100))]


def _beside_text(found: Sequence[Found]) -> str:
    rows = []
    for one in found:
        ours = next(f for f in found if f["size"] == one["size"] and f["program"] == "stoker")
        pairs = zip(one["windows"], ours["windows"], strict=True)
        ratio = spread([theirs["bytes"] / max(1.0, mine["bytes"]) for theirs, mine in pairs])
        cpu = _of(one["windows"], "cpu").median
        told = "–" if one is ours else ratio.text(1)
        name = one["program"] if one["ended"] is None else f"{one['program']} (ended with {one['ended']})"
        rows.append([one["size"], name, _bytes(one), told, f"{cpu:.1f}", f"{one['mib']:.0f}"])
    gone = [name for name in MONITORS if name not in {f["program"] for f in found}]
    about = (
        "A real build of 30 jobs, watched at the same time by each, with the settings that each comes with: a picture "
    )
    about += "each second, 1.5 s (htop), 2 s (btop, glances) and 3 s (top)"
    about += f" ({', '.join(gone)}: not there):" if gone else ":"
    head = ["size", "program", "bytes a second", "× stoker", "CPU, %", "MiB"]
    return f"{about}\n\n{table(head, rows)}"


def summary_of(found: Mapping[str, list[Found]]) -> Found:
    """Medians by screen and program."""
    screens = {f"{f['size']}, {f['about']}": _of(f["windows"], "bytes").median for f in found["screens"]}
    late = {f"{f['size']}, {f['about']}": statistics.median(f["lags"]) for f in found["lags"]}
    programs = {f"{f['size']}, {f['program']}": _of(f["windows"], "bytes").median for f in found["beside"]}
    return {"bytes_per_second": screens, "lag_seconds": late, "beside_bytes_per_second": programs}


def missed(found: Mapping[str, list[Found]]) -> list[str]:
    """Targets that were not met."""
    told = []
    for f in found["screens"]:
        rate, cpu = _of(f["windows"], "bytes").median, _of(f["windows"], "cpu").median
        small = f["size"] == "80x24" and not f["full"]
        if small and (rate > MAX_BYTES_PER_SECOND or cpu > MAX_CPU_PERCENT):
            told.append(f"{f['size']}, {f['about']}: {rate:.0f} bytes a second, {cpu:.1f} % of a core")
    late = {f["about"]: percentile(f["lags"], 95) for f in found["lags"] if f["size"] == "80x24"}
    slow, fast = late.get("stoker's", 0.0), late.get("stoker's, fast link", 0.0)
    if slow > fast + MAX_LAG_SECONDS:
        told.append(f"80x24 through {LINK} bytes a second: {slow:.1f} s late, {fast:.1f} through a fast one")
    return told


def plots_of(found: Mapping[str, list[Found]]) -> dict[str, str]:
    """Bytes a second beside other monitors."""
    if not found["beside"]:
        return {}
    programs = list(dict.fromkeys(f["program"] for f in found["beside"]))
    groups: dict[str, list[Bar]] = {}
    for size in dict.fromkeys(f["size"] for f in found["beside"]):
        here = {f["program"]: f for f in found["beside"] if f["size"] == size}
        groups[size] = [Bar(*_of(here[name]["windows"], "bytes")) for name in programs]
    axis = Axis("bytes a second written to the terminal; dashed: a link of 4 KB/s", mark=float(LINK))
    return {"link": bars("What a monitor writes while it watches 30 jobs", programs, groups, axis)}


def main() -> int:
    """Measure and publish; 1 when `--check` finds a target missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of one window")
    parser.add_argument("--rounds", type=int, default=3, help="windows")
    parser.add_argument("--quick", action="store_true", help="one short window, and 80x24 only where that will do")
    parser.add_argument("--check", action="store_true")
    one = parser.add_argument_group("one screen only")
    one.add_argument("--size")
    one.add_argument("--jobs", type=int, default=30)
    one.add_argument("--end-rate", type=int, default=0)
    one.add_argument("--theme", default="dark")
    one.add_argument("--screen", default="", help="a key to press first, such as t")
    one.add_argument("--full", action="store_true", help="Textual's own driver")
    add_arguments(parser)
    args = parser.parse_args()
    seconds, rounds = (6.0, 2) if args.quick else (args.seconds, args.rounds)
    found: dict[str, list[Found]] = {"screens": [], "lags": [], "beside": []}
    if args.size:
        chosen = Screen("", args.size, args.jobs, args.end_rate, args.theme, args.screen, args.full)
        found["screens"] = rates([chosen], seconds, rounds)
    else:
        sizes = SIZES[:1] if args.quick else SIZES
        found["screens"] = [*rates(MATRIX, seconds, rounds), *rates(OTHERS, seconds, rounds)]
        found["lags"] = lags(sizes, seconds * rounds)
        found["beside"] = beside(sizes, seconds, rounds)
    text = f"{machine()}; {rounds} windows of {seconds:.0f} s, median and spread.\n\n{text_of(found)}\n"
    for line in (late := missed(found)):
        print(f"missed: {line}")
    summary = {**summary_of(found), "missed": late}
    publish("link", found, text, out=args.json, write=args.write, summary=summary, plots=plots_of(found))
    return int(args.check and bool(late))


if __name__ == "__main__":
    sys.exit(main())
