"""A known failure found in a log, and the order of causes. Knows nothing of how matches are found or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.diagnose.installers import for_system, spoken
from stoker.diagnose.line_names import filled
from stoker.diagnose.log_values import OLD_PIP
from stoker.diagnose.rule import ANY_RULE, Rule
from stoker.model.diagnosis import Cause

NEAR = 20
"""Lines within which a general cause adds nothing to a specific one in the same step."""

REACH = 1000
"""Lines between a general cause and the evidence that decides it: the end of config.log follows configure's error."""

MAX_DECLARATION = 12
"""Lines of source that the parameters of a declaration may take."""

_STATUS = "-- "
"""Begins what CMake says as it configures. A step of the build comes after that, so the build went on."""

_SOURCE_LINE = re.compile(r"(?P<file>[^\s:(]{1,400})[:(](?P<line>\d{1,7})(?=[:,)])")
_DECLARED_VOID = re.compile(r"variable or field .{1,200} declared void")
"""What g++ says of a function before it names the unknown type of a parameter."""


@dataclass(frozen=True, slots=True)
class Match:
    """A line that a rule matches."""

    rule: Rule
    line: int
    """Counts from 1."""
    text: str
    """Harmless, and cut."""
    step: int
    """The same for all lines between two lines of the scheduler."""
    attempt: int = 0
    """How often the build was started again before."""
    is_diagnostic: bool = False
    """Whether it is a compiler's error about a place in a source."""
    is_warning: bool = False
    """Whether its tool calls it a warning."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names in the line, by kind."""
    context: tuple[str, ...] = ()
    """The lines around it, from the number `context_line` on."""
    context_line: int = 1
    count: int = 1
    """How many lines the rule matches, up to a thousand."""
    installer: str = ""
    """The tool for which the remedy is worded, empty for pip."""
    survived: bool = False
    """Whether the configuration that printed it ended well, or only tried whether something is there."""
    stopped: bool = False
    """Whether that configuration failed."""
    in_image: bool = False
    """Whether the log builds a container image."""
    systems: frozenset[str] = frozenset()
    """What the log shows of the machine's package manager, and whether it is a cluster's."""
    last_line: int = 0
    """The last line of the CMake message that it heads, otherwise 0."""

    @property
    def survivable(self) -> bool:
        """Whether the build may have continued after it, as tools do after their own warnings."""
        return self.survived or self.rule.survivable or (self.is_warning and not self.rule.beside)

    @property
    def title(self) -> str:
        """What failed, with the names of this line."""
        return filled(self.rule.title, self.names)

    @property
    def why(self) -> str:
        """Why it happens, with the names of this line."""
        return filled(self.rule.why, self.names)

    @property
    def remedy(self) -> str:
        """What to do about it, with the names of this line, in the words of the tool that installs."""
        own = self.rule.remedies.get(self.installer)
        text = spoken(own or self.rule.remedy, "" if own else self.installer, in_image=self.in_image)
        first = self.names.get(OLD_PIP, "") if self.rule.provided else ""
        return for_system(filled(first + text, self.names), self.systems)


def in_order(found: Iterable[Sequence[Match]]) -> list[Match]:
    """Return one match per rule, the first cause first. `found` are the first lines of each rule, in their order.

    Causes are ordered by time, but within a step the specific one comes before the general one, which is dropped if it
    is only a few lines away, and an error before a warning. Compiler errors in sources are an exception: within a step
    the first error comes before its consequences. Behind all causes comes what is printed because of another failure or
    beside one, and last what the build survived: it was `survivable`, or in an attempt before the last, and something
    that was not came later. Evidence replaces the general cause that it decides.
    """
    groups = [list(matches) for matches in found]
    failures = [m for ms in groups for m in ms if not m.survivable]
    causes = [m for m in failures if not m.rule.consequence]
    last = max((m.attempt for m in causes or failures), default=0)
    of_last = ([m for m in ms if m.attempt == last] or ms for ms in groups)
    newest = _decided([[m for m in ms if not m.survived] or ms for ms in of_last])
    first_errors = _first_errors(m for ms in newest for m in ms)
    of_step: dict[int, list[Match]] = {}
    for match in (m for ms in newest for m in ms):
        of_step.setdefault(match.step, []).append(match)
    picked = [m for ms in newest if (m := _pick(ms, of_step, first_errors)) is not None]
    order = _Order(picked, last, first_errors)
    picked = [m for m in picked if not (m.survived and m.line < order.end and m.step < order.failed_step)]
    return sorted(_without_echoes(picked), key=order.key)


class _Order:
    """The order of the matches that were picked; `last` is the attempt that counts."""

    def __init__(self, picked: Sequence[Match], last: int, first_errors: Mapping[int, int]) -> None:
        self._last, self._first_errors = last, first_errors
        failures = [m for m in picked if not m.survivable and m.attempt == last and not m.rule.consequence]
        causes = [m.line for m in failures if not m.rule.follows]
        self._first_cause = min(causes, default=None)
        self.failed_step = max((m.step for m in failures), default=0)
        self.end = max((m.line for m in failures), default=0)
        self._end_of_any = max((m.line for m in picked if not (m.survived or m.rule.consequence)), default=0)
        self._begin: dict[int, int] = {}
        for match in picked:
            if not self._is_consequence(match):
                self._begin[match.step] = min(match.line, self._begin.get(match.step, match.line))

    def key(self, match: Match) -> tuple[bool, bool, int, int, bool, int]:
        """Return what to sort by."""
        is_status = match.text.startswith(_STATUS) and not match.stopped and match.step < self.failed_step
        survived = match.line < self.end and (match.survivable or is_status or match.attempt < self._last)
        survived = survived or (match.survived and match.line < self._end_of_any)
        rank = 0 if self._first_errors.get(match.step) == match.line else match.rule.rank
        begin = self._begin.get(match.step, match.line)
        return survived, self._is_consequence(match), begin, rank, match.is_warning, match.line

    def _is_consequence(self, match: Match) -> bool:
        """Return whether a match follows from another, or merely stands beside it."""
        first = self._first_cause
        return match.rule.consequence or (match.rule.follows and first is not None and first < match.line)


def _without_echoes(picked: Sequence[Match]) -> list[Match]:
    """Return the matches without those that only repeat an earlier one."""

    def is_echo(match: Match) -> bool:
        echoed = match.rule.echoes
        before = (m for m in picked if m.attempt == match.attempt and m.line <= match.line and m is not match)
        return bool(echoed) and any(
            m.rule.id in echoed or (ANY_RULE in echoed and not (m.survivable or m.rule.echoes or m.rule.consequence))
            for m in before
        )

    return [match for match in picked if not is_echo(match)]


def _decided(groups: Sequence[list[Match]]) -> list[list[Match]]:
    """Return the matches with evidence in place of the general causes near it; evidence without such a cause is
    dropped."""
    of_rule = {ms[0].rule.id: ms for ms in groups if ms}
    evidence: list[list[Match]] = []
    settled: set[tuple[str, int]] = set()
    placed_rules: set[str] = set()
    for matches in (ms for ms in groups if ms and (ms[0].rule.beside or ms[0].rule.decides)):
        rule = matches[0].rule
        general = [m for name in (*rule.beside, *rule.decides) for m in of_rule.get(name, ())]
        cause = replace(rule, survivable=False)  # the build did not survive what it decides
        beside = rule.warning and bool(rule.beside)
        placed = [
            replace(m, rule=cause, step=at.step, survived=at.survived, is_warning=beside, names={**at.names, **m.names})
            for m in matches
            if (at := _nearest(m, [g for g in general if _is_about(g, m)])) is not None
            and (rule.beside or not m.survived or at.survived)
        ]
        if placed and not (rule.throughout and _leaves_lines(matches, general)):
            evidence.append(placed)
            placed_rules.add(rule.id)
            settled |= {(g.rule.id, g.line) for g in general if _nearest(g, placed) is not None}
    lines = {m.line for placed in evidence for m in placed}
    alone = (ms for ms in groups if ms and not ms[0].rule.beside and ms[0].rule.id not in placed_rules)
    others = [[m for m in ms if not (m.rule.rank and m.line in lines)] for ms in alone]
    ordered = (*evidence, *others)  # of two about one line, the evidence comes first
    rest = [[m for m in ms if (m.rule.id, m.line) not in settled] for ms in ordered]
    return [ms for ms in rest if ms]


def _is_about(match: Match, evidence: Match) -> bool:
    """Return whether evidence speaks of what a match names, as far as its rule asks for that."""
    if evidence.rule.same_path and not _is_below(match, evidence):
        return False
    if evidence.rule.same_function and not _names_function(match.text, evidence.names.get("symbol")):
        return False
    return not evidence.rule.same_package or _is_of_package(match, evidence)


def _names_function(text: str, function: str | None) -> bool:
    """Return whether a linker's line has a function as C++ names it, with its parameters and in no namespace."""
    return function is not None and re.search(rf"[ `'‘]{re.escape(function)}\(", text) is not None


def _is_of_package(match: Match, given: Match) -> bool:
    """Return whether an option of the command line is about the package that a match names: its own, or all."""
    missing, package = match.names.get("package"), given.names.get("package")
    return package is None or (missing is not None and missing.casefold() == package.casefold())


def _is_below(match: Match, given: Match) -> bool:
    """Return whether the file that a match names is the path that was given, or lies below it."""
    file, path = match.names.get("path") or match.names.get("file"), given.names.get("path")
    return bool(file and path) and f"{file}/".startswith(f"{path}/")


def _leaves_lines(matches: Sequence[Match], general: Sequence[Match]) -> bool:
    """Return whether evidence is a single line, or leaves out a line of what it decides."""
    return len(matches) < 2 or not {m.line for m in general} <= {m.line for m in matches}


def _nearest(match: Match, others: Iterable[Match]) -> Match | None:
    """Return the nearest of the others within reach."""
    near = [m for m in others if abs(m.line - match.line) <= REACH]
    return min(near, key=lambda m: abs(m.line - match.line), default=None)


def _first_errors(matches: Iterable[Match]) -> dict[int, int]:
    """Return for each step the line of its first compiler error in a source."""
    lines: dict[int, int] = {}
    for match in matches:
        if match.is_diagnostic:
            lines[match.step] = min(match.line, lines.get(match.step, match.line))
    return lines


def _pick(matches: list[Match], of_step: Mapping[int, list[Match]], first_errors: Mapping[int, int]) -> Match | None:
    """Return the first match of a rule that adds something to the matches of better rank near it.

    Names that it lacks are taken from the rule's next lines.
    """
    for match in matches:
        better = (other for other in of_step[match.step] if other.rule.rank < match.rule.rank)
        beside = [o for o in better if abs(o.line - match.line) <= NEAR or match.line < o.line <= match.last_line]
        if not match.rule.follows:
            beside = [other for other in beside if not other.rule.follows]
        if not match.survived:
            beside = [other for other in beside if not other.survived]
        if not match.survivable:
            beside = [other for other in beside if not other.survivable]
        if first_errors.get(match.step) == match.line:  # later compiler errors follow from it
            beside = [other for other in beside if not other.is_diagnostic or _of_one_fault(match, other)]
        if not beside:
            near = (m.names for m in matches if m.step == match.step and 0 <= m.line - match.line <= NEAR)
            names = {kind: name for found in reversed(list(near)) for kind, name in found.items()}
            return replace(match, count=matches[0].count, names=names)
    return None


def _of_one_fault(match: Match, other: Match) -> bool:
    """Return whether two errors are about one line of source, or about the first unknown type in a declaration."""
    at, other_at = _SOURCE_LINE.match(match.text), _SOURCE_LINE.match(other.text)
    if at is None or other_at is None or at["file"] != other_at["file"]:
        return False
    apart = int(other_at["line"]) - int(at["line"])
    return 0 <= apart <= (MAX_DECLARATION if _DECLARED_VOID.search(match.text) else 0)


def cause_of(match: Match) -> Cause:
    """Return the match as the journal records it."""
    return Cause(
        match.rule.id,
        match.title,
        match.why,
        match.remedy,
        match.line,
        text=match.text,
        context=match.context,
        context_line=match.context_line,
        count=match.count,
        general=match.rule.general and not any(words in match.text for words in match.rule.plain),
    )


def to_json(causes: Iterable[Cause], rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Return causes as `stoker diagnose --json` prints them."""
    actions = {rule.id: rule.action for rule in rules}
    return [
        {
            "rule": cause.rule,
            "title": cause.title,
            "line": cause.line,
            "text": cause.text,
            "why": cause.why,
            "remedy": cause.remedy,
            "action": actions.get(cause.rule, "none"),
            "general": cause.general,
            "count": cause.count,
            "context": list(cause.context),
            "context_line": cause.context_line,
        }
        for cause in causes
    ]
