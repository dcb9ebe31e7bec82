"""Reads a section of YAML into a dataclass by the types of its fields: one source for reader and schema.

Unaware of which dataclasses there are, except for what a profile imports from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from stoker.config.priors import MAX_SIZE, read_classes
from stoker.config.profiles.kinds import Bytes, Version, Whole
from stoker.config.strict_yaml import Section
from stoker.decide.memory.prior_classes import Prior
from stoker.model.units import format_bytes, parse_size

_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}", re.ASCII)
_T = TypeVar("_T")


class Kind(NamedTuple):
    """A field's type without `| None`: what it is, how it is written (Annotated), what it is a tuple or Mapping of."""

    base: Any
    note: Any
    item: Any


def keys_of(cls: type) -> dict[str, tuple[Field[Any], Kind]]:
    """Return the keys that may stand in the file for a dataclass, with their kinds."""
    hints = get_type_hints(cls, include_extras=True)
    return {f.name: (f, kind_of(hints[f.name])) for f in fields(cls) if f.metadata.get("file", True)}


def kind_of(hint: Any) -> Kind:
    """Return what a type hint means here."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    note = None
    if get_origin(hint) is Annotated:
        hint, note = get_args(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return Kind(Literal, parts, None)
    if origin in (tuple, Mapping):
        return Kind(origin, note, parts[0] if origin is tuple else parts[1])
    return Kind(hint, note, None)


def read(section: Section, cls: type[_T], **given: Any) -> _T:
    """Return the dataclass that a section holds. What has a fault keeps its default; the section notes the fault."""
    section.allow(keys_of(cls))
    values = {name: _value(section, name, f, kind) for name, (f, kind) in keys_of(cls).items() if name in section}
    return cls(**given, **{name: value for name, value in values.items() if value is not None})


def _value(section: Section, key: str, key_field: Field[Any], kind: Kind) -> Any:
    """Return a key's value; None where it is empty or has a fault."""
    if kind.base is tuple:
        return _sequence(section, key, kind.item)
    if kind.base is Mapping:
        return dict(section.section(key).scalars())
    if is_dataclass(kind.base) and isinstance(kind.base, type):
        return read(section.section(key), kind.base)
    if kind.base is Literal:
        return section.choice(key, kind.note, str(key_field.default))
    if kind.base is bool:
        return section.flag(key, default=bool(key_field.default))
    text = section.text(key).strip()
    if kind.note is None:
        return text
    return _noted(section, key, text, kind.note) if text else None


def _sequence(section: Section, key: str, item: Any) -> tuple[Any, ...]:
    if item is str:
        return section.words(key)
    below = section.section(key)
    if item is Prior:
        return read_classes(below)
    return tuple(read(each, item, name=name) for name, each in below.sections())


def _noted(section: Section, key: str, text: str, note: Any) -> Any:
    """Return a number, a size or a version."""
    if isinstance(note, Bytes):
        return _size(section, key, text, note.least)
    if isinstance(note, Whole):
        short = text.isascii() and text.isdecimal() and len(text) <= len(str(note.high))
        if short and note.low <= int(text) <= note.high:
            return int(text)
        section.fail(key, f"{key!r} is a whole number from {note.low} to {note.high}, not {text!r}")
    elif isinstance(note, Version):
        if _VERSION.fullmatch(text):
            return text
        section.fail(key, f"{key!r} is a version like 12.6, not {text!r}")
    return None


def _size(section: Section, key: str, text: str, least: int) -> int | None:
    try:
        size = parse_size(text)
    except (ValueError, OverflowError):
        size = 0
    if 0 < size < least:
        what = f"{key!r} is at least {format_bytes(least)}, not {format_bytes(size)}; write a unit, as in 12 GiB"
        section.fail(key, what)
        return None
    if 0 < size <= MAX_SIZE:
        return size
    section.fail(key, f"{key!r} is a size like 12 GiB, 64G or 500MB, not {text!r}")
    return None
