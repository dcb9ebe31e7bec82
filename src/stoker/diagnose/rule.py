"""What a failure rule is, and the shipped ones read from their YAML files. Unaware of logs.

A rule is checked when it is loaded, because a pattern that backtracks without bound would let one hostile line of a
build's output stop `stoker diagnose`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from stoker.config.config_error import ConfigError
from stoker.config.strict_yaml import Section, load
from stoker.diagnose.installers import TOOLS
from stoker.diagnose.line_names import EACH, KINDS, OWN, PLACE
from stoker.diagnose.log_values import UNKNOWN
from stoker.diagnose.provider import LOOKUPS, MESSAGE
from stoker.model.diagnosis import ACTION_KINDS

RANKS = ("specific", "table", "general", "last")
"""About one step a specific rule stands before one that looks a name up in tables, that before a general one (a missing
header, a killed step), and all before one that knows no more than that something is wrong (a compile error)."""

ACTIONS = ("none", *ACTION_KINDS)
"""What may be done about it without harm and without a person's judgement; named here, done elsewhere."""

_KEYS = (
    *("title", "why", "remedy", "rank", "general", "beside", "decides", "survivable", "follows", "action", "variable"),
    *("warning", "provided", "wordless", "each", "echoes", "continues", *TOOLS, "patterns", "examples", "source"),
)
_NEEDED = ("title", "why", "remedy", "patterns", "examples", "source")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,63}=[A-Za-z0-9_./+:,-]{1,64}")
"""NAME=VALUE for `set-variable`: harmless in any shell, and nothing of a log in it."""

_NEVER_SET = ("PATH", "HOME", "SHELL", "PYTHON", "LD_", "DYLD_", "GIT_", "BASH_", "STOKER_")
"""Beginnings of names that say which programs and libraries are run: no rule may touch them."""

ANY_RULE = "any"
"""In place of a rule's name in `echoes`."""

LINE_END = " ⏎"
"""In an example of several lines: the next one begins."""

_ID = re.compile(r"[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+")

MIN_WORDS = 4
"""Bytes that the fixed words of a pattern have at least: shorter ones would be found in every line."""

_ESCAPED = re.compile(r"\\.")
_CLASS = re.compile(r"\[\^?+\]?+[^\]]*+\]")
_POSSESSIVE = re.compile(r"(?:[*+?]|\{\d*+,\d*+\})\+")
_UNBOUNDED = re.compile(r"[*+]|\{\d*+,\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """`words` stand in every line that it matches, so that most lines never meet the regular expression."""

    words: bytes
    regex: re.Pattern[str]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A known failure: how it is recognised, why it happens, and what to do about it. Equal to itself alone.

    `why` and `remedy` may hold names of the line, `{header}`, and values of the whole log, `{cuda_version}`
    (log_values.py). `rank` is an index of RANKS. `survivable`: builds go on after it, so any other failure that comes
    later stands before it. `warning`: it counts in a warning too. `examples` are real lines that it
    must find; `source` says where they are from. `variable` is NAME=VALUE where the action is to set it, else empty.
    `general`: the line alone does not decide the cause, so it is shown as the likely place.
    `beside` names such rules: this one is evidence, which decides the cause of a match of theirs, or says nothing.
    `decides` names others too: this one stands for itself, and takes the place of a match of theirs.
    `follows`: it mostly follows from an earlier failure, so an unknown error before it is likelier the cause.
    `provided` is the face by which a name of the line is looked up (provider.py), and its place in `title`, `why` and
    `remedy` filled: such a rule finds nothing where the tables do not know the name. Empty for all others.
    `wordless`: it finds a failed step of ninja's only where that step has printed nothing.
    `remedies` are those for logs of a tool whose way is another, by its name.
    `each` is what `{each}` in `remedy` repeats for every name of a kind that the rule has found in the log.
    `echoes` names rules whose failure this one only says again: behind one of them it is left out. ANY_RULE means all.
    `continues`: the message goes on in the next line, where the expression may go on too.
    """

    id: str
    title: str
    why: str
    remedy: str
    patterns: tuple[Pattern, ...]
    examples: tuple[str, ...]
    source: str
    rank: int = 0
    warning: bool = False
    action: str = "none"
    variable: str = ""
    survivable: bool = False
    general: bool = False
    beside: tuple[str, ...] = ()
    decides: tuple[str, ...] = ()
    follows: bool = False
    provided: str = ""
    wordless: bool = False
    remedies: Mapping[str, str] = field(default_factory=dict)
    each: str = ""
    echoes: tuple[str, ...] = ()
    continues: bool = False


@functools.cache
def shipped_rules() -> tuple[Rule, ...]:
    """Return the shipped rules, in the order of their files' names. Raises ConfigError for a faulty one."""
    with resources.as_file(resources.files("stoker.diagnose.rules")) as folder:
        return tuple(rule for path in sorted(folder.glob("*.yaml")) for rule in load_rules(path))


def load_rules(path: Path) -> list[Rule]:
    """Return the rules of one file. Raises its first fault as a ConfigError."""
    top = load(path)
    rules = [_rule(name, section) for name, section in top.sections()]
    if top.errors:
        raise min(top.errors, key=lambda err: err.line)
    return rules


def _rule(name: str, section: Section) -> Rule:
    section.allow(_KEYS)
    for key in _NEEDED:
        if key not in section:
            section.errors.append(ConfigError(section.path, section.line, f"{name!r} has no {key!r}"))
    if not _ID.fullmatch(name):
        section.errors.append(ConfigError(section.path, section.line, f"{name!r}: names are like 'no-space-left'"))
    patterns = _patterns(section.section("patterns"))
    provided = section.choice("provided", ("", *LOOKUPS), "")
    return Rule(
        id=name,
        title=_with_names(section, "title", patterns),
        why=_with_names(section, "why", patterns),
        remedy=_with_names(section, "remedy", patterns),
        patterns=patterns,
        examples=tuple(line.replace(LINE_END, "\n") for line in section.text("examples").splitlines() if line.strip()),
        source=_prose(section, "source"),
        rank=RANKS.index(section.choice("rank", RANKS, "table" if provided else RANKS[0])),
        survivable=section.flag("survivable", default=False),
        warning=section.flag("warning", default=False),
        action=section.choice("action", ACTIONS, "none"),
        variable=_variable(section),
        general=section.flag("general", default=False),
        beside=section.words("beside"),
        decides=section.words("decides"),
        follows=section.flag("follows", default=False),
        provided=provided,
        wordless=section.flag("wordless", default=False),
        remedies={tool: _with_names(section, tool, patterns) for tool in TOOLS if tool in section},
        each=_with_names(section, "each", patterns) if "each" in section else "",
        echoes=section.words("echoes"),
        continues=section.flag("continues", default=False),
    )


def _variable(section: Section) -> str:
    """Return what `set-variable` sets; a fault where it is missing, is no use, or may do harm."""
    text, wanted = section.text("variable"), section.text("action") == "set-variable"
    if wanted != ("variable" in section):
        fault = "'variable: NAME=VALUE' goes with 'action: set-variable', and that with it"
        section.fail("variable" if "variable" in section else "action", fault)
    elif wanted and (not _VARIABLE.fullmatch(text) or text.startswith(_NEVER_SET)):
        section.fail("variable", f"{text!r} is not set by a rule; write NAME=VALUE of letters, digits and _./+:,-")
    return text


def _prose(section: Section, key: str) -> str:
    """Return a paragraph, however its lines are broken in the file."""
    return " ".join(section.text(key).split())


def _with_names(section: Section, key: str, patterns: tuple[Pattern, ...]) -> str:
    """Return a paragraph; a fault where it holds the place of a name that no pattern finds."""
    text = _prose(section, key)
    for kind in PLACE.findall(text):
        if kind == EACH:
            if "each" not in section:
                section.fail(key, "{each} stands for what 'each' repeats")
        elif kind in OWN:
            if not section.text("provided"):
                section.fail(key, f"{{{kind}}} stands for what the tables say of a name: 'provided: headers'")
        elif patterns and kind not in UNKNOWN and not any(kind in pattern.regex.groupindex for pattern in patterns):
            section.fail(key, f"{{{kind}}} stands for a name that a pattern finds: (?P<{kind}>...)")
    return text


def _patterns(section: Section) -> tuple[Pattern, ...]:
    patterns = []
    for words, pattern in section.scalars():
        fault = _fault(words, pattern)
        if fault:
            section.fail(words, fault)
        else:
            patterns.append(Pattern(words.encode(), re.compile(pattern)))
    return tuple(patterns)


def _fault(words: str, pattern: str) -> str:
    """Return what makes a pattern unusable, or an empty string."""
    if len(words) < MIN_WORDS:
        return f"{words!r}: the words before the colon stand in every such line, {MIN_WORDS} characters or more"
    if _UNBOUNDED.search(_POSSESSIVE.sub("", _CLASS.sub("c", _ESCAPED.sub("e", pattern)))):
        return f"{pattern!r} repeats without bound; write {{0,200}} or a possessive *+"
    try:
        groups = re.compile(pattern).groupindex
    except re.error as err:
        return f"{pattern!r}: {err}"
    unknown = groups.keys() - KINDS.keys() - {MESSAGE}
    return f"{pattern!r}: a group is called after what it finds: {', '.join(KINDS)}" if unknown else ""
