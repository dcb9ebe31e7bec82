"""Reads a wheel into a report: its binaries, its RECORD and its tags. Knows nothing of GPUs or of installed
packages."""

from __future__ import annotations

import os
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from stoker.model.report import Problem, Severity
from stoker.verify.binary.byte_source import Deadline, UnreadableError
from stoker.verify.binary.device_code import ReadFile
from stoker.verify.binary.elf import ET_REL
from stoker.verify.binary.file_format import unknown_format
from stoker.verify.binary.read_binary import Binary, read_binary, recognised, with_calls
from stoker.verify.binary.symbols import Symbols, read_symbols
from stoker.verify.find_files import binary_name
from stoker.verify.linking.libraries import SharedLibrary
from stoker.verify.linking.link_report import path_problems
from stoker.verify.wheel import tags
from stoker.verify.wheel.wheel_file import (
    CheckSums,
    Recorded,
    Wheel,
    abi,
    drain,
    name_problems,
    platforms,
    record_problem,
    unsafe_name,
)

SEPARATOR = "::"
"""Separates the path of a wheel from its member, as in `x.whl::torch/lib/libtorch.so`."""

WHEEL_SECONDS = 600.0
"""CPU seconds for a whole wheel; paddlepaddle-gpu (0.8 GB packed, 2.8 GB unpacked) takes ten."""

_THREADS = 4
_GROUP_BYTES, _GROUP_MEMBERS = 1 << 20, 256
_DATA = re.compile(r"^[^/]+\.data/(?:platlib|purelib)/")

MAX_MEMBER = 1 << 63
_MAX_HASHED = 1 << 20
"""The largest member, in bytes, whose digest is always compared with RECORD. For a larger one the digest shows no more
than its size and the archive's checksum do, unless the file was replaced after RECORD was written; pip does not compare
it, and computing it takes a fifth of the time."""

_LARGE = 1 << 20
"""The smallest member, in bytes, that is mentioned if its format is not known."""

_MAX_PROBLEMS = 20
"""Problems of one kind that are listed individually."""


@dataclass(slots=True)
class WheelReading:
    """What was read from a wheel: reports of its binaries, its linked files by member, and problems of the wheel
    itself."""

    files: list[ReadFile] = field(default_factory=list)
    libraries: dict[str, SharedLibrary] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    package: str = ""
    requires: list[str] = field(default_factory=list)
    requires_python: str = ""
    opaque: list[tuple[str, int]] = field(default_factory=list)
    """Large members in a format that is not known, which may hold anything: names and sizes."""


def read_wheel(path: Path, *, hashes: bool = False) -> WheelReading:
    """Read a wheel. With `hashes` every digest in RECORD is compared, not only those of small members. Never raises."""
    try:
        with Wheel(path) as wheel:
            return _Reader(wheel, MAX_MEMBER if hashes else _MAX_HASHED).read()
    except (UnreadableError, OSError) as err:
        what = f"cannot be read: {err}"
        return WheelReading(problems=[Problem("error", str(path), what, "build or copy it again", unreadable=True)])


class _MemberReading(NamedTuple):
    """The problems of a member, each with its kind, and its report if it is a binary. `opaque`: its name and size if it
    is large and in a format that is not known."""

    problems: list[tuple[str, Problem]]
    binary: Binary | None
    opaque: tuple[str, int] | None = None


def _groups(members: Sequence[zipfile.ZipInfo]) -> list[list[zipfile.ZipInfo]]:
    """Group neighbours for one thread to read at once: handing over a small file costs more than reading it."""
    groups: list[list[zipfile.ZipInfo]] = [[]]
    size = 0
    for member in members:
        if size > _GROUP_BYTES or len(groups[-1]) == _GROUP_MEMBERS:
            groups.append([])
            size = 0
        groups[-1].append(member)
        size += member.file_size
    return groups


class _Reader:
    """One pass through a wheel."""

    def __init__(self, wheel: Wheel, most_hashed: int) -> None:
        self.wheel = wheel
        self.most_hashed = most_hashed
        self.path = str(wheel.path)
        self.deadline = Deadline(WHEEL_SECONDS)
        self.problems: list[Problem] = []
        self.kinds: Counter[str] = Counter()
        self.binaries: list[Binary] = []
        self.symbols: dict[str, Symbols] = {}
        self.opaque: list[tuple[str, int]] = []

    def read(self) -> WheelReading:
        try:
            for severity, what in name_problems(self.wheel):
                self._problem("name", severity, self.path, what)
            record = self.wheel.record()
            self._members(record)
            self._check_record_names(record)
            reports = self._finish()
        except UnreadableError as err:
            self.problems.append(Problem("error", self.path, str(err), "build or copy it again", unreadable=True))
            reports = [b.report for b in self.binaries]
        for kind, count in self.kinds.items():
            if count > _MAX_PROBLEMS:
                self.problems.append(Problem("info", self.path, f"{count - _MAX_PROBLEMS} more problems like: {kind}"))
        return WheelReading(
            reports,
            self._libraries(),
            self.problems,
            next(iter(self.wheel.field("Name", "METADATA")), self.wheel.path.name.partition("-")[0]),
            self.wheel.field("Requires-Dist", "METADATA"),
            next(iter(self.wheel.field("Requires-Python", "METADATA")), ""),
            self.opaque,
        )

    def _libraries(self) -> dict[str, SharedLibrary]:
        """Return the linked files by member; their paths are relative to site-packages, where pip would install
        them."""
        found = {}
        for binary in self.binaries:
            member = binary.report.path.partition(SEPARATOR)[2]
            if binary.elf is not None and binary.dynamic is not None and binary.elf.type != ET_REL:
                place = Path(_DATA.sub("", member))
                found[member] = SharedLibrary(place, binary.elf, binary.dynamic, self.symbols.get(binary.report.path))
        return found

    def _problem(
        self, kind: str, severity: Severity, file: str, what: str, remedy: str = "", *, bad: bool = False
    ) -> None:
        self.kinds[kind] += 1
        if self.kinds[kind] <= _MAX_PROBLEMS:
            self.problems.append(Problem(severity, file, what, remedy, unreadable=bad))

    def _members(self, record: dict[str, Recorded]) -> None:
        seen: set[str] = set()
        for member in self.wheel.members:
            where = f"{self.path}{SEPARATOR}{member.filename}"
            if member.filename in seen:
                self._problem(
                    "twice", "warning", where, "is in the wheel twice: which one is installed depends on the tool"
                )
            if unsafe_name(member.filename):
                self._problem("unsafe", "error", where, "would be unpacked outside the folder meant for it")
            seen.add(member.filename)
        # Inflating and hashing take nearly all the time, and release the interpreter lock.
        with ThreadPoolExecutor(max_workers=min(_THREADS, os.cpu_count() or 1)) as pool:
            read = pool.map(lambda group: self._group(group, record), _groups(self.wheel.members))
            for findings, binary, opaque in chain.from_iterable(read):
                for kind, problem in findings:
                    self._problem(
                        kind, problem.severity, problem.file, problem.what, problem.remedy, bad=problem.unreadable
                    )
                if binary is not None:
                    self.binaries.append(binary)
                self.opaque += [opaque] if opaque is not None else []

    def _group(self, members: Sequence[zipfile.ZipInfo], record: Mapping[str, Recorded]) -> list[_MemberReading]:
        """Read a few members. Runs in a thread."""
        return [self._member(member, record.get(member.filename)) for member in members]

    def _member(self, member: zipfile.ZipInfo, line: Recorded | None) -> _MemberReading:
        """Return one member's problems by kind, and its report if it is a binary. Runs in a thread; the threads share
        one dictionary."""
        where = f"{self.path}{SEPARATOR}{member.filename}"
        found: list[tuple[str, Problem]] = []
        binary: Binary | None = None
        opaque: tuple[str, int] | None = None
        try:
            self.deadline.check()
            sums = CheckSums(line, hashed=member.file_size <= self.most_hashed)
            source = self.wheel.open(member, self.deadline, sums.update)
            if binary_name(member.filename) and recognised(source):
                # The wheel's deadline, not one per member: a wheel of many slow members must end too.
                binary = read_binary(where, source, self.deadline)
                if binary.elf is not None and (symbols := read_symbols(source, binary.elf)) is not None:
                    self.symbols[where] = symbols
                    binary = with_calls(binary, symbols)
            elif member.file_size >= _LARGE and unknown_format(source):
                opaque = PurePosixPath(member.filename).name, member.file_size
            size = drain(source, member, sums.update, self.deadline)
            if size < member.file_size:
                what = f"unpacks to {size} of the {member.file_size} bytes it claims"
                found.append(("short", Problem("error", where, what, unreadable=True)))
            elif sums.crc != member.CRC:
                what = "is damaged: its checksum is not the archive's, and pip refuses it"
                found.append(("damaged", Problem("error", where, what, "build or copy it again", unreadable=True)))
            disagreement = record_problem(member.filename, line, size, sums.digest())
            if disagreement:
                remedy = "pack the wheel again: `wheel pack` rewrites RECORD"
                found.append(("record", Problem("warning", where, disagreement, remedy)))
        except UnreadableError as err:
            if binary is None or not any(p.unreadable for p in binary.report.problems):
                remedy = "build or copy the wheel again"
                found.append(("unreadable", Problem("error", where, str(err), remedy, unreadable=True)))
        return _MemberReading(found, binary, opaque)

    def _check_record_names(self, record: dict[str, Recorded]) -> None:
        if not record:
            self._problem("record", "error", self.path, "has no RECORD: pip will refuse it")
        for name in record.keys() - {m.filename for m in self.wheel.members}:
            self._problem("record", "warning", f"{self.path}{SEPARATOR}{name}", "is in RECORD and not in the wheel")

    def _finish(self) -> list[ReadFile]:
        members: dict[str, list[str]] = {}
        for member in self.wheel.members:
            members.setdefault(PurePosixPath(member.filename).name, []).append(member.filename)
        promises = [p for p in map(tags.parse_platform, platforms(self.wheel)) if p is not None]
        self._check_purity(promises)
        self._check_linux_tag(promises, frozenset(members))
        # A wheel may contain builds for several machines or Pythons. One that fits is enough.
        grave: Severity = "warning" if self._one_fits(promises) else "error"
        return [self._tagged(b, promises, frozenset(members), grave) for b in self.binaries]

    def _one_fits(self, promises: list[tags.PlatformPromise]) -> bool:
        machines = {p.machine for p in promises}
        return any(
            b.elf is not None and b.dynamic is not None and (not machines or b.elf.machine_name in machines)
            and not self._check_abi(b.report.path, "error")
            for b in self.binaries
        )  # fmt: skip

    def _check_purity(self, promises: list[tags.PlatformPromise]) -> None:
        linked = [b for b in self.binaries if b.dynamic is not None]
        if linked and not promises and "any" in platforms(self.wheel):
            what = "is tagged for any platform and holds a shared library for one"
            self._problem("tag", "warning", self.path, what, "tag it: wheel tags --platform-tag")

    def _check_linux_tag(self, promises: list[tags.PlatformPromise], own: frozenset[str]) -> None:
        """Note which manylinux tag the wheel could have, given the symbols that all its binaries need."""
        linux = next((p for p in promises if p.kind == "linux"), None)
        if linux is None:
            return
        needed = [v for b in self.binaries if b.dynamic is not None for v in tags.needs(b.dynamic, own)]
        tag = tags.fitting(needed, linux.machine)
        what, remedy = "has a linux tag: good for this machine, refused by PyPI", "to publish it, auditwheel repair"
        if tag:
            remedy = f"{remedy}; by its symbols alone: wheel tags --platform-tag {tag}"
        else:
            what = f"{what}; its symbols are newer than those of any manylinux tag"
        self.problems.append(Problem("info", self.path, what, remedy))

    def _tagged(
        self, binary: Binary, promises: list[tags.PlatformPromise], own: frozenset[str], grave: Severity
    ) -> ReadFile:
        """Return a binary's report with the promises of the wheel's tags that it breaks."""
        elf, dynamic, report = binary.elf, binary.dynamic, binary.report
        if elf is None or dynamic is None:
            return report
        found: list[Problem] = []
        machines = {p.machine for p in promises}
        if machines and elf.machine_name not in machines:
            what = f"is for {elf.machine_name}, the wheel is tagged for {', '.join(sorted(machines))}"
            found.append(Problem(grave, report.path, what, "build it on the machine that the tag names"))
        promise = tags.strictest(promises)
        beyond = tags.broken_by(promise, dynamic, own) if promise else []
        if promise and beyond:
            tag = f"{promise.kind}_{promise.libc[0]}_{promise.libc[1]}"
            what = f"needs {', '.join(beyond)}, more than the tag {tag} promises: it will not load on such a system"
            fits = tags.fitting(tags.needs(dynamic, own), promise.machine)
            remedy = f"build on an older system{f', or raise the tag to {fits}' if fits else ''}"
            # Whether it loads on this machine is checked separately, as the loader does it; this is about other
            # systems.
            found.append(Problem("info", report.path, what, remedy))
        found += path_problems(report.path, dynamic, packaged=True)
        found += self._check_abi(report.path, grave)
        return replace(report, problems=(*report.problems, *found))

    def _check_abi(self, path: str, grave: Severity) -> list[Problem]:
        tagged = re.fullmatch(r"cp(\d+)t?", abi(self.wheel))
        named = re.search(r"\.cpython-(\d+)t?-[\w-]+\.so$", path)
        if not (tagged and named) or tagged[1] == named[1]:
            return []
        what = f"is an extension for CPython {named[1]}, the wheel is tagged for {tagged[1]}"
        return [Problem(grave, path, what, "clean the build folder: it holds another Python's extensions")]
