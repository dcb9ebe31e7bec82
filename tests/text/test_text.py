"""What the sanitiser lets through, and what it never does."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.text import (
    CUT_MARK,
    REPLACEMENT,
    Ink,
    LineSplitter,
    Span,
    clean,
    harmless,
    plain,
    sgr,
    spans,
)

FRAGMENTS = [
    b"\x1b[31m", b"\x1b[0m", b"\x1b[", b"\x1b[38;5;", b"\x1b[38:2::1:2:3m", b"\x1b]52;c;Zm9v\x07", b"\x1b]0;title",
    b"\x1b\\", b"\x1bP", b"\x1b_", b"\x1bc", b"\x1b", b"\xc2\x9b", b"\xc2\x9d", b"\xc2\x9c", b"\x07", b"\r", b"\r\n",
    b"\n", b"\t", b"\x00", b"\x08", b"\x7f", b"\xff", b"\xe2\x80\xae", b"\xe2\x80\x8b", b"\xef\xbb\xbf",
    b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xf0\x9f\x94\xa5", "é漢".encode(),
    b"2J", b"m", b";", b"error [/usr/include/x.h]", b"ok",
]  # fmt: skip

hostile = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(b"".join),
)
limits = st.integers(min_value=0, max_value=50)


def assert_harmless(text: str) -> None:
    for character in text:
        category = unicodedata.category(character)
        assert category[0] != "C", f"{character!r} in {text!r}"
        assert category not in {"Zl", "Zp"}
        assert character not in "\u034f\ufe0f"


@given(hostile, limits)
def test_no_bytes_get_anything_harmful_through(data: bytes, limit: int) -> None:
    for text in (clean(data, limit), plain(data, limit), clean(data.decode("utf-8", "surrogateescape"), limit)):
        assert_harmless(text)
        assert len(text) <= limit + 1


@given(st.text(st.characters(exclude_categories=[]), max_size=200), limits)
def test_no_text_gets_anything_harmful_through(text: str, limit: int) -> None:
    assert_harmless(clean(text, limit))


@given(hostile, limits)
def test_cleaning_twice_changes_nothing(data: bytes, limit: int) -> None:
    once = clean(data, limit)
    assert clean(once, limit) == once
    assert plain(plain(data, limit).encode(), limit + 1) == plain(data, limit)


@given(hostile, limits)
def test_a_terminal_gets_colours_and_nothing_else(data: bytes, limit: int) -> None:
    line = spans(data, limit)
    assert sgr(line, colour=False) == plain(data, limit)
    coloured = sgr(line, colour=True)
    assert plain(coloured.encode()) == plain(data, limit)
    for part in coloured.split("\x1b")[1:]:
        parameters, found, rest = part.removeprefix("[").partition("m")
        assert part.startswith("[")
        assert found
        assert set(parameters) <= set("0123456789;")
        assert_harmless(rest)
    if "\x1b" in coloured:
        last = coloured.rpartition("\x1b[")[2]
        assert last.startswith("0m")


@given(st.lists(hostile, max_size=10), st.integers(1, 64))
def test_lines_do_not_depend_on_the_portions_they_come_in(chunks: list[bytes], limit: int) -> None:
    whole = LineSplitter(limit)
    expected = [*whole.feed(b"".join(chunks)), *whole.finish()]
    assert all(len(line) <= limit + len(CUT_MARK.encode()) for line in expected)
    single = LineSplitter(limit)
    for byte in b"".join(chunks):
        list(single.feed(bytes([byte])))
        assert len(single._pending) <= limit + len(CUT_MARK.encode())
    portions = LineSplitter(10_000)
    lines = [line for chunk in chunks for line in portions.feed(chunk)] + list(portions.finish())
    unbounded = LineSplitter(10_000)
    assert lines == [*unbounded.feed(b"".join(chunks)), *unbounded.finish()]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain text", "plain text"),
        (b"\x1b]52;c;Zm9v\x07after", "after"),
        (b"\x1b]0;title\x1b\\after", "after"),
        (b"\xc2\x9d0;title\xc2\x9cafter", "after"),
        (b"\x1b[2J\x1b[H\x1b[?1049hafter", "after"),
        (b"\xc2\x9b2Jafter", "after"),
        (b"\x1bPtmux;\x1b\x1b]52;c;Zm9v\x07\x1b\\after", "after"),
        (b"\x1b(Bafter\x1bc", "after"),
        (b"error [/usr/include/x.h]", "error [/usr/include/x.h]"),
        (b"[@click=app.quit]x[/]", "[@click=app.quit]x[/]"),
        (b"a\x00b\x08c", "abc"),
        (b"a\x01b", f"a{REPLACEMENT}b"),
        (b"a\x9bb", f"a{REPLACEMENT}b"),
        ("a\u202egnp.exe".encode(), f"a{REPLACEMENT}gnp.exe"),
        ("\ufeffa\u200bb\u200dc".encode(), "abc"),
        ("a\u00a0b\u2028c".encode(), "a b c"),
        ("🔥 größer 漢字".encode(), "🔥 größer 漢字"),
        (b"\xed\xa0\x80", REPLACEMENT * 3),
    ],
)
def test_a_line_is_shown_harmlessly(raw: bytes, shown: str) -> None:
    assert plain(raw) == shown
    assert clean(raw) == shown


def test_an_unterminated_string_hides_nothing_beyond_its_line() -> None:
    lines = [plain(line) for line in b"\x1b]0;never ends\nerror: here".split(b"\n")]
    assert lines == ["", "error: here"]


def test_names_keep_to_one_line() -> None:
    assert clean("a\nb\r\nc\td") == "a b c d"
    assert clean("bad\udcff") == f"bad{REPLACEMENT}"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"a\rb", "b"),
        (b"10%\r50%\r100%\r\n", "100%"),
        (b"dos\r\n", "dos"),
        (b"100%\r\x1b[K", "100%"),
        (b"\rfirst", "first"),
        (b"ab\tc", "ab      c"),
        (b"\x1b[1mab\x1b[0m\tc", "ab      c"),
        (b"long old text\ra\tb", "a       b"),
    ],
)
def test_returns_and_tabs_look_as_on_a_terminal(raw: bytes, shown: str) -> None:
    assert plain(raw) == shown


@pytest.mark.parametrize(
    ("parameters", "ink"),
    [
        ("", Ink()),
        ("1;31", Ink(fg="red", bold=True)),
        ("94;101", Ink(fg="bright_blue", bg="bright_red")),
        ("38;5;9", Ink(fg="bright_red")),
        ("38;5;196", Ink(fg="#ff0000")),
        ("48;5;244", Ink(bg="#808080")),
        ("38;2;1;2;3;1", Ink(fg="#010203", bold=True)),
        ("38:2::1:2:3", Ink(fg="#010203")),
        ("38:2:1:2:3", Ink(fg="#010203")),
        ("38:5:1;4", Ink(fg="red", underline=True)),
        ("4:3", Ink(underline=True)),
        ("4;4:0", Ink()),
        ("2;3;9;7", Ink(dim=True, italic=True, strike=True, reverse=True)),
        ("1;22;3;23;4;24;7;27;9;29;31;39;41;49", Ink()),
        ("38;5;999", Ink()),
        ("38;2;1;2", Ink()),
        ("38", Ink()),
        ("38:", Ink()),
        ("9" * 5000, Ink()),
        (">4;2", Ink()),
        (";".join(["1"] * 5000), Ink(bold=True)),
        ("5;8", Ink()),
    ],
)
def test_colours_are_kept_as_values(parameters: str, ink: Ink) -> None:
    assert spans(f"\x1b[{parameters}mx".encode()) == (Span("x", ink),)


def test_a_colour_lasts_until_it_is_taken_back() -> None:
    line = spans(b"a \x1b[31mred\x1b[m b\r\x1b[32mgreen")
    assert line == (Span("green", Ink(fg="green")),)
    assert sgr(spans(b"a \x1b[1;31mred\x1b[m b"), colour=True) == "a \x1b[0;1;31mred\x1b[0m b"
    assert sgr(spans(b"\x1b[38;5;196mred"), colour=True) == "\x1b[0;38;2;255;0;0mred\x1b[0m"


def test_a_long_line_is_cut_with_a_mark() -> None:
    assert plain(b"x" * 100, 10) == "x" * 10 + CUT_MARK
    assert plain(b"x" * 10, 10) == "x" * 10
    assert plain(b"\x1b[31mx\x1b[32m" * 10, 10) == "x" * 10
    assert clean("x" * 100, 10) == "x" * 10 + CUT_MARK
    assert plain(b"old" * 1000 + b"\rnew", 10) == "new"


@pytest.mark.parametrize("bomb", [b"\x1b]", b"\x1b[", b"\x1bP\x1b", b"\xc2\x9d", b"\x1b[1;", b"\r", b"\t", b"\x1b"])
def test_a_bomb_costs_no_more_than_its_limit(bomb: bytes) -> None:
    data = bomb * (1_600_000 // len(bomb))
    limit = 200_000
    assert len(clean(data, limit)) <= limit + 1
    assert len(plain(data, limit)) <= limit + 1


def test_a_line_of_ten_megabytes_comes_out_cut_and_the_next_one_whole() -> None:
    splitter = LineSplitter(1000)
    lines: list[bytes] = []
    for _ in range(160):
        lines += splitter.feed(b"x" * 65536)
        assert len(splitter._pending) < 2000
    lines += splitter.feed(b"tail\r\nnext\nlast")
    lines += splitter.finish()
    assert lines == [b"x" * 1000 + CUT_MARK.encode(), b"next", b"last"]


def test_a_progress_bar_without_line_ends_shows_its_last_state() -> None:
    splitter = LineSplitter(1000)
    lines: list[bytes] = []
    for i in range(1000):
        lines += splitter.feed(b"\r%4d of 1000" % i)
    lines += splitter.feed(b"\n")
    assert [plain(line) for line in lines] == [" 999 of 1000"]


@given(st.text() | hostile.map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_whatever_is_printed_is_lines_tabs_and_colours(text: str) -> None:
    shown = harmless(text)
    assert re.sub(r"\x1b\[[\d;:]*m|[\n\t]", "", shown).isprintable()
    assert harmless(shown) == shown


def test_what_is_printed_keeps_lines_tabs_and_colours_and_nothing_else() -> None:
    ours = "stoker: \x1b[1;31mfailed\x1b[0m\n\tgrößer → 12\n"
    assert harmless(ours) == ours
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9b31md\x1b[38:5:1me\x1b[0\x1bm\r\nf\rg\u202eh\udc80"
    assert harmless(evil) == "abc\x1b[31md\x1b[38:5:1me\nf g\ufffdh\ufffd"
