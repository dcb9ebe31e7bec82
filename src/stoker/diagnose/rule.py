"""Defines what a failure rule is, and reads the shipped rules from their YAML files. Knows nothing of logs.

A person's rule is checked when it is loaded, because a pattern that backtracks without bound would let one hostile line
of a build's output stop `stoker diagnose`. Tests check the shipped rules: to compile all of their expressions takes a
second, and a log needs some dozens of them.
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
from stoker.diagnose.near_names import NEAR_KINDS
from stoker.diagnose.provider import LOOKUPS, MESSAGE
from stoker.model.diagnosis import ACTION_KINDS

RANKS = ("specific", "table", "general", "last")
"""The order of causes within a step: a specific rule comes before one that looks a name up in tables or knows only the
option of the compiler's message, that one before a general one (a missing header, a killed step), and all of them
before one that only knows that something is wrong (a compile error)."""

ACTIONS = ("none", *ACTION_KINDS)
"""What may be done about a failure safely and without a person's judgement; only named here, carried out elsewhere."""

_KEYS = (
    *("title", "why", "remedy", "rank", "general", "beside", "decides", "survivable", "follows", "action", "variable"),
    *(
        "plain",
        "warning",
        "provided",
        "wordless",
        "each",
        "echoes",
        "continues",
        "repeated",
        "consequence",
        "same_path",
        "same_package",
        "same_function",
        "needs",
        "throughout",
        "governed",
        *TOOLS,
        "patterns",
        "examples",
        "source",
    ),
)
_NEEDED = ("title", "why", "remedy", "patterns", "examples", "source")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,63}=[A-Za-z0-9_./+:,-]{1,64}")
"""NAME=VALUE for `set-variable`: harmless in any shell, and independent of the log."""

_NEVER_SET = ("PATH", "HOME", "SHELL", "PYTHON", "LD_", "DYLD_", "GIT_", "BASH_", "STOKER_")
"""Prefixes of variables that decide which programs and libraries are run: no rule may set them."""

ANY_RULE = "any"
"""Used instead of a rule's name in `echoes`."""

LINE_END = " ⏎"
"""In an example of several lines: the next line begins here."""

_ID = re.compile(r"[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+")

MIN_WORDS = 4
"""The least bytes of a pattern's fixed words: shorter ones would be found in every line."""

_ESCAPED = re.compile(r"\\.")
_CLASS = re.compile(r"\[\^?+\]?+[^\]]*+\]")
_POSSESSIVE = re.compile(r"(?:[*+?]|\{\d*+,\d*+\})\+")
_UNBOUNDED = re.compile(r"[*+]|\{\d*+,\}")


@dataclass(frozen=True)
class Pattern:
    """`words` are in every line that it matches, so that the regular expression is not tried on most lines."""

    words: bytes
    expression: str

    @functools.cached_property
    def regex(self) -> re.Pattern[str]:
        """The expression, compiled when a line first holds the words."""
        return re.compile(self.expression)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A known failure: how it is recognised, why it happens, and what to do about it. Compares by identity.

    `title`, `why` and `remedy` may contain names of the line, `{header}`, and values of the whole log, `{cuda_version}`
    (log_values.py).
    """

    id: str
    title: str
    why: str
    remedy: str
    patterns: tuple[Pattern, ...]
    examples: tuple[str, ...]
    """Real lines that it must find."""
    source: str
    """Where the examples come from."""
    rank: int = 0
    """An index of RANKS."""
    warning: bool = False
    """Whether it also counts in a warning."""
    action: str = "none"
    variable: str = ""
    """NAME=VALUE if the action is to set it, otherwise empty."""
    survivable: bool = False
    """Whether builds continue after it, so that any later failure comes before it."""
    general: bool = False
    """Whether the line alone does not decide the cause, so that it is shown as the likely place."""
    plain: tuple[str, ...] = ()
    """Words of lines that leave no other cause open, although the rule is general."""
    beside: tuple[str, ...] = ()
    """General rules for which this one is evidence: it decides the cause of a match of theirs, and is dropped without
    one. Its texts may name what that match names."""
    decides: tuple[str, ...] = ()
    """Rules whose match it replaces if it is near. Unlike with `beside`, it also counts without one."""
    follows: bool = False
    """Whether it usually follows from an earlier failure, which comes before it; so does an unknown error."""
    consequence: bool = False
    """Whether it is printed beside other failures wherever these stand: each of them comes before it. It `follows`."""
    same_path: bool = False
    """Whether it is evidence only beside a match whose file is, or lies below, the `{path}` that it found itself."""
    same_package: bool = False
    """Whether it is evidence only beside a match whose package is the `{package}` that it found itself, or CMake's
    own."""
    same_function: bool = False
    """Whether it is evidence only beside a match whose line has the `{symbol}` that it found itself with parameters."""
    needs: tuple[str, ...] = ()
    """Names from the lines above (near_names.py) without which it finds nothing."""
    throughout: bool = False
    """Whether it is evidence only if it found every line of what it decides, two at least."""
    provided: str = ""
    """The lookup for a name of the line (provider.py), which also fills places in `title`, `why` and `remedy`. Such a
    rule finds nothing if the tables do not have the name. Empty for all others."""
    wordless: bool = False
    """Whether it finds a failed step of ninja only if that step printed nothing."""
    remedies: Mapping[str, str] = field(default_factory=dict)
    """Remedies for logs of tools that do it differently, by the tool's name."""
    governed: str = ""
    """The remedy in a build that stoker runs, where `remedy` names stoker; empty for all others."""
    each: str = ""
    """What `{each}` in `remedy` repeats for every name of a kind that the rule found in the log."""
    echoes: tuple[str, ...] = ()
    """Rules whose failure it only repeats: after a match of one of them it is dropped. ANY_RULE means all."""
    continues: bool = False
    """Whether the message, and its expression, may continue in the next line."""
    repeated: bool = False
    """Whether it finds only what an earlier line said in the same words."""
    asks_neighbours: bool = False
    """Whether its words need names from the lines above (near_names.py)."""


@functools.cache
def shipped_rules() -> tuple[Rule, ...]:
    """Return the shipped rules, ordered by the names of their files."""
    with resources.as_file(resources.files("stoker.diagnose.rules")) as folder:
        return tuple(
            rule for path in sorted(folder.glob("*.yaml")) for rule in load_rules(path, patterns_are_good=True)
        )


def load_rules(path: Path, *, patterns_are_good: bool = False) -> list[Rule]:
    """Return the rules of one file. Raises its first fault as a ConfigError.

    Patterns that are good are not checked, nor whether they find the names that the words of a rule have places for.
    """
    top = load(path)
    rules = [_rule(name, section, patterns_are_good=patterns_are_good) for name, section in top.sections()]
    if top.errors:
        raise min(top.errors, key=lambda err: err.line)
    return rules


def _rule(name: str, section: Section, *, patterns_are_good: bool) -> Rule:
    section.allow(_KEYS)
    for key in _NEEDED:
        if key not in section:
            section.errors.append(ConfigError(section.path, section.line, f"{name!r} has no {key!r}"))
    if not _ID.fullmatch(name):
        section.errors.append(ConfigError(section.path, section.line, f"{name!r}: names are like 'no-space-left'"))
    patterns = _patterns(section.section("patterns"), are_good=patterns_are_good)
    checked = () if patterns_are_good else patterns
    provided = section.choice("provided", ("", *LOOKUPS), "")
    words = " ".join(section.text(key) for key in ("title", "why", "remedy", *TOOLS))
    return Rule(
        id=name,
        title=_with_names(section, "title", checked),
        why=_with_names(section, "why", checked),
        remedy=_with_names(section, "remedy", checked),
        patterns=patterns,
        examples=tuple(line.replace(LINE_END, "\n") for line in section.text("examples").splitlines() if line.strip()),
        source=_prose(section, "source"),
        rank=RANKS.index(section.choice("rank", RANKS, "table" if provided else RANKS[0])),
        survivable=section.flag("survivable", default=False),
        warning=section.flag("warning", default=False),
        action=section.choice("action", ACTIONS, "none"),
        variable=_variable(section),
        general=section.flag("general", default=False),
        plain=section.words("plain"),
        beside=section.words("beside"),
        decides=section.words("decides"),
        follows=section.flag("follows", default=False) or section.flag("consequence", default=False),
        consequence=section.flag("consequence", default=False),
        same_path=section.flag("same_path", default=False),
        same_package=section.flag("same_package", default=False),
        same_function=section.flag("same_function", default=False),
        needs=section.words("needs"),
        throughout=section.flag("throughout", default=False),
        provided=provided,
        wordless=section.flag("wordless", default=False),
        remedies={tool: _with_names(section, tool, checked) for tool in TOOLS if tool in section},
        governed=_prose(section, "governed"),
        each=_with_names(section, "each", checked) if "each" in section else "",
        echoes=section.words("echoes"),
        continues=section.flag("continues", default=False),
        repeated=section.flag("repeated", default=False),
        asks_neighbours=not set(PLACE.findall(words)).isdisjoint(NEAR_KINDS),
    )


def _variable(section: Section) -> str:
    """Return what `set-variable` sets; report a fault if it is missing, useless or harmful."""
    text, wanted = section.text("variable"), section.text("action") == "set-variable"
    if wanted != ("variable" in section):
        fault = "'variable: NAME=VALUE' and 'action: set-variable' require each other"
        section.fail("variable" if "variable" in section else "action", fault)
    elif wanted and (not _VARIABLE.fullmatch(text) or text.startswith(_NEVER_SET)):
        section.fail("variable", f"a rule may not set {text!r}; write NAME=VALUE of letters, digits and _./+:,-")
    return text


def _prose(section: Section, key: str) -> str:
    """Return a paragraph without the line breaks of the file."""
    return " ".join(section.text(key).split())


def _with_names(section: Section, key: str, patterns: tuple[Pattern, ...]) -> str:
    """Return a paragraph; report a fault if it has a place for a name that none of these patterns finds."""
    text = _prose(section, key)
    for kind in PLACE.findall(text):
        if kind == EACH:
            if "each" not in section:
                section.fail(key, "{each} stands for what 'each' repeats")
        elif kind in OWN:
            if not section.text("provided") and "beside" not in section:
                section.fail(key, f"{{{kind}}} stands for what the tables say of a name: 'provided: headers'")
        elif "beside" in section or kind in UNKNOWN or kind in NEAR_KINDS:
            continue  # the match that it decides has the names, or the log
        elif patterns and not any(kind in pattern.regex.groupindex for pattern in patterns):
            section.fail(key, f"{{{kind}}} stands for a name that a pattern finds: (?P<{kind}>...)")
    return text


def _patterns(section: Section, *, are_good: bool) -> tuple[Pattern, ...]:
    patterns = []
    for words, expression in section.scalars():
        fault = "" if are_good else _fault(words, expression)
        if fault:
            section.fail(words, fault)
        else:
            patterns.append(Pattern(words.encode(), expression))
    return tuple(patterns)


def _fault(words: str, pattern: str) -> str:
    """Return what makes a pattern unusable, or an empty string."""
    if len(words) < MIN_WORDS:
        return f"{words!r}: the words before the colon must be in every such line, {MIN_WORDS} characters or more"
    if _UNBOUNDED.search(_POSSESSIVE.sub("", _CLASS.sub("c", _ESCAPED.sub("e", pattern)))):
        return f"{pattern!r} repeats without bound; write {{0,200}} or a possessive *+"
    try:
        groups = re.compile(pattern).groupindex
    except re.error as err:
        return f"{pattern!r}: {err}"
    unknown = groups.keys() - KINDS.keys() - {MESSAGE}
    return f"{pattern!r}: a group must be named after what it finds: {', '.join(KINDS)}" if unknown else ""
