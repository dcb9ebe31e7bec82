"""One JSON object per line, as journal and socket both write it, and its strict reading.

Unaware of what the objects mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn


class BadLineError(ValueError):
    """The line is not one JSON object; the message says why, without repeating the line."""


def dump_line(value: Mapping[str, Any]) -> bytes:
    """`value` as one ASCII line with its newline. Undecodable file names survive as escaped lone surrogates."""
    return _encode(value).encode("ascii") + b"\n"


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the object of one line, with or without its newline; raises BadLineError, whatever the bytes are."""
    try:
        value = _decode(line.decode("utf-8"))
    except RecursionError:
        raise BadLineError("nested too deeply") from None
    except ValueError:
        # Broken UTF-8, broken JSON, NaN, and integers of more than 4300 digits all end here.
        raise BadLineError("not JSON") from None
    if not isinstance(value, dict):
        raise BadLineError("not an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
