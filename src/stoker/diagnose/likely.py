"""Finds the likely place of a failure that no rule knows, and recognises the log of a build that ended well.

Knows what errors of any tool look like, but no tool's errors by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from stoker.diagnose.around import Around, Neighbours
from stoker.diagnose.wrappers import unwrapped
from stoker.model.diagnosis import LOG_BEGINS_LATE, LOG_UNFINISHED, UNKNOWN_FAILURE, Cause

ABOVE = 12
BELOW = 20
"""Lines shown around the likely place: more than around a known failure, because their meaning is unknown. Lines from
the next step on belong to another command."""

_NEXT_STEP = re.compile(r"\[ {0,2}\d{1,7}(?:/\d{1,7}\]|%\]) ")

CLUSTER = 30
"""Lines between words that may belong to one failure."""

WORDS = tuple(
    word.encode()
    for word in (
        *(
            "rror:",
            "rror :",
            "rror[",
            "rror (",
            "rror ",
            "RROR ",
            "RROR:",
            "rrors:",
            "xception:",
            "atal:",
            "atal error",
        ),
        *("FATAL", "FAIL", "ailed", "*** ", "panic", "borted", "egmentation fault", "ssertion", "ninja: build stopped"),
        *("annot ", "an't ", "ould not ", "nable to ", "ot found", "o such ", "ot exist", "denied", "refused"),
        *("nvalid ", "nknown ", "nrecognized ", "nsupported ", "nresolved ", "ndefined ", "is missing", "sage: "),
        *("Fehler", "rreur", "rro:", "rrore:", "fel:", "hata:", "hyba:", "łąd", "шибка", "омилка"),
        *("错误", "錯誤", "エラー", "오류"),
        *(f"{digit}: " for digit in range(10)),
    )
)
"""Every line that looks like an error contains one of these: pieces of words, whose first letter may be a capital."""

_PROBE = re.compile(
    r"""--\ |(?:checking|looking|performing|detecting|compiler)\ (?:for|if|whether|test)\b|\#define\ |run-time\ dep
    |.{0,300}\b(?:no\ errors?|errors?:\ 0|[^\d.,]0\ (?:errors?|failed))\b|0\ errors?\b
    |\S{1,200}:\d{1,7}:\ (?:installing|copying|creating|updating)\ |.{0,300}\btime\ stamp\ .{1,60}\ in\ the\ future""",
    re.VERBOSE | re.IGNORECASE,
)
"""Questions of a configure script, whose answer may be no; error counts of zero; and what autotools do."""

_CONFIGURE_STOPPED = re.compile(r"(?:^|\.\.\. ?|[\w/]: )configure: error: (?!in [`'])")
"""It may follow the question that it answers, in the same line."""

_RUNNER = re.compile(
    r"""(?:(?:Error|ERROR):\ )?(?:
    Process\ completed\ with\ exit\ code|The\ process\ .{1,300}\ failed\ with\ exit\ code|Job\ failed\b
    |The\ operation\ was\ cancell?ed|The\ runner\ has\ received\ a\ shutdown)|Finished:\ (?:FAILURE|ABORTED|UNSTABLE)
    |Build\ step\ '.{1,200}'\ marked\ build\ as\ failure|Cleaning\ up\ project\ directory|script\ returned\ exit\ code
    |Exited\ with\ code\ (?:exit\ status\ )?\d|Bash\ exited\ with\ code|Post\ job\ cleanup
    |srun:\ error:\ .{1,300}:\ (?:Exited\ with\ exit\ code|Terminated|Killed)|srun:\ (?:launch/|Job\ step|Force\ Term)
    |salloc:\ |Command\ exited\ with\ non-zero\ status
    |The\ command\ ".{1,300}"\ (?:exited\ with|failed\ and\ exited)""",
    re.VERBOSE,
)
"""What a CI service prints about a job, whatever failed in it."""

_STOPPED = re.compile(
    r"""\S{0,200}make(?:\[\d{1,4}+\])?:\ \*\*\*\ |ninja:\ build\ stopped|configuring\ incomplete|collect2:[ ]
    |(?:\S{0,100}\ )?error:\ (?:legacy-install-failure|
        command\ (?:.{1,300}\ failed|errored\ out\ with|["'`/])|complete\ output\ from\ command|subprocess-exited
        |builder\ for\ |metadata-generation-failed|failed-wheel-build|failed\ building[ ]
        |process\ |failed\ to\ (?:solve|build)|could\ not\ (?:compile|build)\ |recipe\ for|build\ failed
        |failed\ to\ run\ custom\ build|linking\ with\ |aborting\ due\ to)
    |.{0,200}(?:calledprocesserror:\ |\breturned\ (?:a\ )?non-zero|did\ not\ (?:run|complete)\ successfully)
    |(?:\S\ )?maturin\ failed|caused\ by:|for\ more\ information\ about\ this\ error,|see\ `config\.log'
    |.{0,200}\bfinished\ with\ status\ 'error'
    |runtimeerror:\ error\ (?:compiling|building)\b
    |build\ failed\b|tar:\ (?:child\ returned|error\ is\ not|exiting\ with)|failed\ to\ build\ \S{1,100}$""",
    re.VERBOSE | re.IGNORECASE,
)
"""What only says that something before it failed."""

_TRANSLATED = (
    r"(?:Fehler|[Ee]rreur|[Ee]rro|[Ee]rrore|[Ff]el|[Hh]ata|[Cc]hyba|[Bb]łąd|[Оо]шибка|[Пп]омилка)(?: fatale?)? ?:"
    r"|错误|錯誤|エラー|오류|\berror fatal:"
)
_NO_SUCH = (
    "nicht gefunden|Keine Berechtigung|Fehlerstatus|Aucun fichier|introuvable|non accordée|code d'échec|No existe"
    "|Нет такого|не найден"
)
TRANSLATED = re.compile(
    rf"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{{2}}|{_NO_SUCH}|: \*\*\* (?!\[).{{1,300}}(?<!Stop)\.$|"
    rf"{_TRANSLATED}|\*\*\* .{{0,300}}[^\x00-\x7f]"
    r"|\*\*\* \[.{1,600}\] (?!Error \d|[A-Z][a-z]{1,20}(?: [a-z]{1,20}){0,3}(?: \(core dumped\))?$)"
)
"""Words for an error, and letters, in the languages into which gcc, binutils, make and CMake are translated."""

_ERROR = re.compile(
    rf"""\b(?i:error)\ ?(?:\[[\w-]{{1,40}}\]|[A-Z]{{0,6}}\d{{1,6}})?\s?[:!(]|\berrors?:$
    |^(?:\w{{1,40}}\s)?(?:ERROR|Error|error)\b
    |^[A-Za-z_][\w.]{{0,120}}(?:Error|Exception|Exit)\b(?::|$)|\b(?i:fatal)(?:\ error)?\s?:|\bFATAL\b
    |\bpanicked\ at\b|^panic:\ |^FAIL(?:ED|URE)?\b|\bAborted\b|[Ss]egmentation\ fault|[Aa]ssertion\ .{{0,200}}fail
    |\b(?:compilation|build|[Ss]yntax)\ errors?\b|^\S{{0,200}}:\ \*\*\*\ |{_TRANSLATED.replace(" ", "[ ]")}""",
    re.VERBOSE,
)
"""Words that only errors have."""

_MAYBE = re.compile(
    r"""^(?:[\w.-]{1,40}:\ )?[\w./+@~-]{1,300}[:(]\d{1,7}(?:[:.,-]\d{1,6}){0,3}\)?:\ \S
    |\b(?:[Cc]annot|[Cc]an't|[Cc]ould\ not|[Uu]nable\ to|[Nn]ot\ found|[Nn]o\ such|not\ exist|[Dd]enied|[Rr]efused
    |[Ii]nvalid|[Uu]nknown|[Uu]nrecognized|[Uu]nsupported|[Uu]nresolved|[Uu]ndefined|is\ missing|[Uu]sage:
    |[Ff]ailed|FAIL|FAILED|[Ff]atal|[Aa]bort|[Ee]xception|[Pp]anic)\b""",
    re.VERBOSE,
)
"""Words that also appear where nothing failed, and what any tool prints about a line of a file."""

NONE, MAYBE, ERROR, STOP, FAILED = range(5)


_NOISE = re.compile(
    rb"\b[Ww]arning\b|-- (?:Check|Detecting|Could NOT)|\bchecking (?:for|if|whether)"
    rb"|(?<!ERROR )\[ {0,2}\d{1,7}(?:/\d{1,7}\]|%\]) "
)
"""Warnings, questions of a configure script, and a scheduler's own lines of steps; docker writes ERROR before those."""

_CMAKE_PROBE = re.compile(rb"-- (?:Looking for|Performing Test) ")


def is_noise(raw: bytes, *, for_rules: bool) -> bool:
    """Return whether a line is no error, for rules or at all: a quick test for what large logs are full of."""
    return _CMAKE_PROBE.search(raw) is not None or not (for_rules or b"error: " in raw or _NOISE.search(raw) is None)


def kind_of(text: str) -> int:
    """Return how much a line looks like an error.

    STOP: it says that something before it failed; FAILED: ninja shows a step that failed.
    """
    if text.startswith("FAILED: "):
        return FAILED
    if text.endswith("(ignored)") or _RUNNER.match(text):
        return NONE
    if _CONFIGURE_STOPPED.search(text):
        return ERROR
    if _STOPPED.match(text):
        return STOP
    if _PROBE.match(text):
        return NONE
    if _ERROR.search(text):
        return ERROR
    return MAYBE if _MAYBE.search(text) else NONE


@dataclass(frozen=True, slots=True)
class _Place:
    text: str
    step: int
    near: Neighbours

    @property
    def line(self) -> int:
        return self.near.line


class Likely:
    """Keeps the place in a log that most likely shows what failed, for failures that no rule knows."""

    def __init__(self) -> None:
        self._first: dict[int, _Place] = {}
        self._in_failed: dict[int, _Place] = {}
        self._translated = False

    @property
    def is_sure(self) -> bool:
        """Whether no later line can be likelier."""
        return ERROR in self._in_failed

    def wants(self, kind: int, step: int, line: int) -> bool:
        """Return whether a line of this kind says more than those before it."""
        if kind == NONE:
            return False
        if self._is_of_failed(step) and kind not in self._in_failed:
            return True
        return self._is_later_maybe(step, line) if kind == MAYBE else kind not in self._first

    def _is_of_failed(self, step: int) -> bool:
        failed = self._first.get(FAILED)
        return failed is not None and failed.step == step

    def _is_later_maybe(self, step: int, line: int) -> bool:
        maybe = self._first.get(MAYBE)
        return STOP not in self._first and (maybe is None or maybe.step != step or line - maybe.line > CLUSTER)

    def note(self, kind: int, text: str, step: int, near: Neighbours) -> None:
        """Store a line of this kind: the first one; but of lines that may be errors the first one of the last step."""
        place = _Place(text, step, near)
        self._translated = self._translated or TRANSLATED.search(text) is not None
        if self._is_of_failed(step):
            self._in_failed.setdefault(kind, place)
        if kind != MAYBE:
            self._first.setdefault(kind, place)
        elif self._is_later_maybe(step, place.line):
            self._first[MAYBE] = place

    @property
    def begins_late(self) -> bool:
        """Whether ninja has stopped, but no line says why."""
        stop = self._first.get(STOP)
        return stop is not None and stop.text.startswith("ninja:") and self._first.keys() <= {STOP, MAYBE}

    @property
    def is_of_failure(self) -> bool:
        """Whether any line certainly says that something failed."""
        return not self._first.keys() <= {MAYBE}

    @property
    def is_consequence(self) -> bool:
        """Whether the likely place only says that something before it failed."""
        return self._place() is self._first.get(STOP)

    @property
    def is_error(self) -> bool:
        """Whether the likely place has words that only errors have."""
        return self._place() in (self._first.get(ERROR), self._in_failed.get(ERROR)) and self._place() is not None

    def cause(self) -> Cause | None:
        """Return the likely place as a cause; None if nothing looks like an error."""
        place = self._place()
        if place is None:
            return None
        title, why, remedy = LATE if self.begins_late and place is self._first[STOP] else UNKNOWN
        if self._translated:
            remedy = f"{remedy} {TRANSLATED_REMEDY}"
        around = _of_step(place.near.around(ABOVE, BELOW), place.line)
        rule = LOG_BEGINS_LATE if title == LATE[0] else UNKNOWN_FAILURE
        return _cause(rule, (title, why, remedy), place.line, place.text, around)

    def _place(self) -> _Place | None:
        first, inside = self._first, self._in_failed
        if FAILED in first:
            return inside.get(ERROR) or inside.get(MAYBE) or first[FAILED]
        maybe, stop = first.get(MAYBE), first.get(STOP)
        if ERROR in first:
            return first[ERROR]
        if maybe is not None and stop is not None and not 0 < stop.line - maybe.line <= CLUSTER:
            return stop
        return maybe or stop


def _of_step(around: Around, line: int) -> Around:
    """Return the lines up to the next step: later ones belong to another command."""
    behind = line - around.first + 1
    for at, text in enumerate(around.lines[behind:], behind):
        if _NEXT_STEP.match(unwrapped(text.encode())):
            return replace(around, lines=around.lines[:at])
    return around


def is_of_runner(text: str) -> bool:
    """Return whether this is printed by a CI service and not by a build tool."""
    return _RUNNER.match(text) is not None


def unknown(near: Neighbours, text: str) -> Cause:
    """Return a line as the likely place of a failure that no rule knows."""
    return _cause(UNKNOWN_FAILURE, UNKNOWN, near.line, text, _of_step(near.around(ABOVE, BELOW), near.line))


def last_lines(near: Neighbours, text: str) -> Cause:
    """Return the end of a log as a guess."""
    title, why, remedy = LAST_LINES
    remedy = f"{remedy} {TRANSLATED_REMEDY}" if TRANSLATED.search(text) is not None else remedy
    return _cause(UNKNOWN_FAILURE, (title, why, remedy), near.line, text, near.around(ABOVE, 0))


def unfinished(near: Neighbours, text: str, at: str) -> Cause:
    """Return the cause that a log ends in the middle of a build, at its last line; `at` is how far the build was."""
    title, why, remedy = UNFINISHED
    return _cause(LOG_UNFINISHED, (title.format(at), why, remedy), near.line, text, near.around(ABOVE, 0))


def _cause(rule: str, words: tuple[str, str, str], line: int, text: str, around: Around) -> Cause:
    return Cause(rule, *words, line, text=text, context=around.lines, context_line=around.first)


UNKNOWN = (
    "No rule knows this failure; the first line that looks like an error",
    "This line is a guess, based on words such as error and failed. The lines around it may say more.",
    "Look at the lines around it. If that is not it, look further up: the first error is the cause of the others.",
)
LATE = (
    "The log begins after the failure",
    "ninja reports that it stopped; what failed is above the first line of this log.",
    "Look at a longer log, or run the same command again: ninja starts with what failed.",
)
LAST_LINES = (
    "No rule knows this failure, and nothing looks like an error; its last lines",
    "The log has none of the words that errors of most tools have in common.",
    "Look at these lines. If they say nothing, build again with one job at a time (-j 1): then the failure comes last.",
)
UNFINISHED = (
    "The log ends while the build is still running{}",
    (
        "Nothing in it has failed, and the last step is not the build's last. The log was cut or copied too early, the "
        "build still runs, or it was ended from outside: with its terminal or CI machine, or by a time limit."
    ),
    (
        "Get the rest of the log. If there is none, look at the exit status (137 is SIGKILL, mostly for memory; 143 is "
        "SIGTERM), at dmesg | grep -i oom, and at the limits of time and memory of the CI or batch job. The same "
        "command continues where it stopped; stoker run -- COMMAND keeps a build alive when its terminal closes."
    ),
)
TRANSLATED_REMEDY = "Build again with LC_ALL=C: the messages are translated here, and the rules know the English ones."

_WELL = re.compile(
    r"""\[(\d{1,7})/\1\]\ |\[100%\]\ |100%\ tests\ passed|Successfully\ (?:built|installed|tagged|created)\b
    |ninja:\ no\ work\ to\ do\.$|\S{0,100}make(?:\[1\])?:\ (?:Nothing\ to\ be\ done\ for|.{1,200}\ is\ up\ to\ date\.$)
    |Finished\ .{0,100}\btarget\(s\)|BUILD\ SUCCESS|.{0,40}Build\ completed\ successfully|.{0,40}\bbuild\ succeeded\b
    |--\ (?:Installing|Up-to-date):\ |Job\ succeeded|Finished:\ SUCCESS""",
    re.VERBOSE,
)
"""Last words of ninja, CMake's make, ctest, pip, docker, make, cargo, gradle, bazel, GitLab and Jenkins on success."""

_BY_PIP = "Successfully installed"
"""If it is indented, it comes from the pip that installs what a build needs, before that build begins."""

_LAST_LINES = 15
"""A few lines may follow: warnings, times, the cleanup of a CI service."""


_PROGRESS = re.compile(r"\[ {0,2}(?:(\d{1,7})/(\d{1,7})|(\d{1,3})%)\](?: |$)")
_STILL_RUNS = re.compile(r".{0,200}: still running\.\.\.$")
"""The counters of ninja and of CMake's make, and what pip prints about a wheel that takes long."""

_END_LINES = 60
"""Lines that a step may print at a log's end, mostly warnings, before the next one begins."""


def progress_at_end(lines: list[str]) -> str | None:
    """Return how far a build was if its log ends while it is running, as the end of a sentence; None otherwise.

    `lines` are the last ones as their tools wrote them.
    """
    for line in reversed(lines[-_END_LINES:]):
        text = line.strip()
        if is_of_runner(text) or kind_of(text) > MAYBE:
            return None
        said = _PROGRESS.match(text)
        if said is not None:
            return _running(said)
        if _STILL_RUNS.match(text):
            return ""
    return None


def _running(said: re.Match[str]) -> str | None:
    if said[3] is not None:
        return f", at {said[3]} %" if int(said[3]) < 100 else None
    return f", at step {said[1]} of {said[2]}" if int(said[1]) < int(said[2]) else None


def ended_well(lines: list[str]) -> int:
    """Return how many lines before its end a log says that all went well; 0 if it does not, or an error follows.

    `lines` are the last ones as their tools wrote them.
    """
    for back, line in enumerate(reversed(lines[-_LAST_LINES:]), 1):
        text = line.strip()
        if _WELL.match(text) and not (line[:1].isspace() and text.startswith(_BY_PIP)):
            return back
        if kind_of(line.strip()) > MAYBE:
            return 0
    return 0
