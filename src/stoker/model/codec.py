"""Frozen dataclasses <-> plain JSON values, driven by their type hints.

Used for journal lines and for snapshots on the socket. Unaware of files and sockets. Decoding is strict about
types (what arrives may be hostile) and lenient about names: an unknown field is skipped, a missing one takes its
default, so a newer journal reads in an older stoker as far as it can.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from stoker.model.events import EVENT_TYPES, JOURNAL_VERSION, Event, Record

T = TypeVar("T")
_BY_KIND: dict[str, type[Event]] = {t.kind: t for t in EVENT_TYPES}


MAX_WHOLE = 2**63
"""The bound for integers: sizes, pids and counts of every system are smaller."""

MAX_REAL = 1e15
"""The bound for other numbers: 30 million years, or a petabyte."""


_AS_IS = frozenset({str, int, bool, type(None)})
"""Kinds of values that JSON has: most of a journal's. To look the kind up is a fifth of asking what it is one of."""


class CodecError(ValueError):
    """The value does not have the expected shape; the message names the place."""


class UnknownKindError(CodecError):
    """A well-formed record of an event kind that this version does not know."""


def whole(value: object) -> int | None:
    """Return `value` if it is an integer within bounds; None for anything else, and for hundreds of digits."""
    return value if type(value) is int and -MAX_WHOLE <= value < MAX_WHOLE else None


def real(value: object) -> float | None:
    """Return `value` if it is a number within bounds; None for anything else, infinities and 1e308."""
    if type(value) is float or type(value) is int:
        return float(value) if -MAX_REAL < value < MAX_REAL else None
    return None


def encode(value: Any) -> Any:
    """A JSON value of a dataclass, mapping, sequence or scalar. Mapping keys become strings.

    Fields that hold their default are left out, since samples are most of a journal. JSON has no NaN and no
    infinity: those become 0, as does what `real` would refuse.
    """
    kind: Any = type(value)
    if kind in _AS_IS:
        return value
    if kind is float:
        return value if abs(value) < MAX_REAL else 0.0
    if not hasattr(kind, "__dataclass_fields__"):
        return _encode_other(value)
    encoded = {}
    for name, default in _fields(kind):
        item = getattr(value, name)
        if item != default:
            encoded[name] = item if type(item) in _AS_IS else encode(item)
    return encoded


def _encode_other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [encode(v) for v in value]
    return value


def decode(cls: type[T], data: Any, where: str = "") -> T:
    """A `cls` from a JSON value; raises CodecError."""
    decoder: _Decoder = _decoder(cast("Any", cls))
    return cast("T", decoder(data, where or cls.__name__))


def encode_record(record: Record) -> dict[str, Any]:
    """One journal line as a JSON object."""
    return {
        "v": JOURNAL_VERSION,
        "seq": record.seq,
        "t": round(record.time, 3),
        "type": record.event.kind,
        **encode(record.event),
    }


def decode_record(data: Any) -> Record:
    """A record from a journal line's JSON value; raises CodecError, or UnknownKindError for a newer event kind."""
    if not isinstance(data, dict):
        raise CodecError("a record is an object")
    version, seq, time, kind = data.get("v"), whole(data.get("seq")), real(data.get("t")), data.get("type")
    if version != JOURNAL_VERSION:
        raise CodecError(f"journal version {version!r} is not {JOURNAL_VERSION}; use the stoker that wrote it")
    if seq is None or time is None or not isinstance(kind, str):
        raise CodecError("a record has seq, t and type")
    cls = _BY_KIND.get(kind)
    if cls is None:
        raise UnknownKindError(f"unknown event {kind!r}")
    return Record(seq, time, decode(cls, data, kind))


@cache
def _fields(cls: type) -> tuple[tuple[str, Any], ...]:
    """Names and defaults; MISSING, which equals no value, stands for a required field."""
    return tuple(
        (f.name, f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default)
        for f in dataclasses.fields(cls)
    )


_Decoder = Callable[[Any, str], Any]


@cache
def _decoder(hint: Any) -> _Decoder:
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass_decoder(cast("type", hint))
    if origin in (Union, types.UnionType):
        return _union_decoder(get_args(hint))
    if origin is Literal:
        return _literal_decoder(get_args(hint))
    if origin is tuple:
        return _tuple_decoder(get_args(hint)[0])
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(*get_args(hint))
    return _scalar_decoder(hint)


def _dataclass_decoder(cls: type) -> _Decoder:
    hints = get_type_hints(cls)
    fields = [(f.name, _decoder(hints[f.name]), _is_required(f)) for f in dataclasses.fields(cls)]

    def decode_dataclass(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            raise CodecError(f"{where} is an object")
        values = {}
        for name, decoder, required in fields:
            if name in data:
                values[name] = decoder(data[name], f"{where}.{name}")
            elif required:
                raise CodecError(f"{where}.{name} is missing")
        return cls(**values)

    return decode_dataclass


def _is_required(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _union_decoder(members: tuple[Any, ...]) -> _Decoder:
    optional = type(None) in members
    decoders = [_decoder(m) for m in members if m is not type(None)]

    def decode_union(data: Any, where: str) -> Any:
        if data is None and optional:
            return None
        error = CodecError(f"{where} may not be null")
        for decoder in decoders:
            try:
                return decoder(data, where)
            except CodecError as err:
                error = err
        raise error

    return decode_union


def _literal_decoder(values: tuple[Any, ...]) -> _Decoder:
    def decode_literal(data: Any, where: str) -> Any:
        for value in values:
            if data == value and type(data) is type(value):
                return value
        raise CodecError(f"{where} is one of {', '.join(map(str, values))}")

    return decode_literal


def _tuple_decoder(item: Any) -> _Decoder:
    decoder = _decoder(item)

    def decode_tuple(data: Any, where: str) -> Any:
        if not isinstance(data, list):
            raise CodecError(f"{where} is a list")
        return tuple(decoder(v, where) for v in data)

    return decode_tuple


def _mapping_decoder(key: Any, value: Any) -> _Decoder:
    decode_key, decoder = _decoder(key), _decoder(value)

    def decode_mapping(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            raise CodecError(f"{where} is an object")
        try:
            return {decode_key(key(k), where): decoder(v, f"{where}.{k}") for k, v in data.items()}
        except ValueError as err:
            raise (
                err if isinstance(err, CodecError) else CodecError(f"{where} has a key that is not a number")
            ) from err

    return decode_mapping


def _scalar_decoder(hint: Any) -> _Decoder:
    if hint is int or hint is float:
        return _number_decoder(hint)

    def decode_scalar(data: Any, where: str) -> Any:
        if not isinstance(data, hint):
            raise CodecError(f"{where} is a {hint.__name__}")
        return data

    return decode_scalar


def _number_decoder(hint: Any) -> _Decoder:
    number: Callable[[object], float | None] = whole if hint is int else real

    def decode_number(data: Any, where: str) -> Any:
        if (value := number(data)) is None:
            raise CodecError(f"{where} is a {hint.__name__} within bounds")
        return value

    return decode_number
