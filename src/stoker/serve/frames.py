"""Frames on the socket: one JSON object per line, of a bounded size, read strictly.

Unaware of what the objects mean. An invalid frame ends its own connection and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from stoker.record.jsonlines import BadLineError, dump_line, parse_line

MAX_CLIENT_FRAME = 1 << 16
"""Bytes of a frame from a viewer: a command with its arguments is some hundred bytes."""

MAX_SERVER_FRAME = 1 << 24
"""Bytes of a frame from the engine: a snapshot is some hundred KiB, a command line at most some MiB."""


class FrameError(Exception):
    """What arrived is not a frame; the connection must be closed."""


def encode_frame(value: Mapping[str, Any]) -> bytes:
    """Return the frame of a message."""
    return dump_line(value)


async def read_frame(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next frame, or None at the end of the stream; a partial frame at the end counts as the end.

    Raises FrameError. The size is bounded by the limit that the reader was made with.
    """
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise FrameError("frame too long") from None
    except ConnectionError:
        return None
    try:
        return parse_line(line)
    except BadLineError as err:
        raise FrameError(str(err)) from None
