"""Searches a log of any size for all rules in one pass. Knows nothing of where the log comes from or how matches are
shown.

A rule's regular expression is tried only on lines that contain the rule's words. An automaton finds all words of all
rules at once, so the number of rules matters little, and a log takes about as long as it takes to read.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from stoker.diagnose.around import Neighbours
from stoker.diagnose.blocks import END_KEPT, NEAR, Block, Readable, blocks, shortened
from stoker.diagnose.installers import IMAGE_MARKS, MARKS, SYSTEMS
from stoker.diagnose.likely import NONE, STOP, WORDS, Likely, is_noise, kind_of
from stoker.diagnose.line_names import EACH, PLACE, filled, names_in
from stoker.diagnose.log_end import TAIL, LogEnd
from stoker.diagnose.log_values import VALUES, LogValues
from stoker.diagnose.match import Match, in_order
from stoker.diagnose.near_names import names_near
from stoker.diagnose.provider import LOOKUPS, MESSAGE, looked_up
from stoker.diagnose.rule import RANKS, Pattern, Rule
from stoker.diagnose.wrappers import is_wrapper, unwrapped
from stoker.model.text import clean

MAX_COUNT = 1000
"""Lines of one rule that are counted; a thousand undefined references are as good as a million."""

MAX_EACH = 20
"""Names that a remedy repeats one by one."""

MAX_PLACES = 12
"""Lines of one rule that are kept per attempt; more than one, because those near a more specific failure do not
count."""

TEXT_SHOWN = 500
"""Characters of a matched line that are returned."""

_TEXT_BEFORE = 150
"""How many of them may precede the match in a longer line."""

_WARNING = re.compile(
    r"(?:^|[\s:(\[])(?<!= )(?:warning|note|remark|(?:[A-Z]\w{0,40})?Warning|WARNING|DEPRECATION)\b(?!s)"
    r"[^'\"]{0,40}?[:\]]"
)
"""A tool's own word that the line is not an error."""

_WARNED = re.compile(r"(?:^|[\s:(\[])(?<!= )(?:warning|[A-Z]\w{0,40}Warning|WARNING)\b(?!s)[^'\"]{0,40}?[:\]]")
"""The same, for what may be printed beside any failure; a note belongs to an error."""

_QUOTED = re.compile(r"\d{0,9}+ {0,9}+\|(?: |$)")
"""A line of source, as gcc and clang quote it below an error."""

_STEP_WORDS = (
    *(b"%d] " % digit for digit in range(10)),
    *(b"%] ", b"FAILED: ", b"ninja: "),
    *(name + mark for name in (b"g++", b"gcc", b"clang", b"c++", b"nvcc") for mark in (b" -", b"-")),
)
_STEP = re.compile(rb"\[ {0,2}\d{1,7}(?:/\d{1,7}\]|%\]) |FAILED: |ninja: ")
_COMMAND = re.compile(rb"[\w./-]{0,200}(?:[gc]\+\+|gcc|clang|nvcc)(?:-\d{1,2})? -")
"""A scheduler's own line, or a compiler's command: what follows belongs to another step."""

_MAX_PREFIX = 250
"""Bytes that wrappers may put before it."""

_DIAGNOSTIC = re.compile(
    r"[^\s:(]{1,400}[:(]\d{1,7}(?:[:,]\d{1,6})?\)?\s?: (?:fatal |catastrophic )?error\b|error(?:\[E\d{4}\])?: .{0,200}$"
)
"""A compiler's error about a place in a source."""

_PROBE_SOURCE = re.compile(r"\S{0,200}/tmp\w{1,20}/a\.(?:cpp|cu|c):\d|\S{0,200}\b_configtest\.c:\d")
"""An error in a file of CuPy's or NumPy's setup.py, which compiles it to learn what is there."""

_LINKER_LINE = re.compile(r"\S{0,200}\b(?:ld(?:\.\w{2,5})?|collect2): ")
_PROBED = "[WARNING] "
"""How DeepSpeed's setup.py goes on after its trial links, whatever they found."""

_PROBED_WITHIN = 12
"""Lines of the linker between a trial link and that."""

_NINJA_STOPPED = b"ninja: build stopped"
_MAKE_STOPPED = b"make: *** "
_STOPPED = (_NINJA_STOPPED, _MAKE_STOPPED)
_BEGINS = (b"[0/", b"[1/")
"""What begins another attempt: the counter of its first step."""

_CONFIGURED = (b"-- Build files have been written to", b"config.status: creating ", b"Build targets in project: ")
"""What CMake, autoconf and Meson say when they have configured: nothing that they missed before stopped them."""

_NOT_CONFIGURED = (b"-- Configuring incomplete", b"CMake Generate step failed")

_FOLDS = (b"CMake Error", b"[stderr]")
"""Heads of messages whose lines CMake or uv has folded to the width of a page."""

_FOLDED_LINES = 4
"""Lines behind the first over which one line of a tool may be folded."""

_MAX_FOLDED = 100
"""Folded messages that are read across their line ends: a log of nothing else must not take minutes."""

_MARKING = (_STOPPED, _BEGINS, WORDS, _CONFIGURED, _NOT_CONFIGURED, _FOLDS)
"""In the order of the fields of _Plan and _Index."""


class _Hit(NamedTuple):
    rule: Rule
    pattern: Pattern


@dataclass(slots=True)
class _Found:
    """What was found for one rule: its first lines of each attempt, their number, the last one, and what `each`
    repeats."""

    places: list[Match] = field(default_factory=list)
    count: int = 0
    last: int = 0
    said: dict[str, int] = field(default_factory=dict)
    each: dict[str, None] = field(default_factory=dict)


class _InLine(NamedTuple):
    """A rule that a line matches, where, and the names for its words."""

    rule: Rule
    match: re.Match[str]
    names: Mapping[str, str]


class _Plan(NamedTuple):
    """How to look at lines with certain words: rules, the best first; whether they end or begin an attempt or a
    configuration; whether they may be errors, or head a folded message."""

    hits: tuple[_Hit, ...]
    ends_attempt: bool
    begins_attempt: bool
    may_be_error: bool
    configured: bool
    not_configured: bool
    folds: bool


class _Index(NamedTuple):
    """All words that are searched for, by the number that the automaton gives them.

    `hits` are the rules of each word; the other fields are the numbers of words with a meaning of their own.
    """

    words: BytesAhoCorasick
    hits: tuple[tuple[_Hit, ...], ...]
    stopped: frozenset[int]
    begins: frozenset[int]
    maybe: frozenset[int]
    configured: frozenset[int]
    not_configured: frozenset[int]
    folds: frozenset[int]
    marks: Mapping[int, str]
    values: Mapping[int, bytes]
    images: frozenset[int]
    systems: Mapping[int, str]


@functools.lru_cache(4)
def _index(rules: tuple[Rule, ...]) -> _Index:
    """Return the index of these rules; making it takes longer than reading a small log."""
    hits: dict[bytes, list[_Hit]] = defaultdict(list)
    for rule in rules:
        for pattern in rule.patterns:
            hits[pattern.words].append(_Hit(rule, pattern))
    words = tuple(
        dict.fromkeys((*hits, *(word for words in _MARKING for word in words), *MARKS, *VALUES, *IMAGE_MARKS, *SYSTEMS))
    )
    number = {word: at for at, word in enumerate(words)}
    stopped, begins, maybe, configured, not_configured, folds = (
        frozenset(number[word] for word in some) for some in _MARKING
    )
    marks = {number[mark]: tool for mark, tool in MARKS.items()}
    values = {number[word]: word for word in VALUES}
    of_words = tuple(tuple(hits.get(word, ())) for word in words)
    return _Index(
        _automaton(words),
        of_words,
        stopped,
        begins,
        maybe,
        configured,
        not_configured,
        folds,
        marks,
        values,
        frozenset(number[word] for word in IMAGE_MARKS),
        {number[word]: system for word, system in SYSTEMS.items()},
    )


class Scanner:
    """Takes a log in blocks and keeps the first lines that each rule matches, and the likely place of any failure."""

    def __init__(self, rules: Collection[Rule], no_error: Callable[[str], bool] = lambda _: False) -> None:
        self._no_error = no_error
        self._index = _index(tuple(rules))
        self._installer = ""
        self._in_image = False
        self._systems: set[str] = set()
        self._values = LogValues()
        self._found: dict[str, _Found] = defaultdict(_Found)
        self._in_attempt: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._plans: dict[frozenset[int], _Plan] = {}
        self._is_known = False
        self._step = 0
        self._attempt = 0
        self._stopped_at: int | None = None
        self._not_configured_at = 0
        self._folded = 0
        self._tail = b""
        self._lines_read = 0
        self._ending: LogEnd | None = None
        self.likely = Likely()

    def ending(self) -> LogEnd:
        """Return the end of what was read so far."""
        if self._ending is None:
            self._ending = LogEnd(self._tail, self._lines_read - self._tail.count(b"\n"))
        return self._ending

    def matches(self) -> list[Match]:
        """Return what was found so far, the first cause first."""
        said = self._values.names()
        ending = self.ending()
        counted = (
            [
                replace(
                    m,
                    survived=m.survived or (_depends_on_place(m.rule) and ending.went_on(m.line)),
                    count=found.count,
                    installer=self._installer,
                    in_image=self._in_image,
                    systems=frozenset(self._systems),
                    names={**said, **m.names, EACH: " ".join(found.each)},
                )
                for m in found.places
            ]
            for found in self._found.values()
            if found.places
        )
        return in_order(counted)

    def last_line(self) -> int:
        """Return the last line that any rule matched, 0 if none did."""
        return max(
            (found.last for found in self._found.values() if found.places and _counts(found.places[-1])), default=0
        )

    def look_at(self, block: Block) -> None:
        """Look at the next block."""
        self._tail, self._ending = (self._tail + block.data)[-TAIL:], None
        self._lines_read = block.line + block.data.count(b"\n")
        starts = self._lines_with_words(block.data)
        steps: list[int] | None = None  # found only for lines worth a look: in large logs most blocks have none
        at, line = 0, block.line
        for start, words in sorted(starts.items()):
            plan = self._plan(frozenset(words))
            if self._is_noise(block.data, start, plan):
                continue
            steps = _steps(block.data) if steps is None else steps
            line += block.data.count(b"\n", at, start)
            at = start
            self._look_at_line(block, start, line, self._step + bisect.bisect_right(steps, start), plan)
        if steps is None:
            self._step += bool(_steps(block.data[:NEAR]) or _steps(block.data))
        else:
            self._step += len(steps)

    def _words_in(self, data: bytes) -> Sequence[tuple[int, int, int]]:
        """Return all words that stand there: their numbers, where they begin and where they end."""
        return self._index.words.find_matches_as_indexes(data, overlapping=True)

    def _lines_with_words(self, data: bytes) -> dict[int, set[int]]:
        """Return where lines with words begin, and which words."""
        starts: dict[int, set[int]] = {}
        begin = end = -1
        for word, at, _ in self._words_in(data):
            self._installer = self._index.marks.get(word, self._installer)
            self._in_image = self._in_image or word in self._index.images
            if word in self._index.systems:
                self._systems.add(self._index.systems[word])
            if word in self._index.values:
                self._values.learn(VALUES[self._index.values[word]], data, at)
            if not begin <= at < end:
                begin = data.rfind(b"\n", 0, at) + 1
                end = data.find(b"\n", at) + 1 or len(data) + 1
            starts.setdefault(begin, set()).add(word)
        return starts

    def _plan(self, words: frozenset[int]) -> _Plan:
        """Return how to look at lines with these words.

        Of a rule's expressions those that find names come first, then those with the longest words. A rule that has
        reached its count is not tried again, but its lines remain its own: no rule of a lesser rank takes them.
        """
        plan = self._plans.get(words)
        if plan is None:
            hits = sorted(
                (hit for word in words for hit in self._index.hits[word]),
                key=lambda hit: (hit.rule.rank, hit.rule.id, -hit.pattern.regex.groups, -len(hit.pattern.words)),
            )
            counted = (hit.rule.rank for hit in hits if self._asked[hit.rule.id] >= MAX_COUNT)
            best = min(counted, default=len(RANKS))
            asked = (hit for hit in hits if hit.rule.rank <= best and self._asked[hit.rule.id] < MAX_COUNT)
            index = self._index
            marking = (index.stopped, index.begins, index.maybe, index.configured, index.not_configured, index.folds)
            marks = (not words.isdisjoint(some) for some in marking)
            plan = self._plans[words] = _Plan(tuple(asked), *marks)
        return plan

    def _is_noise(self, data: bytes, start: int, plan: _Plan) -> bool:
        """Return whether a line needs no closer look."""
        if (
            plan.ends_attempt
            or plan.configured
            or plan.not_configured
            or plan.folds
            or (plan.begins_attempt and self._stopped_at is not None)
        ):
            return False
        if not plan.hits and not (plan.may_be_error and self._wants_likely()):
            return True
        end = data.find(b"\n", start)
        raw = data[start : min(end, start + END_KEPT) if end >= 0 else start + END_KEPT]
        return is_noise(raw, for_rules=bool(plan.hits))

    def _wants_likely(self) -> bool:
        """Return whether the likely place may still be needed: it is not if a rule knows the failure."""
        return not (self._is_known or self.likely.is_sure)

    def _look_at_line(self, block: Block, start: int, line: int, step: int, plan: _Plan) -> None:
        end = block.data.find(b"\n", start)
        raw = shortened(block.data[start : end if end >= 0 else len(block.data)])
        near: Neighbours | None = None
        if plan.configured or plan.not_configured:
            self._follow_configuring(line, step, plan)
        if plan.folds and self._folded < _MAX_FOLDED:
            self._folded += 1
            self._look_at_folded(block, start, line, step)
        for part in raw.rstrip(b"\r").split(b"\r"):
            indented = unwrapped(part)
            inner = indented.strip()
            self._follow_attempts(inner, step)
            if _QUOTED.match(inner):
                continue
            around = functools.partial(Neighbours, block, start, line)
            found = self._rules_in(inner, plan.hits, around)
            if plan.hits and not found:  # what looks like a wrapper may be the tool's own
                found = self._rules_in(clean(part, 2 * len(part) + 1).strip(), plan.hits, around)
            looks_like = NONE if found or not self._wants_likely() or _WARNING.search(inner) else kind_of(inner)
            looks_like = looks_like if self.likely.wants(looks_like, step, line) else NONE
            if not (found or looks_like) or self._no_error(inner):
                continue
            near = near or around()
            is_warning = indented[:1].isspace() and near.in_cmake_warning()
            for rule, match, names in found:
                if rule.warning or not is_warning:
                    self._note(rule, step, match, names, near)
            if looks_like and not is_warning:
                self.likely.note(looks_like, _shown(inner, 0), step, near)

    def _follow_configuring(self, line: int, step: int, plan: _Plan) -> None:
        """Note where a configuration ends: what one that ended well has missed before, it could do without.

        Only what stands in the same step counts: jobs of a build that run beside it have steps of their own.
        """
        if plan.not_configured:
            for found in self._found.values():
                found.places = [
                    replace(m, stopped=True) if m.line > self._not_configured_at and not m.survived else m
                    for m in found.places
                ]
            self._not_configured_at = line
            return
        for rule_id, found in self._found.items():
            places = [
                replace(m, survived=True)
                if m.attempt == self._attempt
                and m.step == step
                and m.line > self._not_configured_at
                and not m.is_diagnostic
                else m
                for m in found.places
            ]
            self._in_attempt[rule_id] -= sum(m.survived for m in places) - sum(m.survived for m in found.places)
            found.places = places
        self._is_known = any(_counts(m) for found in self._found.values() for m in found.places)

    def _look_at_folded(self, block: Block, head: int, line: int, step: int) -> None:
        """Look at what a message says across its line ends."""
        lines = Neighbours(block, head, line).body()
        if block.data.count(b"\n", head) <= len(lines):  # the message continues in the next block
            block = block._replace(data=block.data + block.after, after=b"")
        start = head
        for at in range(len(lines)):
            start = block.data.find(b"\n", start) + 1
            line += 1
            text = " ".join(lines[at : at + 1 + _FOLDED_LINES]) if lines[at] else ""
            if not start or not text:
                continue
            words = frozenset(word for word, _, _ in self._words_in(text.encode()))
            hits = self._plan(words).hits if words else ()
            around = functools.partial(Neighbours, block, start, line)
            for rule, match, names in self._rules_in(text, hits, around):
                if match.start() < len(lines[at]) < match.end() and not self._rules_in(
                    lines[at], [h for h in hits if h.rule is rule], around
                ):
                    self._note(rule, step, match, names, around())

    def _follow_attempts(self, text: str, step: int) -> None:
        """Notice when the build is started again: it survived the failures of earlier attempts."""
        if text.startswith(_NINJA_STOPPED.decode()):
            self._stopped_at = -1
        elif text.startswith(_MAKE_STOPPED.decode()):
            self._stopped_at = step
        elif self._stopped_at is not None:
            begins = text.startswith(("[0/", "[1/")) if self._stopped_at < 0 else step > self._stopped_at
            if begins:
                self._begin_attempt()

    def _begin_attempt(self) -> None:
        self._attempt += 1
        self._stopped_at = None
        self.likely = Likely()
        if self._asked:
            self._asked.clear()
            self._in_attempt.clear()
            self._plans.clear()
        for found in self._found.values():
            del found.places[2:]

    def _rules_in(self, text: str, hits: Sequence[_Hit], around: Callable[[], Neighbours]) -> list[_InLine]:
        """Return the rules that a line matches; those of a better rank come first and exclude the others."""
        found: list[_InLine] = []
        best = len(RANKS)
        seen = set()
        for rule, pattern in hits:
            if rule.id in seen or rule.rank > best:
                continue
            match = pattern.regex.search(text)
            if rule.continues:
                match = pattern.regex.search(f"{text} {around().next_line()}") or match
            if not match or (_WARNING.search(text, 0, match.end()) and not rule.warning):
                continue
            names = None if rule.wordless and not around().printed_nothing() else _names_for(rule, match, around)
            if names is None or (rule.repeated and not self._is_repeated(rule, match[0], around().line)):
                self._count(rule)
                continue
            seen.add(rule.id)
            best = best if rule.beside else rule.rank  # it may turn out to be evidence of nothing
            found.append(_InLine(rule, match, names))
        return found

    def _is_repeated(self, rule: Rule, said: str, line: int) -> bool:
        """Return whether a line before this one has said the very same."""
        known = self._found[rule.id].said
        if said not in known and len(known) >= MAX_EACH:
            return False
        return known.setdefault(said, line) < line

    def _count(self, rule: Rule) -> None:
        """Count a line that was examined; a rule that has reached its count is not tried again."""
        self._asked[rule.id] += 1
        if self._asked[rule.id] == MAX_COUNT:
            self._plans.clear()

    def _note(self, rule: Rule, step: int, match: re.Match[str], names: Mapping[str, str], near: Neighbours) -> None:
        found = self._found[rule.id]
        found.count += 1
        found.last = near.line
        is_probe = _is_probe(match.string, near)
        is_warning = _WARNED.search(match.string, 0, match.end()) is not None
        self._is_known = self._is_known or (_proves_failure(rule) and not (is_probe or is_warning))
        self._count(rule)
        self._in_attempt[rule.id] += 1
        if rule.each and len(found.each) < MAX_EACH and set(PLACE.findall(rule.each)) <= names.keys():
            found.each.setdefault(filled(rule.each, names))
        if self._in_attempt[rule.id] <= MAX_PLACES:
            names = {**names_near(near.above()), **names} if rule.asks_neighbours else names
            around = near.around()
            found.places.append(
                Match(
                    rule,
                    near.line,
                    _shown(match.string, match.start()),
                    step,
                    self._attempt,
                    _DIAGNOSTIC.match(match.string) is not None,
                    is_warning,
                    names,
                    around.lines,
                    around.first,
                    survived=is_probe,
                    last_line=near.end_of_message(),
                )
            )


def scan(
    file: Readable,
    rules: Collection[Rule],
    line: int = 1,
    enough: Callable[[], bool] = lambda: False,
    no_error: Callable[[str], bool] = lambda _: False,
) -> list[Match]:
    """Return every known failure in a log, the first cause first. Raises OSError.

    The file is at the start of `line`. After each portion `enough` is asked whether to stop. Lines for which `no_error`
    is true are skipped.
    """
    scanner = Scanner(rules, no_error)
    for block in blocks(file, line):
        scanner.look_at(block)
        if enough():
            break
    return scanner.matches()


@functools.lru_cache(4)
def _automaton(words: tuple[bytes, ...]) -> BytesAhoCorasick:
    """Return an automaton that finds all of these words in one pass; making it takes some milliseconds."""
    return BytesAhoCorasick(words, implementation=Implementation.DFA)


def _steps(data: bytes) -> list[int]:
    """Return where lines begin that begin a step."""
    starts: list[int] = []
    end = failed_end = 0
    for _, at, _ in _automaton(_STEP_WORDS).find_matches_as_indexes(data):
        if at >= end:
            start = data.rfind(b"\n", end, at) + 1 or end
            end = data.find(b"\n", at) + 1 or len(data)
            if start == failed_end and failed_end:  # the command of the step that failed
                continue
            if _STEP.match(data, start) or _COMMAND.match(data, start) or _is_wrapped_step(data[start:end]):
                starts.append(start)
                failed_end = end if b"FAILED: " in data[start:end][:_MAX_PREFIX] else 0
    return starts


def _is_wrapped_step(line: bytes) -> bool:
    step = _STEP.search(line, 0, 2 * _MAX_PREFIX)
    return step is not None and is_wrapper(line[: step.start()])


def _is_probe(text: str, near: Neighbours) -> bool:
    """Return whether a setup.py only tried whether something is there, and goes on without it."""
    if _PROBE_SOURCE.match(text):
        return True
    if not _LINKER_LINE.match(text):
        return False
    below = (line.strip() for line in near.around(0, _PROBED_WITHIN).lines[1:])
    return next((line for line in below if not _LINKER_LINE.match(line)), "").startswith(_PROBED)


def _counts(match: Match) -> bool:
    """Return whether a match alone proves a failure."""
    return not (match.survived or match.is_warning) and _proves_failure(match.rule)


def _proves_failure(rule: Rule) -> bool:
    """Return whether no build continues after a match of the rule, which needs no other match near it."""
    return not (rule.survivable or rule.beside or rule.follows)


def _depends_on_place(rule: Rule) -> bool:
    """Return whether a match counts only if nothing went on after it: a lack of memory hits any step, and evidence may
    stand anywhere."""
    return not (rule.action.startswith("retry-") or rule.beside)


def _names_for(rule: Rule, match: re.Match[str], around: Callable[[], Neighbours]) -> Mapping[str, str] | None:
    """Return the names for a rule's words; None if it looks up a name that the tables do not have, or needs one
    that the lines above do not have."""
    names = names_in(match)
    if rule.needs and len(names_near(around().above(), rule.needs)) < len(rule.needs):
        return None
    if not rule.provided:
        return names
    said = match.groupdict().get(LOOKUPS[rule.provided])
    if rule.provided == MESSAGE and not said:
        said = around().message()
    if rule.provided == MESSAGE and kind_of(match.string) == STOP:  # it repeats the command that failed
        return None
    own = looked_up(rule.provided, said or "")
    return None if own is None else {**names, **own}


def _shown(text: str, at: int) -> str:
    """Return the line as it is shown: of a long one, the part around the match."""
    if len(text) <= TEXT_SHOWN:
        return text
    begin = max(0, at - _TEXT_BEFORE) if at >= TEXT_SHOWN // 2 else 0
    return clean(("…" if begin else "") + text[begin:], TEXT_SHOWN)
