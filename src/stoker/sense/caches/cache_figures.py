"""Parses the statistics of ccache and sccache. Pure, except for reading the log that ccache appends to.

Unaware of which of them a build uses, and of how they are queried.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

MAX_AT_ONCE = 1024 * 1024
"""Bytes of the log read at once: 5,000 compilations, more than end in a second anywhere."""

MAX_LINE = 64 * 1024
"""Bytes of one line: it contains the path of a source, which the kernel limits to 4 KiB."""

MAX_COUNT = 2**53
"""Larger figures are not counts of compilations."""

HITS = frozenset(("direct_cache_hit", "preprocessed_cache_hit"))
MISSES = frozenset(("cache_miss",))
ERRORS = frozenset(
    (
        *("bad_input_file", "bad_output_file", "compiler_check_failed", "could_not_find_compiler"),
        *("error_hashing_extra_file", "internal_error", "missing_cache_file", "modified_input_file"),
    )
)
UNCACHEABLE = frozenset(
    (
        *("autoconf_test", "bad_compiler_arguments", "called_for_link", "called_for_preprocessing", "compile_failed"),
        *("compiler_produced_empty_output", "compiler_produced_no_output", "compiler_produced_stdout"),
        *("could_not_use_modules", "could_not_use_precompiled_header", "disabled", "multiple_source_files"),
        *("no_input_file", "output_to_stdout", "preprocessor_error", "recache", "unsupported_code_directive"),
        *("unsupported_compiler_option", "unsupported_environment_variable", "unsupported_source_encoding"),
        "unsupported_source_language",
    )
)
"""ccache's counters as named by `ccache --print-stats`, classified as in `ccache --show-stats -v`."""

_COUNTER = re.compile(r"^(\w+)\t(\d{1,16})$", re.MULTILINE | re.ASCII)
_SIZE = re.compile(r"(?P<number>\d{1,9}(\.\d{1,9})?) ?(?P<unit>[kKMGT])(?P<binary>i?)B?", re.ASCII)
_KIB = 1024


class Figures(NamedTuple):
    """What a cache has counted. Sizes are bytes, None if unknown."""

    hits: int = 0
    misses: int = 0
    uncacheable: int = 0
    errors: int = 0
    size: int | None = None
    size_limit: int | None = None

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The first four."""
        return self[:4]


def ccache_figures(text: str) -> Figures | None:
    """Parse `ccache --print-stats` (since 3.7), counters and values separated by tabs; None if it is something else."""
    counters = {name: int(value) for name, value in _COUNTER.findall(text)}
    if "cache_miss" not in counters:
        return None
    size, limit = counters.get("cache_size_kibibyte"), counters.get("max_cache_size_kibibyte")
    hits, misses, uncacheable, errors = (
        sum(counters.get(name, 0) for name in names) for names in (HITS, MISSES, UNCACHEABLE, ERRORS)
    )
    return Figures(
        hits,
        misses,
        uncacheable,
        errors,
        size=None if size is None else size * _KIB,
        size_limit=limit * _KIB if limit else None,
    )


def ccache_size(text: str) -> int | None:
    """Parse `ccache --get-config max_size` into bytes: 5.0G is decimal for ccache, 5.0 GiB and 5Gi are binary; None for
    no limit."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    size = float(match["number"]) * (_KIB if match["binary"] else 1000) ** ("KMGT".find(match["unit"].upper()) + 1)
    return int(size) or None


def sccache_figures(text: str) -> Figures | None:
    """Parse `sccache --show-stats --stats-format json`; None if it is something else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    stats = data.get("stats") if isinstance(data, dict) else None
    if not isinstance(stats, dict) or "cache_hits" not in stats:
        return None
    passed_on = sum(_count(stats.get(name)) for name in ("requests_not_compile", "requests_not_cacheable"))
    return Figures(
        _by_language(stats["cache_hits"]),
        _by_language(stats.get("cache_misses")),
        passed_on + _count(stats.get("requests_unsupported_compiler")),
        _by_language(stats.get("cache_errors")),
        _size(data.get("cache_size")),
        _size(data.get("max_cache_size")),
    )


def _by_language(figure: Any) -> int:
    """sccache counts by language: {"counts": {"C/C++": 3}}."""
    counts = figure.get("counts") if isinstance(figure, dict) else None
    return sum(map(_count, counts.values())) if isinstance(counts, dict) else 0


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else 0


def _size(value: Any) -> int | None:
    return _count(value) or (0 if value == 0 and not isinstance(value, bool) else None)


class StatsLog:
    """The log to which ccache (since 4.5) appends what each of its calls did, from byte `offset` on.

    ccache writes a call's lines at once, so that many of them may run in parallel: `# SOURCE`, and the counters that it
    incremented, one per line.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._rest = b""
        self._long = False
        self.figures = Figures()

    def read(self) -> bool:
        """Count what was written since; return whether that changed a figure. If the log is unchanged, this costs one
        stat(2)."""
        before = self.figures
        try:
            size = os.stat(self._path).st_size
            if size < self._offset:  # somebody has started a new one
                self._offset, self._rest = 0, b""
            if size > self._offset:
                self._take()
        except OSError:
            return False
        return self.figures != before

    def _take(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(MAX_AT_ONCE)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._long and lines:  # the end of a line whose beginning was dropped
            lines, self._long = lines[1:], False
        if len(self._rest) > MAX_LINE:
            self._rest, self._long = b"", True
        names = [line.decode("ascii", "replace") for line in lines if not line.startswith(b"#")]
        added = (sum(name in group for name in names) for group in (HITS, MISSES, UNCACHEABLE, ERRORS))
        self.figures = Figures(*(had + more for had, more in zip(self.figures.counts, added, strict=True)))
