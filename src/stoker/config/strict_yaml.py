"""YAML as people write settings in it, read strictly: every error is reported with its file, its line and a remedy.

Mappings of scalars, lists of scalars and mappings only, no anchors, no tags, bounded in size and depth. Unaware of what
the keys mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import yaml

from stoker.config.config_error import ConfigError, did_you_mean
from stoker.config.regular import open_regular

MAX_FILE_BYTES = 256 * 1024
"""A settings file of a thousand commented keys has 60 KiB."""

MAX_DEPTH = 8
"""Levels of nesting; our files use two."""

MAX_NODES = 4000

TOO_MUCH = "nested too deeply, or too many values, for settings"
"""What a person reads of a file that passes `MAX_DEPTH`, `MAX_NODES`, or the bound of the parser itself."""

_LIBYAMLS_DEPTH = "maximum nesting depth"
"""Words in the error of the libyaml that PyYAML brings since 6.0.4: its scanner, which reads ahead of the
parser, has a bound of its own and meets it before we can count to ours."""

_LOADER: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The quick one where PyYAML was built with libyaml: not on every machine."""

_YES = ("yes", "true", "on")
_NO = ("no", "false", "off")


class Section:
    """A mapping of a file. Getters note a fault in `errors` and return the default, so that all faults are reported."""

    def __init__(self, path: Path, line: int, errors: list[ConfigError]) -> None:
        self.path = path
        self.line = line
        self.errors = errors
        self._values: dict[str, str | tuple[str, ...] | Section | None] = {}
        self._places: dict[str, tuple[Path, int]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def names(self) -> tuple[str, ...]:
        """Return all keys in their order, also those whose value has a fault."""
        return tuple(self._places)

    def place_of(self, key: str) -> tuple[Path, int]:
        """Return the file and the line of a key; the section's own where it is absent."""
        return self._places.get(key, (self.path, self.line))

    def line_of(self, key: str) -> int:
        """Return the line of a key; the section's own where it is absent."""
        return self.place_of(key)[1]

    def value_of(self, key: str) -> str | tuple[str, ...] | Section | None:
        """Return what stands below a key, whatever its shape; None where it has a fault or is absent."""
        return self._values.get(key)

    def put(self, key: str, value: str | tuple[str, ...] | Section | None, place: tuple[Path, int]) -> None:
        """Set a key's value; None stands for one whose fault has been noted."""
        self._values[key] = value
        self._places[key] = place

    def fail(self, key: str, message: str) -> None:
        """Note a fault at a key's place."""
        self.errors.append(ConfigError(*self.place_of(key), message))

    def allow(self, known: Collection[str], what: str = "key") -> None:
        """Note a fault for every key that is not `known`."""
        for key in self._places:
            if key not in known:
                self.fail(key, f"unknown {what} {key!r}{did_you_mean(key, known)}")

    def text(self, key: str, default: str = "") -> str:
        """Return a scalar just as it is written, whatever YAML would make of it (`no`, `1e3`)."""
        value = self._values.get(key)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self._misshapen(key, "a single value, not a mapping", "a single value or a mapping")
        return default

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of scalars, each as it is written; a single one counts as a list of one."""
        value = self._values.get(key)
        if isinstance(value, Section):
            self._misshapen(key, "a list, not a mapping; write [one, two]", "")
            return ()
        return (value,) if isinstance(value, str) else value or ()

    def is_list(self, key: str) -> bool:
        """Return whether a list was written, rather than a single value."""
        return isinstance(self._values.get(key), tuple)

    def scalars(self) -> Iterator[tuple[str, str]]:
        """Yield every key with a single value; note a fault for every mapping and list."""
        for key, value in self._values.items():
            if isinstance(value, str):
                yield key, value
            elif value is not None:
                self._misshapen(key, "a single value, not a mapping", "a single value")

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Yield every key with a mapping; note a fault for every single value and list."""
        for key, value in self._values.items():
            if isinstance(value, Section):
                yield key, value
            elif value is not None:
                self._misshapen(key, "a mapping: indent its keys below it", "a mapping")

    def choice(self, key: str, known: Collection[str], default: str) -> str:
        """Return one of a few words."""
        value = self.text(key, default)
        if value in known:
            return value
        self.fail(key, f"{key!r} cannot be {value!r}{did_you_mean(value, known)}")
        return default

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the truth of yes or no, or of YAML's other words for them."""
        value = self.text(key, "yes" if default else "no").lower()
        if value not in (*_YES, *_NO):
            self.fail(key, f"{key!r} is yes or no, not {value!r}")
            return default
        return value in _YES

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
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
        """Return a mapping below a key; an empty one where the key is absent."""
        value = self._values.get(key)
        if isinstance(value, Section):
            return value
        if value is not None:
            self._misshapen(key, "a mapping: indent its keys below it", "a mapping")
        return Section(*self.place_of(key), self.errors)

    def _misshapen(self, key: str, wanted: str, instead: str) -> None:
        """Note, once, that a value does not have the `wanted` shape."""
        is_list = isinstance(self._values[key], tuple)
        self.fail(key, f"{key!r} is a list; write {instead}" if is_list else f"{key!r} is {wanted}")
        self._values[key] = None

    def over(self, base: Section) -> Section:
        """Return these keys, and those of `base` that are not here, in front of them. What lies below is not mixed."""
        both = Section(self.path, self.line, self.errors)
        for section in (base, self):
            for key in section.names():
                both.put(key, section.value_of(key), section.place_of(key))
        return both

    def changed(self, text: Callable[[str], str], word: Callable[[str], Sequence[str]]) -> Section:
        """Return the same with every single value, and every word of a list, put through a function.

        A ValueError of theirs becomes a fault at the key's place.
        """
        result = Section(self.path, self.line, self.errors)
        for key, value in self._values.items():
            new = value
            try:
                if isinstance(value, str):
                    new = text(value)
                elif isinstance(value, Section):
                    new = value.changed(text, word)
                elif value is not None:
                    new = tuple(w for each in value for w in word(each))
            except ValueError as err:
                self.fail(key, str(err))
                new = None
            result.put(key, new, self.place_of(key))
        return result


def load(path: Path, errors: list[ConfigError] | None = None) -> Section:
    """Return the top mapping of a file. Raises ConfigError when the file cannot be read as one at all.

    Faults are noted in `errors`, so that several files can share a list.
    """
    errors = [] if errors is None else errors
    text = _read(path)
    root = _compose(path, text)
    if root is None:
        return Section(path, 0, errors)
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(path, _line(root), "this is not a mapping; write lines like 'key: value'")
    return _section(path, root, errors)


def _read(path: Path) -> str:
    try:
        with open_regular(path, follow_links=True) as file:
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
        node: yaml.Node | None = yaml.compose(text, _LOADER)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        if _LIBYAMLS_DEPTH in (err.problem or ""):
            raise ConfigError(path, mark.line + 1 if mark else 0, TOO_MUCH) from err
        message = " ".join(part for part in (err.context, err.problem) if part)
        raise ConfigError(path, mark.line + 1 if mark else 0, f"not valid YAML: {message}") from err
    except yaml.reader.ReaderError as err:
        line = text.count("\n", 0, err.position) + 1
        raise ConfigError(path, line, f"a character that YAML forbids: U+{ord(text[err.position]):04X}") from err
    return node


def _check_bounds(path: Path, text: str) -> None:
    """Refuse what could grow when it is composed: aliases, deep nesting, masses of nodes."""
    depth = nodes = 0
    for event in yaml.parse(text, _LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ConfigError(
                path, line, "anchors and aliases (&, *) are not used here; a value that starts so needs quotes"
            )
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise ConfigError(path, line, TOO_MUCH)


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
    place = (section.path, line)
    if isinstance(node, yaml.MappingNode):
        section.put(key, _section(section.path, node, section.errors), place)
        return
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    fault = next((f for each in nodes if (f := _fault(key, each))), "")
    if fault:
        section.put(key, None, place)
        section.fail(key, fault)
    elif isinstance(node, yaml.SequenceNode):
        section.put(key, tuple(str(each.value) for each in nodes), place)
    else:
        section.put(key, str(node.value), place)


def _fault(key: str, node: yaml.Node) -> str:
    """Return why a value cannot be used, empty if it can."""
    if not isinstance(node, yaml.ScalarNode):
        return f"{key!r} is a list of more than single values"
    if node.tag == "tag:yaml.org,2002:null":
        return f"{key!r} has no value (one that starts with # needs quotes)"
    if not node.tag.startswith("tag:yaml.org,2002:"):
        return f"{key!r} has a tag (!); write a plain value"
    return ""


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
