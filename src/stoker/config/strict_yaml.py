"""YAML as people write settings in it, read strictly: every fault is told with its file, its line and a remedy.

Mappings of scalars and mappings only, no anchors, no tags, bounded in size and depth. Unaware of what the keys mean.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml

from stoker.config.errors import ConfigError, did_you_mean

MAX_FILE_BYTES = 256 * 1024
"""A settings file of a thousand commented keys has 60 KiB."""

MAX_DEPTH = 8
"""Levels of nesting; our files use two."""

MAX_NODES = 4000

_YES = ("yes", "true", "on")
_NO = ("no", "false", "off")


class Section:
    """A mapping of a file. Getters note a fault in `errors` and return the default, so that all faults are told."""

    def __init__(self, path: Path, line: int, errors: list[ConfigError]) -> None:
        self.path = path
        self.line = line
        self.errors = errors
        self._scalars: dict[str, str] = {}
        self._sections: dict[str, Section] = {}
        self._lines: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._lines

    def line_of(self, key: str) -> int:
        """The line of a key; the section's own where it is absent."""
        return self._lines.get(key, self.line)

    def fail(self, key: str, message: str) -> None:
        """Note a fault at a key's line."""
        self.errors.append(ConfigError(self.path, self.line_of(key), message))

    def allow(self, known: Collection[str], what: str = "key") -> None:
        """Note a fault for every key that is not `known`."""
        for key in self._lines:
            if key not in known:
                self.fail(key, f"unknown {what} {key!r}{did_you_mean(key, known)}")

    def text(self, key: str, default: str = "") -> str:
        """A scalar just as it is written, whatever YAML would make of it (`no`, `1e3`)."""
        if key in self._sections:
            self.fail(key, f"{key!r} is a single value, not a mapping")
        return self._scalars.get(key, default)

    def scalars(self) -> Iterator[tuple[str, str]]:
        """Every key with a single value; notes a fault for every mapping."""
        for key in self._lines:
            if key in self._sections:
                self.fail(key, f"{key!r} is a single value, not a mapping")
            elif key in self._scalars:
                yield key, self._scalars[key]

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Every key with a mapping; notes a fault for every single value."""
        for key in self._lines:
            if key in self._scalars:
                self.fail(key, f"{key!r} is a mapping: indent its keys below it")
            elif key in self._sections:
                yield key, self._sections[key]

    def choice(self, key: str, known: Collection[str], default: str) -> str:
        """One of a few words."""
        value = self.text(key, default)
        if value in known:
            return value
        self.fail(key, f"{key!r} cannot be {value!r}{did_you_mean(value, known)}")
        return default

    def flag(self, key: str, *, default: bool) -> bool:
        """yes or no, and YAML's other words for them."""
        value = self.text(key, "yes" if default else "no").lower()
        if value not in (*_YES, *_NO):
            self.fail(key, f"{key!r} is yes or no, not {value!r}")
            return default
        return value in _YES

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        text = self.text(key, str(default))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            self.fail(key, f"{key!r} is a number from {low:g} to {high:g}, not {text!r}")
            return default
        return value

    def section(self, key: str) -> Section:
        """A mapping below a key; an empty one where the key is absent."""
        if key in self._scalars:
            self.fail(key, f"{key!r} is a mapping: indent its keys below it")
        return self._sections.get(key) or Section(self.path, self.line_of(key), self.errors)


def load(path: Path) -> Section:
    """The top mapping of a file; raises ConfigError when the file cannot be read as one at all."""
    errors: list[ConfigError] = []
    text = _read(path)
    root = _compose(path, text)
    if root is None:
        return Section(path, 0, errors)
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(path, _line(root), "this is not a mapping; write lines like 'key: value'")
    return _section(path, root, errors)


def _read(path: Path) -> str:
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(path, 0, "this is not a regular file")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as err:
        raise ConfigError(path, 0, f"cannot be read: {err.strerror}") from err
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(path, 0, f"is larger than {MAX_FILE_BYTES // 1024} KiB, too large for settings")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise ConfigError(path, data.count(b"\n", 0, err.start) + 1, "this is not UTF-8 text") from err


def _compose(path: Path, text: str) -> yaml.Node | None:
    try:
        _check_bounds(path, text)
        node: yaml.Node | None = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        message = " ".join(part for part in (err.context, err.problem) if part)
        raise ConfigError(path, mark.line + 1 if mark else 0, f"not valid YAML: {message}") from err
    except yaml.reader.ReaderError as err:
        line = text.count("\n", 0, err.position) + 1
        raise ConfigError(path, line, f"a character that YAML forbids: U+{ord(text[err.position]):04X}") from err
    return node


def _check_bounds(path: Path, text: str) -> None:
    """Refuse what could grow when it is composed: aliases, deep nesting, masses of nodes."""
    depth = nodes = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ConfigError(
                path, line, "anchors and aliases (&, *) are not used here; a value that starts so needs quotes"
            )
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise ConfigError(path, line, "nested too deeply, or too many values, for settings")


def _section(path: Path, node: yaml.MappingNode, errors: list[ConfigError]) -> Section:
    section = Section(path, _line(node), errors)
    for key_node, value_node in node.value:
        line = _line(key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            errors.append(ConfigError(path, line, "a key is a single word"))
            continue
        key = str(key_node.value)
        if key in section:
            errors.append(ConfigError(path, line, f"{key!r} is here already, in line {section.line_of(key)}"))
            continue
        _fill(section, key, line, value_node)
    return section


def _fill(section: Section, key: str, line: int, node: yaml.Node) -> None:
    section._lines[key] = line  # noqa: SLF001  (its builder)
    fault = ""
    if isinstance(node, yaml.MappingNode):
        section._sections[key] = _section(section.path, node, section.errors)  # noqa: SLF001
    elif not isinstance(node, yaml.ScalarNode):
        fault = f"{key!r} is a list; write a single value or a mapping"
    elif node.tag == "tag:yaml.org,2002:null":
        fault = f"{key!r} has no value (one that starts with # needs quotes)"
    elif not node.tag.startswith("tag:yaml.org,2002:"):
        fault = f"{key!r} has a tag (!); write a plain value"
    else:
        section._scalars[key] = str(node.value)  # noqa: SLF001
    if fault:
        section.fail(key, fault)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
