"""Looks for every rule in a log of any size, in one pass. Unaware of where the log is from and how matches are shown.

A line meets a rule's regular expression only if it holds the rule's words, which are found with the fast search of
bytes; so a log of some GB takes as long as it takes to read it a few times.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import BinaryIO, NamedTuple

from stoker.diagnose.blocks import BEFORE, Block, blocks, shortened
from stoker.diagnose.line_names import names_in
from stoker.diagnose.match import Match, in_order
from stoker.diagnose.rule import RANKS, Pattern, Rule
from stoker.model.text import clean

MAX_COUNT = 1000
"""Lines of one rule that are counted; a thousand undefined references are as good as a million."""

TEXT_SHOWN = 500
"""Characters of a matched line that are handed on."""

_TEXT_BEFORE = 150
"""Of these, how many may stand before the match in a longer line."""

_LEADER = re.compile(
    r"""(?:\#\d{1,6}[ ])?(?:\d{1,7}\.\d{1,6}[ ])?        # docker build: step and seconds
        (?:\d{4}-\d\d-\d\dT[\d:.]{8,24}Z[ ])?            # GitHub Actions: the time
        \s{0,200}+(?:\#\#\[error\])?""",
    re.VERBOSE,
)
"""What wrappers put before a tool's own line; pip indents it."""

_WARNING = re.compile(r"(?:^|[\s:(\[])(?:warning|note|remark|Warning|WARNING|DEPRECATION)\b(?!s)[^'\"]{0,40}?[:\]]")
"""A tool's own word that the line is not an error."""

_QUOTED = re.compile(r"\d{0,9}+ {0,9}+\|(?: |$)")
"""A line of source, as gcc and clang quote it below an error."""

_STEP = re.compile(
    rb"^(?:#\d{1,6} )?(?:\d{1,7}\.\d{1,6} )?[ \t]{0,16}+(?:\[\d{1,7}/\d{1,7}\] |\[ {0,2}\d{1,3}%\] |FAILED: |ninja: )",
    re.MULTILINE,
)
"""A scheduler's own line: what follows belongs to another step."""

_CMAKE_WARNING = re.compile(rb"\s*+(?:-- )?CMake (?:Deprecation |Author )?(?:Warning|Deprecation)\b")
_LINES_ABOVE = 20


class _Hit(NamedTuple):
    rule: Rule
    pattern: Pattern


class Scanner:
    """Takes a log in blocks and keeps the first match of each rule."""

    def __init__(self, rules: Collection[Rule], no_error: Callable[[str], bool] = lambda _: False) -> None:
        self._no_error = no_error
        self._hits: dict[bytes, list[_Hit]] = defaultdict(list)
        for rule in sorted(rules, key=lambda rule: rule.rank):
            for pattern in rule.patterns:
                self._hits[pattern.words].append(_Hit(rule, pattern))
        self._found: dict[str, Match] = {}
        self._step = 0

    def matches(self) -> list[Match]:
        """Return what was found so far, the first cause first."""
        return in_order(self._found.values())

    def look_at(self, block: Block) -> None:
        """Look at the next block."""
        starts = self._lines_to_look_at(block.data)
        steps = [match.start() for match in _STEP.finditer(block.data)] if starts else []
        at, line = 0, block.line
        for start in sorted(starts):
            line += block.data.count(b"\n", at, start)
            at = start
            self._look_at_line(block, start, line, self._step + bisect.bisect_right(steps, start), starts[start])
        self._step += len(steps) if starts else bool(_STEP.search(block.data))

    def _lines_to_look_at(self, data: bytes) -> dict[int, list[_Hit]]:
        """Return where lines begin that hold a rule's words, and the rules."""
        starts: dict[int, list[_Hit]] = {}
        for words, hits in self._hits.items():
            wanted = [hit for hit in hits if not self._is_enough(hit.rule)]
            at = data.find(words) if wanted else -1
            while at >= 0:
                starts.setdefault(data.rfind(b"\n", 0, at) + 1, []).extend(wanted)
                end = data.find(b"\n", at)
                at = data.find(words, end) if end >= 0 else -1
        return starts

    def _is_enough(self, rule: Rule) -> bool:
        return rule.id in self._found and self._found[rule.id].count >= MAX_COUNT

    def _look_at_line(self, block: Block, start: int, line: int, step: int, hits: list[_Hit]) -> None:
        end = block.data.find(b"\n", start)
        raw = shortened(block.data[start : end if end >= 0 else len(block.data)])
        hits = sorted(hits, key=lambda hit: hit.rule.rank)
        for part in raw.rstrip(b"\r").split(b"\r"):
            text = _tool_text(part)
            for rule, found in _rules_in(text, hits):
                if rule.warning or not (_is_cmake_warning(block, start) or self._no_error(text)):
                    self._note(rule, line, step, found)

    def _note(self, rule: Rule, line: int, step: int, found: re.Match[str]) -> None:
        first = self._found.get(rule.id)
        if first is None:
            self._found[rule.id] = Match(rule, line, _shown(found.string, found.start()), step, names=names_in(found))
        else:
            self._found[rule.id] = replace(first, count=first.count + 1)


def scan(
    file: BinaryIO,
    rules: Collection[Rule],
    line: int = 1,
    enough: Callable[[], bool] = lambda: False,
    no_error: Callable[[str], bool] = lambda _: False,
) -> list[Match]:
    """Return every known failure in a log, the first cause first. Raises OSError.

    The file stands at the start of `line`.
    After each portion `enough` is asked whether to stop. Lines that are `no_error` whatever they say are passed over.
    """
    scanner = Scanner(rules, no_error)
    for block in blocks(file, line):
        scanner.look_at(block)
        if enough():
            break
    return scanner.matches()


def _tool_text(raw: bytes) -> str:
    """Return a tool's own line: harmless, and without what wrappers put before it."""
    text = clean(raw, 2 * len(raw) + 1).rstrip()
    leader = _LEADER.match(text)
    return text[leader.end() :] if leader else text


def _rules_in(text: str, hits: list[_Hit]) -> Iterator[tuple[Rule, re.Match[str]]]:
    """Yield the rules that a line matches, and where; those of a better rank come first and shut out the others."""
    if _QUOTED.match(text):
        return
    best = len(RANKS)
    seen = set()
    for rule, pattern in hits:
        if rule.id in seen or rule.rank > best:
            continue
        match = pattern.regex.search(text)
        if match and (rule.warning or not _WARNING.search(text, 0, match.end())):
            seen.add(rule.id)
            best = rule.rank
            yield rule, match


def _shown(text: str, at: int) -> str:
    """Return the line as it is handed on: if it is long, what surrounds the match."""
    if len(text) <= TEXT_SHOWN:
        return text
    begin = max(0, at - _TEXT_BEFORE) if at >= TEXT_SHOWN // 2 else 0
    return clean(("…" if begin else "") + text[begin:], TEXT_SHOWN)


def _is_cmake_warning(block: Block, start: int) -> bool:
    """Return whether a line is the indented body of a CMake warning, whose head stands some lines above."""
    indent = _indent(block.data[start : start + 64])
    above = (block.before + block.data[max(0, start - BEFORE) : start])[-BEFORE:]
    for line in reversed(above.splitlines()[-_LINES_ABOVE:]):
        if not indent:
            return False
        if line.strip() and _indent(line) < indent:
            if _CMAKE_WARNING.match(line):
                return True
            indent = _indent(line)
    return False


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))
