"""Finds, from its journal, the binaries with device code that a build has just written. Unaware of how they are judged.

Reads only what shows whether there is any device code: section headers.
"""

from __future__ import annotations

import glob
import itertools
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from stoker.contract.spec_file import BuildSpec
from stoker.model.codec import CodecError, decode_record
from stoker.model.events import JobFinished, SchedulerPlanned, SchedulerStarted
from stoker.model.tool import Tool
from stoker.record.jsonlines import BadLineError, parse_line
from stoker.verify.binary import archive
from stoker.verify.binary.byte_source import ByteSource, Deadline, FileSource, PartSource, UnreadableError
from stoker.verify.binary.elf import is_elf, read_elf
from stoker.verify.binary.relinked import LINKED, RELOCATABLE

MAX_CANDIDATES = 200
"""Files verified, largest first: what a larger build leaves out is small."""

MAX_OUTPUTS = 20_000
"""Outputs remembered while the journal is read: PyTorch has some 2,000 that may contain device code."""

SEARCH_SECONDS = 5.0
"""Time limit for looking into files; one second is enough for thousands of section headers."""

CLOCK_SLACK = 2.0
"""Seconds by which a file may seem older than the build: file systems round times, some to 2 s (FAT)."""

_MAX_LINE = 1 << 16
_OBJECT = re.compile(r".*\.(?:o|obj|lo)$")
_CUDA_OUTPUT = re.compile(r".*\.(?:o|obj|lo|a|so|pyd|cubin|fatbin)$|.*\.so\.[\w.]+$")
_FINISHED, _PLANNED = b'"type":"job_finished"', b'"type":"scheduler_planned"'
_RELEVANT = (b'"type":"scheduler_started"', _PLANNED, _FINISHED)
_TOOLS = (b'"tool":"nvcc"', b'"tool":"link"', b'"tool":"archive"')


class Output(NamedTuple):
    """What a job wrote."""

    path: Path
    tool: Tool


@dataclass(frozen=True, slots=True)
class Written:
    """The files to verify, largest first; whether nvcc ran at all; how many files were left out."""

    paths: tuple[Path, ...]
    nvcc: bool
    left_out: int = 0
    by_journal: bool = True
    """Files that the journal names and that have device code; otherwise the files that a profile names."""
    unmatched: tuple[str, ...] = ()
    """The profile's patterns, if they match nothing that the build wrote."""


def find_written(journal: Path, since: float) -> Written:
    """Return the existing files with device code that the build of this journal wrote since Unix time `since`.

    Object files count only if nothing was linked or archived from them, because they are not what runs.
    """
    outputs, nvcc = _recorded(journal)
    files = _existing(outputs, since)
    deadline = Deadline(SEARCH_SECONDS, time.monotonic)
    # Without nvcc, skip static libraries: looking into every member of LLVM's takes a second.
    whole = [p for p in files if not _OBJECT.fullmatch(p.name) and (nvcc or p.suffix != ".a")]
    found = [p for p in whole if _holds_device_code(p, deadline)]
    if not found and nvcc:
        found = [p for p in files if _OBJECT.fullmatch(p.name) and _holds_device_code(p, deadline)]
    return Written(tuple(found[:MAX_CANDIDATES]), nvcc, max(0, len(found) - MAX_CANDIDATES))


def what_to_verify(journal: Path, spec: BuildSpec, since: float) -> Written:
    """Return the files that the build's profile names, if there are any; otherwise those that the journal names.

    Among named files, those also count that were written by the builds which this one resumes.
    """
    patterns = spec.verify
    named = find_matching(Path(spec.cwd), patterns, spec.since or since)
    if named:
        paths = tuple(named[:MAX_CANDIDATES])
        return Written(paths, nvcc=False, left_out=len(named) - len(paths), by_journal=False)
    return replace(find_written(journal, since), unmatched=patterns)


def find_matching(folder: Path, patterns: Iterable[str], since: float) -> list[Path]:
    """Return files below `folder` that match the patterns and were written since Unix time `since`, largest first."""
    names = itertools.chain.from_iterable(glob.iglob(pattern, root_dir=folder, recursive=True) for pattern in patterns)
    return _existing((Output(Path(folder, name), "other") for name in itertools.islice(names, MAX_OUTPUTS)), since)


def _recorded(journal: Path) -> tuple[list[Output], bool]:
    """Return job outputs that may contain device code, and whether nvcc was to run: only the plan knows jobs too short
    to be seen."""
    folders: dict[int, str] = {}
    outputs: dict[Output, None] = {}
    nvcc, left = False, MAX_OUTPUTS
    for event in _events(journal):
        if isinstance(event, SchedulerStarted):
            folders[event.sid] = event.directory
        elif isinstance(event, SchedulerPlanned):
            nvcc = nvcc or event.tools.get("nvcc", 0) > 0
        elif isinstance(event, JobFinished) and event.outcome not in ("failed", "interrupted"):
            left -= 1
            if event.tool != "nvcc" or _CUDA_OUTPUT.fullmatch(event.output):
                outputs[Output(Path(folders.get(event.sid, "/"), event.output), event.tool)] = None
        if not left:
            break
    return list(outputs), nvcc or any(o.tool == "nvcc" for o in outputs)


def _events(journal: Path) -> Iterator[object]:
    """Yield records that name outputs. Most of a journal is samples, which are skipped without decoding."""
    try:
        file = journal.open("rb")
    except OSError:
        return
    with file:
        while line := file.readline(_MAX_LINE):
            yield _event(line)


def _event(line: bytes) -> object:
    if not any(t in line for t in _RELEVANT):
        return None
    if _FINISHED in line and not any(t in line for t in _TOOLS):
        return None
    try:
        return decode_record(parse_line(line)).event
    except (BadLineError, CodecError):
        return None


def _existing(outputs: Iterable[Output], since: float) -> list[Path]:
    """Return the regular files written since then, each once, largest first."""
    sizes: dict[tuple[int, int], tuple[int, Path]] = {}
    for output in outputs:
        try:
            status = output.path.stat()
        except (OSError, ValueError):  # a name that contains NUL
            continue
        if stat.S_ISREG(status.st_mode) and status.st_mtime >= since - CLOCK_SLACK:
            sizes.setdefault((status.st_dev, status.st_ino), (status.st_size, output.path))
    return [path for _, path in sorted(sizes.values(), key=lambda s: s[0], reverse=True)]


def _holds_device_code(path: Path, deadline: Deadline) -> bool:
    """Say whether a section is for device code. Skips a file that cannot be read, or only in too much time."""
    try:
        deadline.check()
        with FileSource(path) as source:
            if not archive.is_archive(source):
                return _elf_holds(source)
            return any(_member_holds(source, member, path, deadline) for member in archive.read_members(source))
    except (OSError, UnreadableError):
        return False


def _member_holds(source: ByteSource, member: archive.ArchiveMember, path: Path, deadline: Deadline) -> bool:
    deadline.check()
    if member.offset is not None:
        return _elf_holds(PartSource(source, member.offset, member.size))
    with FileSource(path.parent / member.name) as beside:
        return _elf_holds(beside)


def _elf_holds(source: ByteSource) -> bool:
    if not is_elf(source):
        return False
    elf = read_elf(source)
    return any(elf.named(name) for name in (LINKED, RELOCATABLE))
