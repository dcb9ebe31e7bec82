"""The JSON schema of profiles, made from the dataclasses, so that editors complete and check what people write.

Unaware of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, is_dataclass
from typing import Any, Literal

from stoker.config.priors import CLASS_KEYS
from stoker.config.profiles.form import Kind, keys_of
from stoker.config.profiles.kinds import Bytes, Version, Whole
from stoker.config.profiles.profile import Profile
from stoker.decide.memory.prior_classes import Prior

_SCALAR = {"type": ["string", "number", "boolean"]}
_REFERENCE = {"type": "string", "pattern": r"\$\{"}
"""A value may hold `${name}` wherever it stands."""

_WORDS = {"anyOf": [{"type": "array", "items": _SCALAR}, _SCALAR]}
_VALUES = {"type": "object", "additionalProperties": _SCALAR}
_CLASSES = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {key: _VALUES if key == "points" else _SCALAR for key in CLASS_KEYS},
        "additionalProperties": False,
    },
}


def schema() -> dict[str, Any]:
    """Return the schema of a profile's file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "stoker profile",
        **_object(Profile),
    }


def _object(cls: type) -> dict[str, Any]:
    properties = {name: {"description": f.metadata["doc"], **_of(f, kind)} for name, (f, kind) in keys_of(cls).items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _of(key_field: Field[Any], kind: Kind) -> dict[str, Any]:
    if kind.base is tuple:
        return _sequence(kind.item)
    if kind.base is Mapping:
        return _VALUES
    if is_dataclass(kind.base) and isinstance(kind.base, type):
        return _object(kind.base)
    if kind.base is Literal:
        return {"anyOf": [{"enum": list(kind.note)}, _REFERENCE], "default": str(key_field.default)}
    if kind.base is bool:
        return {"anyOf": [{"type": "boolean"}, _REFERENCE]}
    return _noted(kind.note)


def _sequence(item: Any) -> dict[str, Any]:
    if item is str:
        return _WORDS
    return _CLASSES if item is Prior else {"type": "object", "additionalProperties": _object(item)}


def _noted(note: Any) -> dict[str, Any]:
    if isinstance(note, Whole):
        return {"anyOf": [{"type": "integer", "minimum": note.low, "maximum": note.high}, _REFERENCE]}
    if isinstance(note, Bytes):
        size = {"type": "string", "pattern": r"^ *\d+(\.\d+)? *([kKmMgGtT]i?)?[bB]? *$"}
        return {"anyOf": [{"type": "integer", "minimum": 1}, size, _REFERENCE]}
    if isinstance(note, Version):
        return {"type": ["string", "number"]}
    return {"type": "string"}
