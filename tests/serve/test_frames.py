"""Frames are read strictly: whatever bytes arrive, there is a frame, an end, or a FrameError."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.serve.frames import FrameError, encode_frame, read_frame

LIMIT = 1000


async def read_all(raw: bytes, piece: int = 10_000) -> list[dict[str, Any]]:
    reader = asyncio.StreamReader(limit=LIMIT)
    for start in range(0, len(raw), piece):
        reader.feed_data(raw[start : start + piece])
    reader.feed_eof()
    frames = []
    while (frame := await read_frame(reader)) is not None:
        frames.append(frame)
    return frames


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=3), max_size=4), st.integers(1, 50))
def test_what_was_sent_arrives_however_it_is_cut(messages: list[dict[str, Any]], piece: int) -> None:
    small = [m for m in messages if len(json.dumps(m)) < LIMIT]
    raw = b"".join(encode_frame(m) for m in small)
    assert asyncio.run(read_all(raw, piece)) == small


@settings(max_examples=300)
@given(st.binary(max_size=LIMIT * 3))
def test_any_bytes_are_frames_or_an_error(raw: bytes) -> None:
    try:
        frames = asyncio.run(read_all(raw))
    except FrameError:
        return
    assert all(isinstance(frame, dict) for frame in frames)


@pytest.mark.parametrize(
    "raw",
    [
        b"hello\n",
        b"\n",
        b"[]\n",
        b"1\n",
        b'{"a":NaN}\n',
        b'{"a":\x00}\n',
        b'{"a":"\x00"}\n',
        b'{"a":"\xff"}\n',
        b"[" * (LIMIT - 10) + b"\n",
        b'{"a":' * 150 + b"1" + b"}" * 149 + b"\n",
        b"x" * (LIMIT * 4),
        b'{"a":"' + b"x" * LIMIT + b'"}\n',
    ],
)
def test_what_is_no_frame_is_an_error(raw: bytes) -> None:
    with pytest.raises(FrameError):
        asyncio.run(read_all(raw))


def test_nesting_that_would_exhaust_the_stack_is_an_error() -> None:
    async def read() -> None:
        reader = asyncio.StreamReader(limit=2**20)
        reader.feed_data(b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n")
        await read_frame(reader)

    with pytest.raises(FrameError, match="nested too deeply"):
        asyncio.run(read())


def test_half_a_frame_at_the_end_is_the_end() -> None:
    assert asyncio.run(read_all(b'{"a":1}\n{"b"')) == [{"a": 1}]
