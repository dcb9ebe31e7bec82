"""Turns named tuples into JSON and back, strictly and within bounds. Unaware of what they mean.

Named tuples, because the supervisor reads them too, and `dataclasses` would take a MiB of its memory. Only the types
that appear in the contracts are supported: integers, numbers, text, booleans, tuples, mappings of text, and named
tuples.
"""

import errno
import json
import os
import stat
import types
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

MAX_BYTES = 64 * 2**20
"""Of one file. Linux allows a command of up to 6 MiB (execve(2)); a specification has it four times, and escaping may
double it."""

MAX_WHOLE = 2**63
MAX_REAL = 1e15
"""Seconds or bytes beyond these are not plausible."""

Record = TypeVar("Record", bound=tuple[Any, ...])


class ContractError(ValueError):
    """Data does not have the agreed form; the message is one line that says where."""


def encode(value: Any) -> Any:
    """Return `value`, a contract or a part of one, as input for `json.dumps`."""
    if hasattr(value, "_fields"):
        return {name: encode(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple | list):
        return [encode(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def dump(value: Any) -> bytes:
    """Return a contract as ASCII JSON; undecodable file names survive as escaped lone surrogates."""
    return json.dumps(encode(value)).encode("ascii")  # json.dump would take six times as long


def decode(kind: type[Record], value: object, where: str) -> Record:
    """Return a parsed JSON object as the contract `kind`. Raises ContractError, whose message starts with `where`.

    Ignores keys that `kind` does not know; a missing one must have a default.
    """
    if not isinstance(value, dict):
        raise ContractError(f"{where} is not an object")
    fields: dict[str, Any] = kind.__annotations__
    defaults: Mapping[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
    if missing := [name for name in fields if name not in value and name not in defaults]:
        raise ContractError(f"{where} lacks {missing[0]}")
    known = {name: _decoded(fields[name], value[name], f"{where}: {name}") for name in fields if name in value}
    return kind(**known)


def load(kind: type[Record], path: str | os.PathLike[str]) -> Record:
    """Read a contract from a file. Raises OSError and ContractError."""
    return parse(kind, read_bounded(path), os.path.basename(path))


def load_or_none(kind: type[Record], path: str | os.PathLike[str]) -> Record | None:
    """Read a contract from a file; None if there is none, or no valid one."""
    try:
        return load(kind, path)
    except (OSError, ContractError):
        return None


def parse(kind: type[Record], data: bytes, where: str) -> Record:
    """Return the contract in `data`, whatever the bytes are. Raises ContractError."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):  # integers of more than 4300 digits, and endless nesting, too
        raise ContractError(f"{where} is not JSON") from None
    return decode(kind, value, where)


def read_bounded(path: str | os.PathLike[str]) -> bytes:
    """Return the contents of a regular file of ours, up to MAX_BYTES. Raises OSError for anything else.

    In one read, because a file may be overwritten in place meanwhile. Does not block on a FIFO.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
            raise OSError(errno.EINVAL, "this is not a regular file, or too large", os.fspath(path))
        return os.read(fd, about.st_size)
    finally:
        os.close(fd)


def _decoded(kind: Any, value: object, where: str) -> Any:
    if isinstance(kind, types.UnionType):
        kind, other = get_args(kind)  # all unions are with None
        return None if value is None and other is types.NoneType else _decoded(kind, value, where)
    origin = get_origin(kind)
    if origin is tuple and isinstance(value, list):
        return _tuple(get_args(kind), value, where)
    if origin is Mapping and isinstance(value, dict):
        each = get_args(kind)[1]
        return {name: _decoded(each, item, f"{where}[{name!r}]") for name, item in value.items()}
    if hasattr(kind, "_fields"):
        return decode(kind, value, where)
    if kind is float and type(value) in (int, float) and -MAX_REAL < value < MAX_REAL:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    if kind is int and type(value) is int and -MAX_WHOLE <= value < MAX_WHOLE:
        return value
    if kind in (str, bool) and type(value) is kind:
        return value
    raise ContractError(f"{where} is not {_name_of(origin or kind)}")


def _tuple(kinds: tuple[Any, ...], value: list[object], where: str) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise ContractError(f"{where} has {len(value)} members, not {len(kinds)}")
    return tuple(_decoded(kind, each, f"{where}[{n}]") for n, (kind, each) in enumerate(zip(kinds, value, strict=True)))


def _name_of(kind: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false", tuple: "a list"}
    return names.get(kind, "an object")
