"""Which extension modules a package cannot be imported without, and which it can: by its Python sources alone.

Runs nothing that it reads. What is decided when it runs (a function, a condition) is not known here.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

Need = Literal["required", "guarded", "unknown"]
"""How a module is imported: at once, where a failure is caught, or where it depends."""

MAX_SOURCES = 16 << 20
"""Bytes of a package's sources that are worth reading, what lies highest first."""

_MAX_FILES = 500
"""Sources looked into for one package; torch's own reach 1,500."""
_MAX_SOURCE = 1 << 20
_CATCHING = frozenset(("ImportError", "Exception", "BaseException"))
"""What catches an extension module that the loader refuses: not ModuleNotFoundError."""
_ENDING = frozenset(("exit", "_exit", "abort"))
_LOADERS = frozenset(("load_library", "CDLL"))
"""What loads a library by its path."""
_NO_PACKAGES = frozenset(
    ("tests", "test", "testing", "benchmarks", "benchmark", "examples", "docs", "scripts", "tools")
)


class _Import(NamedTuple):
    module: str
    need: Need


def needs_of(sources: Mapping[str, str], own: Iterable[str], wanted: Iterable[str]) -> dict[str, Need]:
    """How importing the packages among these sources (by path) imports the wanted ones of their `own` modules that are
    none (by their dotted names); only those that are imported anywhere."""
    own, left = frozenset(own), set(wanted)
    found: dict[str, set[Need]] = {}
    files = {_dotted(path): path for path in sources}
    roots = [name for name in files if "." not in name and name not in _NO_PACKAGES]
    # Who is not reached may be imported by whoever uses the package.
    words = {name.rpartition(".")[2] for name in left}
    users = [name for name, path in files.items() if any(w in sources[path] for w in words)]
    queue = deque([_Import(n, "required") for n in roots] + [_Import(n, "unknown") for n in users])
    seen: set[_Import] = set()
    while queue and len(seen) < _MAX_FILES:
        module = queue.popleft()
        if module.module in left:
            found.setdefault(module.module, set()).add(module.need)
        if module in seen or module.module not in files or (module.need == "unknown" and module.module not in users):
            continue
        seen.add(module)
        path = files[module.module]
        source = _Source(sources[path], module.module, path.endswith("/__init__.py"), own)
        queue.extend(_Import(more.module, _both(module.need, more.need)) for more in source.imports())
    return {name: _whole(needs) for name, needs in found.items()}


def names_library(sources: Iterable[str], soname: str, file: str) -> bool:
    """Whether sources name a library, as who loads it by its path has to: by its SONAME, its file's name or a pattern
    for that."""
    stem = re.escape(soname.partition(".so")[0])
    named = re.compile(rf"{re.escape(soname)}\b|{re.escape(file)}\b|\b{stem}(?:\.so)?(?:\.\d*)?\*")
    return any(named.search(text) for text in sources)


def _dotted(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _both(outer: Need, inner: Need) -> Need:
    """A failure is caught where anybody on the way catches it."""
    if "guarded" in (outer, inner):
        return "guarded"
    return "unknown" if "unknown" in (outer, inner) else "required"


def _whole(needs: set[Need]) -> Need:
    if "required" in needs:
        return "required"
    return "guarded" if needs == {"guarded"} else "unknown"


class _Source:
    """One file of a package."""

    def __init__(self, text: str, module: str, package: bool, own: frozenset[str]) -> None:
        self._base = module.split(".") if package else module.split(".")[:-1]
        self._own = own
        try:
            self._tree = ast.parse(text) if len(text) <= _MAX_SOURCE else ast.Module([], [])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._tree = ast.Module([], [])
        self._asks = self._names_from_extensions()
        self._by_hand = any(loader in text for loader in _LOADERS) and not self._caught_by_hand()

    def imports(self) -> Iterator[_Import]:
        """What it imports, and what it loads by names that stand in lists of it (fbgemm_gpu)."""
        queue: deque[tuple[Sequence[ast.stmt], Need]] = deque([(self._tree.body, "required")])
        while queue:
            body, need = queue.popleft()
            for statement in body:
                yield from (_Import(name, need) for name in _names(statement, self._base))
                if self._by_hand and need == "required" and isinstance(statement, ast.Assign):
                    yield from (_Import(name, need) for name in self._libraries(statement))
                queue.extend((more, _both(need, inner)) for more, inner in self._inside(statement))

    def _inside(self, statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], Need]]:
        if isinstance(statement, ast.If) and self._asks & _calls(statement.test):
            # It asks its own extension whether the others were built, and they are there.
            yield statement.body, "required"
            yield statement.orelse, "unknown"
        else:
            yield from _inside(statement)

    def _names_from_extensions(self) -> frozenset[str]:
        return frozenset(
            alias.asname or alias.name
            for node in self._tree.body
            if isinstance(node, ast.ImportFrom) and self._own & set(_names(node, self._base))
            for alias in node.names
        )

    def _caught_by_hand(self) -> bool:
        """Whether a failure to load a library by its path is caught."""
        return any(
            isinstance(node, ast.Try)
            and any(_catches(h) and not _gives_up(h) for h in node.handlers)
            and any(_calls(s) & _LOADERS for s in node.body)
            for node in ast.walk(self._tree)
        )

    def _libraries(self, statement: ast.stmt) -> Iterator[str]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield ".".join([*self._base, node.value.removesuffix(".so")])


def _calls(node: ast.AST) -> frozenset[str]:
    """The names of all functions that are called in it."""
    called = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return frozenset(f.attr if isinstance(f, ast.Attribute) else f.id for f in called
                     if isinstance(f, (ast.Attribute, ast.Name)))  # fmt: skip


def _names(statement: ast.stmt, base: Sequence[str]) -> Iterator[str]:
    """The modules that a statement imports, with the packages that they are in."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield from _with_parents(alias.name.split("."))
    elif isinstance(statement, ast.ImportFrom):
        start = [*base[: len(base) - statement.level + 1]] if statement.level else []
        path = start + (statement.module.split(".") if statement.module else [])
        yield from _with_parents(path)
        yield from (".".join([*path, alias.name]) for alias in statement.names)


def _with_parents(path: Sequence[str]) -> Iterator[str]:
    return (".".join(path[: end + 1]) for end in range(len(path)))


def _inside(statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], Need]]:
    """The bodies in a statement, and how what they import is needed where the statement itself runs at once."""
    match statement:
        case ast.Try():
            guarded = any(_catches(h) and not _gives_up(h) for h in statement.handlers)
            yield statement.body, "guarded" if guarded else "required"
            yield statement.orelse, "required"
            yield statement.finalbody, "required"
            yield from ((h.body, "unknown") for h in statement.handlers)
        case ast.With() | ast.ClassDef():
            suppressed = isinstance(statement, ast.With) and "suppress" in ast.dump(statement.items[0])
            yield statement.body, "guarded" if suppressed else "required"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield statement.body, "unknown"
        case ast.If() | ast.For() | ast.While():
            yield statement.body, "unknown"
            yield statement.orelse, "unknown"


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CATCHING) for kind in kinds)


def _gives_up(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises or ends the program, be it only in some cases."""
    return any(isinstance(node, ast.Raise) or bool(_calls(node) & _ENDING) for node in ast.walk(handler))
