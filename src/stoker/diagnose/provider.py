"""Looks up which package brings a header, a library, a module, a program or a symbol. Knows nothing of logs or rules.

The rows are data (providers/*.yaml): one per project, with its packages and all the names by which builds refer to it.
What to report about a name that is in no row is up to the rule.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from stoker.config.config_error import ConfigError
from stoker.config.strict_yaml import Section, load

FACES = ("headers", "libraries", "pkgconfig", "cmake", "modules", "programs", "symbols", "macros")
"""The kinds of names that a row lists, separated by spaces.

In each of them `name*` means every name that begins like this; after a lower-case letter it must continue with a
capital, a digit or `_`, so `bt*` does not match btree. A header `dir/` means everything in that folder, a symbol
`name::` everything in that namespace.
"""

ANY = "any"
"""Used instead of a face: whatever the log calls it, in upper or lower case."""

SONAMES = "sonames"
"""Used instead of `libraries`: the program is built, and its loader searches for the library."""

MESSAGE = "message"
"""Used instead of a face: a project's own message says that something is missing, and one of its words is the name."""

LOOKUPS = {
    **dict(
        zip(FACES, ("header", "library", "package", "package", "module", "program", "symbol", "symbol"), strict=True)
    ),
    SONAMES: "library",
    ANY: "package",
    MESSAGE: "message",
}
"""The ways in which a rule may look a name up, with the group of its patterns that finds the name."""

_IS_MISSING = re.compile(
    r"""\b(?:not\ (?:be\ )?(?:found|installed|available|present|detected|located|exist|set)|missing|undefined
    |(?:is|are)\ (?:required|needed)|requires?|needs?|install|must\ (?:be\ installed|have)|no\ .{1,40}\ found
    |unable\ to\ load|make\ sure|could\ not\ be\ found
    |too\ old|at\ least|or\ (?:newer|later|higher|above|greater)|minimum|not\ supported|unsupported|incompatible
    |(?:could\ not|couldn't|cannot|can't|can\ not|unable\ to|failed\ to)\ (?:find|locate|detect))\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words by which a message says that something is missing or unsuitable."""

_ASKS = re.compile(r"\b(?:requires?|needs?|depends? on) (?!to\b|install)", re.IGNORECASE)
"""What precedes these words is the one that requires, usually the project that is built; it is not what is missing."""

_WANTED_BY = re.compile(r"\b(?:needed|required|used|wanted|requested) (?:by|for|to)\b", re.IGNORECASE)
"""What follows these words is the one that requires, too."""

_CLAUSE_ENDS = re.compile(r"[,;.:]\s")

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_+./-]{2,60}")
_EVERYDAY = frozenset(
    (
        *("build", "check", "clang", "click", "cmake", "column", "conda", "convert", "diff", "dot"),
        *("edit", "event", "fabric", "file", "find", "fluid", "form", "free", "future", "g++"),
        *("gcc", "git", "highway", "history", "host", "identify", "input", "install", "jar", "lame"),
        *("docker", "poetry", "venv", "virtualenv", "ssh"),
        *("magick", "make", "menu", "mount", "ninja", "nvcc", "opt", "panel", "past", "patch"),
        *("pip", "pkg-config", "proj", "ps", "pulse", "python", "python3", "raw", "requests", "rich", "sed"),
        *("sip", "six", "size", "strings", "strip", "tar", "tic", "time", "timeout", "top"),
        *("west", "wheel", "which", "wish"),
    )
)
"""Names that are ordinary words in any message."""

_TOOLS = frozenset(
    ("cmake", "clang", "conda", "docker", "g++", "gcc", "git", "make", "ninja", "nvcc", "pip", "python", "python3")
)
"""Those of them that a message may be about."""

_WAYS = (
    ("apt", "apt install {}"),
    ("pip", "python -m pip install {}"),
    ("dnf", "Fedora: dnf install {}"),
    ("conda", "conda install -c conda-forge {}"),
    ("brew", "macOS: brew install {}"),
)
"""The package managers with their commands. The first one that a row has suits most readers."""

_KEYS = (*FACES, *(way for way, _ in _WAYS), "runtime", "archive", "note")

LINKED = 2
"""How many libraries of one row a link gets: the main ones come first."""

MAX_NAME = 300
MAX_MESSAGE = 2000
"""The longest name, and the longest message, in characters, that are looked at."""

_PACKAGES = re.compile(r"[A-Za-z0-9@'<=>.+_ -]{1,400}")
"""Names of packages, and options: harmless in any shell."""

_FREE = re.compile(r"_Z\d")
"""Begins the mangled name of a function outside of any class and namespace."""

_MANGLED = re.compile(r"_Z(?:T[VIS]|Thn?\d{1,6}_|GV)?N?[KRVO]{0,3}(?=\d)")
_PART = re.compile(r"(\d{1,3})(?=[A-Za-z_])")
"""A part of a mangled C++ name (Itanium ABI): its length precedes it."""

_OF_CLASS = re.compile(
    r"^(?:vtable|typeinfo(?: name)?|VTT|guard variable|construction vtable|[\w-]{1,20} thunk) (?:for|to) "
)
_VERSIONED = re.compile(r"@@?[\w.]{1,60}$")
_SONAME = re.compile(r"^(?:.{0,300}/)?lib(.{1,100}?)(?:[.-][\d.]{1,20})?\.(?:so|dylib|a|tbd)(?:\.[\d.]{1,20})?$")


@dataclass(frozen=True, slots=True)
class Provider:
    """A project whose packages bring what builds search for.

    `packages` are the arguments for each package manager. `runtime` is apt's packages that only run what was built.
    `archive` names the owner of the archive with apt's packages, empty for the distribution's own. `note` is a sentence
    on what else is needed, or empty. `faces` are the names of each kind, as written.
    """

    name: str
    packages: Mapping[str, str]
    runtime: str
    archive: str
    note: str
    faces: Mapping[str, tuple[str, ...]]

    @property
    def links(self) -> str:
        """The options that link it: at most its first two libraries."""
        names = [name for name in self.faces.get("libraries", ()) if not name.endswith("*")]
        return " ".join(f"-l{name}" for name in names[:LINKED]) or "-lNAME"

    def install(self, *, runs: bool = False, python: bool = False) -> str:
        """Return what brings it, as a sentence. `runs`: only to run what was built; `python`: Python searches for
        it."""
        packages = {**self.packages, "apt": self.runtime} if runs and self.runtime else dict(self.packages)
        order = ("pip", "apt") if python else ("apt", "pip")
        ways = sorted(_WAYS, key=lambda way: order.index(way[0]) if way[0] in order else len(order))
        archive = f" (from {self.archive} archive)" if self.archive else ""
        said = [how.format(packages[way]) + archive * (way == "apt") for way, how in ways if packages.get(way)]
        if not said:
            return self.note
        others = f" ({'; '.join(said[1:])})" if said[1:] else ""
        return f"{said[0]}{others}.{' ' if self.note else ''}{self.note}"


class _Names:
    """The names of one face, with their projects."""

    def __init__(self) -> None:
        self._exact: dict[str, Provider] = {}
        self._begins: dict[str, Provider] = {}

    def add(self, name: str, provider: Provider) -> None:
        known = self._begins if name.endswith(("*", "/", "::")) else self._exact
        known.setdefault(name.removesuffix("*"), provider)

    def find(self, name: str) -> Provider | None:
        """Return the project with this name; a full name takes precedence over a prefix, a longer prefix over a shorter
        one."""
        found = self._exact.get(name)
        if found is not None:
            return found
        for end in range(len(name), 0, -1):
            found = self._begins.get(name[:end])
            if found is not None and not (name[end - 1].islower() and name[end : end + 1].islower()):
                return found
        return None


@functools.cache
def providers() -> tuple[Provider, ...]:
    """Return all rows, ordered by file and place. Raises ConfigError for a faulty one."""
    with resources.as_file(resources.files("stoker.diagnose.providers")) as folder:
        return tuple(row for path in sorted(folder.glob("*.yaml")) for row in load_providers(path))


def load_providers(path: Path) -> list[Provider]:
    """Return the rows of one file. Raises its first fault as a ConfigError."""
    top = load(path)
    rows = [_row(name, section) for name, section in top.sections()]
    if top.errors:
        raise min(top.errors, key=lambda err: err.line)
    return rows


def provider_of(lookup: str, name: str) -> Provider | None:
    """Return the project to which a name in a log belongs; None if no row has it. The name may be anything."""
    if lookup == MESSAGE:
        return _named_in(name[:MAX_MESSAGE])
    face = "libraries" if lookup == SONAMES else lookup
    known = _tables()[face]
    return next((found for form in _forms(face, name[:MAX_NAME]) if (found := known.find(form)) is not None), None)


def _named_in(message: str) -> Provider | None:
    """Return the first project that is named in a message that something is missing.

    What follows in another clause is looked at only if the first names nothing at all: `Python 3 is required, install
    curl to download it` is not about curl.
    """
    missing = _IS_MISSING.search(message)
    if not missing:
        return None
    asks, wanted_by = _ASKS.search(message), _WANTED_BY.search(message)
    end = wanted_by.start() if wanted_by else len(message)
    begin = asks.end() if asks and asks.end() < end else 0
    clause = _CLAUSE_ENDS.search(message, max(begin, missing.end()))
    words = list(_WORD.finditer(message, begin, end))
    of_clause = [word for word in words if clause is None or word.start() < clause.start()]
    if any(_bare(word) in _TOOLS for word in of_clause):
        words = of_clause
    known = (provider_of(ANY, word[0].strip("./-")) for word in words if _bare(word) not in _EVERYDAY)
    return next((found for found in known if found is not None), None)


def _bare(word: re.Match[str]) -> str:
    return word[0].strip("./-").casefold()


def looked_up(lookup: str, name: str) -> dict[str, str] | None:
    """Return the words for `{provider}`, `{install}` and `{links}`; None if no row has the name."""
    found = provider_of(lookup, name)
    if found is None:
        return None
    install = found.install(runs=lookup == SONAMES, python=lookup == "modules")
    return {"provider": found.name, "install": install, "links": found.links}


def _row(name: str, section: Section) -> Provider:
    section.allow(_KEYS)
    packages = {way: section.text(way) for way, _ in _WAYS if way in section}
    for way in (*packages, "runtime"):
        if section.text(way) and not _PACKAGES.fullmatch(section.text(way)):
            section.fail(way, f"{section.text(way)!r} is not a list of packages")
    if not (packages or "note" in section):
        section.errors.append(ConfigError(section.path, section.line, f"{name!r} names no package, and has no note"))
    faces = {face: tuple(section.text(face).split()) for face in FACES if face in section}
    return Provider(name, packages, section.text("runtime"), section.text("archive"), section.text("note"), faces)


@functools.cache
def _tables() -> Mapping[str, _Names]:
    tables = {face: _Names() for face in (*FACES, ANY)}
    for row in providers():
        for face, names in row.faces.items():
            for name in names:
                tables[face].add(name.casefold() if face in ("pkgconfig", "cmake") else name, row)
    for row in providers():
        _add_to_any(tables[ANY], row)
    return tables


def _add_to_any(known: _Names, row: Provider) -> None:
    """Add the names by which people call it: those of its packages and tools, not of single functions."""
    known.add(row.name.casefold(), row)
    for face in ("pkgconfig", "cmake", "libraries", "programs", "modules", "headers"):
        for name in row.faces.get(face, ()):
            if len(name) > 2 and not name.endswith(("*", "/")):
                known.add(name.casefold(), row)
                if face == "libraries":
                    known.add(f"lib{name}".casefold(), row)


def _forms(face: str, name: str) -> Iterator[str]:
    """Yield the forms in which the table may have a name, the likeliest first."""
    if face == "libraries":
        soname = _SONAME.match(name)
        yield from (soname[1], name) if soname else (name,)
    elif face in ("pkgconfig", "cmake"):
        yield name.casefold()
    elif face == "programs":
        yield name.rpartition("/")[2]
    elif face == "modules":
        parts = name.split(".")[:8]
        yield from (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    elif face == "symbols":
        yield from _symbol_forms(name)
    elif face == ANY:
        bare = name.casefold().strip("'\"`‘’")
        yield from (bare, bare.removeprefix("lib"), bare.removesuffix("-dev").removesuffix("-devel"))
    else:
        yield name


def _symbol_forms(name: str) -> Iterator[str]:
    """Yield a symbol without what precedes and follows its own name; a mangled one by its first part.

    A C++ function outside of any class and namespace yields nothing: libraries name those in C, without parameters, so
    `cudaSmooth(float*, int)` is a function of the project's.
    """
    mangled = _MANGLED.match(name)
    if mangled:
        path = _path_of(name, mangled.end())
        if not (path.count("::") == 1 and _FREE.match(name)):
            yield path
        return
    bare = _VERSIONED.sub("", _without_type(_OF_CLASS.sub("", name)))
    own, parameters, _ = bare.partition("(")
    if parameters and "::" not in own:
        return
    yield bare
    yield f"{bare}::"
    if bare.startswith("_"):  # Apple's linker writes C names like this
        yield bare[1:]


def _path_of(name: str, at: int) -> str:
    """Return the rest of a mangled name as C++ writes it: `cv::imread::`."""
    path = ""
    while (part := _PART.match(name, at)) is not None and part.end() + int(part[1]) <= len(name):
        at = part.end() + int(part[1])
        path += f"{name[part.end() : at]}::"
    return path


def _without_type(name: str) -> str:
    """Return a demangled function from its own name on: `void cv::f<int>(cv::Mat)` begins with cv."""
    depth = start = 0
    for at, letter in enumerate(name):
        depth += letter == "<"
        depth -= letter == ">"
        if letter == "(" and depth <= 0:
            break
        if letter == " " and depth <= 0:
            start = at + 1
    return name[start:] if not name.startswith("operator") else name
