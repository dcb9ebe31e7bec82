"""Why a build failed, as values: the causes that its output shows, and what stoker may do about the first.

Unaware of rules and of logs. `bounded` limits everything in it, because it becomes a line of the journal and a part of
the state. Text comes from the build: code that shows it must pass it through the sanitiser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

ActionKind = Literal[
    "retry", "retry-at-lower-level", "retry-alone", "update-submodules", "fetch-large-files", "set-variable"
]
"""Safe actions after a failure: run the step again as it is, with fewer jobs, or with the dead jobs first and alone;
fetch the submodules, or the large files, that the repository names; set a variable that a rule names."""

ACTION_KINDS: tuple[ActionKind, ...] = get_args(ActionKind)

MAX_CAUSES = 6
"""The first cause and what else was found; later findings are usually consequences."""

MAX_CONTEXT = 33
MAX_LINE = 300
"""Lines around a cause, and characters of each: 12 before a likely place and 20 behind it; a message of CMake's."""

UNKNOWN_FAILURE = "unknown-failure"
LOG_BEGINS_LATE = "log-begins-late"
LOG_UNFINISHED = "log-unfinished"
GUESSES = (UNKNOWN_FAILURE, LOG_BEGINS_LATE, LOG_UNFINISHED)
"""In place of a rule's name where no rule knows the failure: its likely place, or that the output does not hold it:
it begins after it, or ends before it."""

MAX_PROSE = 2000
MAX_FACTS = 8
MAX_NAMES = 100
MAX_NAME = 4096
NAMED = 3
"""Names that are listed one by one in a sentence."""


_VERBATIM = " " * 3
"""CMake fills its own paragraphs, two columns in; what it shows of others stands deeper, line by line."""

_CMAKE_HEAD = re.compile(r"(?:-- )?CMake (?:Deprecation |Author |Internal )?(?:Warning|Deprecation|Error)\b")


@dataclass(frozen=True, slots=True)
class Action:
    """A safe remedy.

    `level`: how many jobs may run then. `names`: the submodules to fetch, by their paths below the repository, or the
    outputs to make first and alone. `variable` is NAME=VALUE.
    """

    kind: ActionKind
    level: int | None = None
    names: tuple[str, ...] = ()
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """One known failure, or the likely place of an unknown one.

    `line` counts from 1 and is the place in the output that shows it, `offset` that line's byte; both None where the
    output is silent. `context` are the lines around it, from the number `context_line` on. `job` is the output of the
    step that said so, empty where none is known. `count` is how many lines say the same. `general`: the place is likely
    that of the cause, and the line leaves open which of several it is.
    """

    rule: str
    title: str
    why: str
    remedy: str
    line: int | None = None
    offset: int | None = None
    text: str = ""
    context: tuple[str, ...] = ()
    context_line: int = 1
    job: str = ""
    count: int = 1
    general: bool = False

    @property
    def heading(self) -> str:
        """The title, for people: one that leaves the cause open says so."""
        return f"{self.title} (several possible causes)" if self.general else self.title

    @property
    def message(self) -> str:
        """What the tool says there: the line that shows it, of a message of CMake's with what belongs to it."""
        return _cmake_message(self) or " ".join(line.strip() for line in self.text.splitlines())

    @property
    def is_guess(self) -> bool:
        """Whether no rule knows it."""
        return self.rule in GUESSES


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The first cause first; none if nothing known was found.

    `facts` are figures beside the output: who was killed, at what size, of how much. `action` is for the first cause.
    `complete` is False if only a part of the output was looked at.
    """

    causes: tuple[Cause, ...] = ()
    facts: tuple[str, ...] = ()
    action: Action | None = None
    complete: bool = True

    @property
    def cause(self) -> Cause | None:
        """Why the build failed."""
        return self.causes[0] if self.causes else None


def _cmake_message(cause: Cause) -> str:
    """The paragraph that shows the cause, and the next one where it ends in a colon: a name often stands below; empty
    outside of such a message, whose head stands at the margin and whose body is indented."""
    lines = cause.context
    at = -1 if cause.line is None else cause.line - cause.context_line
    if not 0 <= at < len(lines):
        return ""
    if lines[at].startswith(_VERBATIM):
        return ""
    head = next((n for n in range(at, -1, -1) if lines[n][:1].strip()), -1)
    if head < 0 or not _CMAKE_HEAD.match(lines[head]):
        return ""
    end = next((n for n in range(head + 1, len(lines)) if lines[n][:1].strip()), len(lines))
    begin = next((n for n in range(at, head, -1) if not lines[n - 1].strip()), at if at == head else head + 1)
    words: list[str] = []
    for line in lines[begin:end]:
        if not line.strip() and words and not words[-1].endswith(":"):
            break
        words += line.split()
    return " ".join(words)


def bounded(diagnosis: Diagnosis) -> Diagnosis:
    """The same within the bounds; what comes first stays."""
    action = diagnosis.action
    if action is not None:
        names = tuple(name[:MAX_NAME] for name in action.names[:MAX_NAMES])
        action = replace(action, names=names, variable=action.variable[:MAX_LINE])
    causes = tuple(_cause(cause) for cause in diagnosis.causes[:MAX_CAUSES])
    facts = tuple(fact[:MAX_PROSE] for fact in diagnosis.facts[:MAX_FACTS])
    return replace(diagnosis, causes=causes, facts=facts, action=action)


def _cause(cause: Cause) -> Cause:
    return replace(
        cause,
        title=cause.title[:MAX_LINE],
        why=cause.why[:MAX_PROSE],
        remedy=cause.remedy[:MAX_PROSE],
        text=cause.text[: 2 * MAX_LINE],
        context=tuple(line[:MAX_LINE] for line in cause.context[:MAX_CONTEXT]),
        job=cause.job[:MAX_NAME],
    )


def words_of(action: Action) -> str:
    """Return what an action does, phrased as a request."""
    if action.kind == "retry-at-lower-level":
        jobs = "1 job" if action.level == 1 else f"{action.level} jobs"
        return f"run the step again, with at most {jobs} at a time"
    if action.kind == "retry-alone":
        return f"run the step again, {_listed([name.rpartition('/')[2] for name in action.names])} first and alone"
    if action.kind == "update-submodules":
        what = "submodule" if len(action.names) == 1 else f"{len(action.names)} submodules"
        return f"fetch the {what} {_listed(action.names)}, then run the step again"
    if action.kind == "fetch-large-files":
        return "fetch the repository's large files (git lfs pull), then run the step again"
    if action.kind == "set-variable":
        return f"run the step again with {action.variable}"
    return "run the step again"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
