"""Plain text that goes through in one piece comes out as it would line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.model.text import LineSplitter
from stoker.show.plain import MAX_LINE, _output_line, _output_lines

pieces = st.lists(
    st.sampled_from(
        [b"plain text\n", b"\n", b"half", b"tab\there\n", b"\x1b[31mred\x1b[0m\n", b"a\rb\r\n", b"\xff\n", b" "]
    ),
    max_size=12,
).map(b"".join)


@given(st.lists(pieces, max_size=6))
def test_the_fast_path_shows_the_same(chunks: list[bytes]) -> None:
    quick, slow = LineSplitter(MAX_LINE), LineSplitter(MAX_LINE)
    for chunk in chunks:
        shown = "".join(line + "\n" for line in _output_lines(quick, chunk, colour=True))
        assert shown == "".join(_output_line(line, colour=True) + "\n" for line in slow.feed(chunk))
