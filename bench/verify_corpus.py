"""Compares the verdict about third-party wheels with what other tools say about them.

The names come from `verify_corpus.txt`: a run takes the first thirty and moves them to the end, so that nothing is
tuned to them. pip fetches the wheels, as configured here. References: cuobjdump for device code, `ldd -r` for
libraries, auditwheel for the tag. A difference is judged if a rule covers it; the others are OPEN, for a person
to judge.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from stoker.model.report import FileReport, Report
from stoker.verify.pipeline import VerifyRequest, verify

NAMES = Path(__file__).with_suffix(".txt")
AT_ONCE = 30
DEVICES = ("T4", "A100", "H100", "B200", "GB10")
"""GB10 is DGX Spark's, in a machine with ARM cores."""
SECONDS = 120.0
"""For a witness and one file: cuobjdump takes a minute for some libraries."""

ABSENT = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
TAG = re.compile(r'"((?:many|musl)linux_\d+_\d+_\w+)"')
Listed = Callable[[Path], tuple[Counter[str], str]]


class Row(NamedTuple):
    """One wheel in the table; differences that no rule covers begin with OPEN."""

    wheel: str
    size: float
    cpu: float
    verdicts: list[str]
    device_code: str
    differences: list[str]


def corpus(folder: Path | None, wheels: Sequence[Path], listed: Listed) -> int:
    """Fetch, compare, print the table, and move the names to the end; returns 1 when a difference is OPEN.

    Where `wheels` are named these are compared, such as other systems', and no names are used up.
    """
    names = NAMES.read_text().split()
    rows = [noted(wheel, listed) for wheel in wheels]
    with tempfile.TemporaryDirectory(prefix="stoker-corpus-") as scratch:
        if wheels:
            names = []
        for name in names[:AT_ONCE]:
            wheel = fetched(name, folder or Path(scratch))
            if wheel is None:
                print(f"{name}: no wheel for this machine", file=sys.stderr)
                continue
            rows.append(noted(wheel, listed))
            if folder is None:
                wheel.unlink()
    print(f"| wheel | MB | CPU, s | {' | '.join(DEVICES)} | device code beside cuobjdump | other differences |")
    print("| --- " * (5 + len(DEVICES)) + "|")
    for row in rows:
        print(f"| {row.wheel} | {row.size:.0f} | {row.cpu:.1f} | {' | '.join(row.verdicts)} | {row.device_code} "
              f"| {'; '.join(row.differences) or 'none'} |")  # fmt: skip
    if names:
        NAMES.write_text("\n".join([*names[AT_ONCE:], *names[:AT_ONCE]]) + "\n")
    return int(any(d.startswith("OPEN") for row in rows for d in row.differences))


def noted(wheel: Path, listed: Listed) -> Row:
    """One wheel's row, with a word on it for a person who waits."""
    row = judged(wheel, listed)
    print("\n".join([f"{row.wheel}: {', '.join(row.verdicts)}", *row.differences]), file=sys.stderr, flush=True)
    return row


def fetched(name: str, folder: Path) -> Path | None:
    """The newest wheel of a project for this machine; None where there is none."""
    with tempfile.TemporaryDirectory(prefix="stoker-fetch-") as scratch:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            "-d",
            scratch,
            name,
        ]
        subprocess.run(command, check=False, capture_output=True)
        found = next(Path(scratch).glob("*.whl"), None)
        return None if found is None else Path(shutil.move(found, folder / found.name))


def judged(wheel: Path, listed: Listed) -> Row:
    """One wheel's row."""
    started = time.process_time()
    report = verify(VerifyRequest([str(wheel)], devices=DEVICES))
    cpu = time.process_time() - started
    same, total = 0, 0
    differences = []
    with tempfile.TemporaryDirectory(prefix="stoker-unpacked-") as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        inside = {f.path.partition("::")[2]: f for f in report.files}
        for path in binaries(Path(folder)):
            file = inside.get(str(path.relative_to(folder)))
            if file is None:
                differences.append(f"OPEN {path.name} was not read")
                continue
            if file.archs or has_section(path):
                total += 1
                what = code_difference(file, path, listed)
                same += not what
                differences += [what] if what else []
        differences += library_differences(report, Path(folder))
        differences += tag_differences(report, wheel)
    code = f"{same} of {total} libraries alike" if total else "none"
    name = wheel.name.split("-cp")[0].split("-py")[0]
    verdicts: list[str] = [d.verdict for d in report.devices] or [report.verdict] * len(DEVICES)
    return Row(name, wheel.stat().st_size / 1e6, cpu, verdicts, code, differences)


def binaries(folder: Path) -> Iterator[Path]:
    """Every ELF file that is linked."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and re.search(r"\.so(\.[\w.]+)?$", path.name):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def has_section(path: Path) -> bool:
    """Whether readelf finds nvcc's section."""
    return ".nv_fatbin" in run("readelf", "-SW", str(path))


def code_difference(file: FileReport, path: Path, listed: Listed) -> str:
    """How cuobjdump's list differs from ours; "" when it does not."""
    theirs, failure = listed(path)
    ours = Counter({a.arch: a.count for a in file.archs})
    if theirs == ours:
        return ""
    pieces = sum(ours.values())
    if failure and theirs <= ours:
        reason = failure.splitlines()[0].partition(" in ")[0][:60]
        return f"cuobjdump gives up on {path.name} after {sum(theirs.values())} of {pieces} pieces ({reason})"
    if theirs <= ours:
        return (
            f"cuobjdump lists {sum(theirs.values())} of {path.name}'s {pieces} pieces, the others are in other sections"
        )
    return f"OPEN {path.name}: cuobjdump {dict(theirs - ours)}, ours {dict(ours - theirs)}"


def library_differences(report: Report, folder: Path) -> list[str]:
    """Libraries that ldd does not find and the report does not name, and the other way round."""
    paths = list(binaries(folder))
    absent = {name for path in paths for name in ABSENT.findall(run("ldd", "-r", str(path)))}
    # What the wheel brings itself without a search path is in the process by then: who needs it has loaded it.
    absent -= {path.name for path in paths}
    said = [p.what for p in report.problems]
    text = " ".join(said)
    quiet = sorted(name for name in absent if name not in text)
    # A line names a few of a group and counts the others.
    counted = sum(int(n) for what in said if ".so" in what for n in re.findall(r"\band (\d+) more\b", what))
    alarms = [p.what for p in report.problems if p.severity == "error" and not p.unreadable and "missing" in p.what
              and not any(name in p.what for name in absent)]  # fmt: skip
    found = [f"OPEN {what[:100]}: ldd finds it" for what in alarms]
    if len(quiet) > counted:
        found.append(f"OPEN {len(quiet)} libraries that ldd does not find: {', '.join(quiet[:4])}")
    return found


def tag_differences(report: Report, wheel: Path) -> list[str]:
    """Whether auditwheel and the report agree that the tag's promise is kept."""
    tags = re.findall(r"(?:many|musl)linux_\d+_\d+", wheel.name)
    if not tags:
        return []
    shown = TAG.search(run(sys.executable, "-m", "auditwheel", "show", str(wheel)))
    if shown is None:
        return []
    version = [tuple(map(int, re.findall(r"\d+", t)[:2])) for t in (shown[1], max(tags, key=glibc))]
    broken = any("promises" in p.what for p in report.problems)
    if broken == (version[0] > version[1]):
        return []
    return [
        f"OPEN auditwheel says {shown[1]} of {tags[-1]}, the report {'names' if broken else 'names no'} broken promise"
    ]


def glibc(tag: str) -> tuple[int, ...]:
    """The version in a tag."""
    return tuple(map(int, re.findall(r"\d+", tag)))


def run(*command: str) -> str:
    """What a witness prints; nothing when it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout + done.stderr
