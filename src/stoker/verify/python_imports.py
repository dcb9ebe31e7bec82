"""Finds out from a package's Python sources which of its extension modules it cannot be imported without.

Runs nothing that it reads, so it does not know what is decided at run time (in a function, by a condition).
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

Need = Literal["required", "guarded", "unknown"]
"""How a module is imported: unconditionally, in code that catches a failure, or in code that may not run."""

MAX_SOURCES = 16 << 20
"""Bytes of a package's sources that are read, files nearest to the top first."""

_MAX_FILES = 500
"""Source files read for one package; torch itself has 1,500."""
_MAX_SOURCE = 1 << 20
_CATCHING = frozenset(("ImportError", "Exception", "BaseException"))
"""The exceptions whose handlers catch a failed load of an extension module; ModuleNotFoundError does not."""
_ENDING = frozenset(("exit", "_exit", "abort"))
_LOADERS = frozenset(("load_library", "CDLL"))
"""Functions that load a library by its path."""
_NO_PACKAGES = frozenset(
    ("tests", "test", "testing", "benchmarks", "benchmark", "examples", "docs", "scripts", "tools")
)


class _Import(NamedTuple):
    module: str
    need: Need


def needs_of(sources: Mapping[str, str], own: Iterable[str], wanted: Iterable[str]) -> dict[str, Need]:
    """Return how importing the packages among these sources (by path) imports the `wanted` modules (dotted names).

    `own` are the package's extension modules, which have no source. A wanted module that nothing imports is left out.
    """
    own, left = frozenset(own), set(wanted)
    found: dict[str, set[Need]] = {}
    files = {_dotted(path): path for path in sources}
    roots = [name for name in files if "." not in name and name not in _NO_PACKAGES]
    # Code that uses the package may import modules that the package itself never reaches.
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
        queue.extend(_Import(more.module, _weaker(module.need, more.need)) for more in source.imports())
    return {name: _combined(needs) for name, needs in found.items()}


def names_library(sources: Iterable[str], soname: str, file: str) -> bool:
    """Whether sources name a library by its SONAME, its file name or a glob pattern for that, as code that loads it by
    its path must."""
    stem = re.escape(soname.partition(".so")[0])
    named = re.compile(rf"{re.escape(soname)}\b|{re.escape(file)}\b|\b{stem}(?:\.so)?(?:\.\d*)?\*")
    return any(named.search(text) for text in sources)


def _dotted(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _weaker(outer: Need, inner: Need) -> Need:
    """Combine two levels of an import: a failure is caught if any level catches it."""
    if "guarded" in (outer, inner):
        return "guarded"
    return "unknown" if "unknown" in (outer, inner) else "required"


def _combined(needs: set[Need]) -> Need:
    if "required" in needs:
        return "required"
    return "guarded" if needs == {"guarded"} else "unknown"


class _Source:
    """The parsed source of one module."""

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
        """Yield what the module imports, and the libraries that it loads by names from its own lists (fbgemm_gpu)."""
        queue: deque[tuple[Sequence[ast.stmt], Need]] = deque([(self._tree.body, "required")])
        while queue:
            body, need = queue.popleft()
            for statement in body:
                yield from (_Import(name, need) for name in _names(statement, self._base))
                if self._by_hand and need == "required" and isinstance(statement, ast.Assign):
                    yield from (_Import(name, need) for name in self._libraries(statement))
                queue.extend((more, _weaker(need, inner)) for more, inner in self._inside(statement))

    def _inside(self, statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], Need]]:
        if isinstance(statement, ast.If) and self._asks & _calls(statement.test):
            # The module asks its own extension whether the others were built, so here they are present.
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
        """Whether the module catches a failure to load a library by its path."""
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
    """Return the names of all functions that are called in it."""
    called = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return frozenset(f.attr if isinstance(f, ast.Attribute) else f.id for f in called
                     if isinstance(f, (ast.Attribute, ast.Name)))  # fmt: skip


def _names(statement: ast.stmt, base: Sequence[str]) -> Iterator[str]:
    """Yield the modules that a statement imports, with their parent packages."""
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
    """Yield the bodies in a statement, and how their imports are needed if the statement itself runs
    unconditionally."""
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
    """Whether a handler raises or ends the program, even if only in some cases."""
    return any(isinstance(node, ast.Raise) or bool(_calls(node) & _ENDING) for node in ast.walk(handler))
