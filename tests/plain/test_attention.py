"""A terminal hears of what matters, by bytes that it understands and that no build can choose."""

from __future__ import annotations

import re

import pytest

from stoker.config.attention_settings import AttentionSettings
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState
from stoker.model.update import Link, Update
from stoker.show.attention import BELL, NO_PROGRESS, Attention, notification, wrapped
from stoker.show.terminal_kind import Multiplexer, TerminalKind, Way, kind_of
from tui.builds import HOSTILE, START

ESCAPES = re.compile(
    r"\x1b\](?:2;|9;|777;notify;|99;i=stoker:(?:d=0|p=body);)[^\x00-\x1f\x7f-\x9f]*\x07"
    r"|\x07"
)
"""Title, progress, notification and bell: all that may be sent to a terminal that is not inside another program."""

PLAIN = {"TERM": "xterm-256color"}


def state(name: str = "pytorch", *more: ev.Event) -> BuildState:
    start = ev.BuildStarted("b-1", name, ("ninja",), "/src", "/log", "host", 8, 2**34, "0")
    return reduce_all([ev.Record(n, START + n, e) for n, e in enumerate((start, *more), 1)])


def failure(output: str) -> ev.FailureFound:
    return ev.FailureFound(output, "cc", 1, (), 0, 9)


def ended(reason: str = "exit status 1") -> ev.BuildEnded:
    return ev.BuildEnded("failed", 1, reason)


def seen(attention: Attention, *states: BuildState, link: Link = "live") -> str:
    return "".join(attention.look(Update(one, link)) for one in states)


@pytest.mark.parametrize(
    ("environ", "way", "inside"),
    [
        ({"TERM": "xterm-kitty"}, "osc99", ""),
        ({**PLAIN, "KITTY_WINDOW_ID": "1"}, "osc99", ""),
        ({**PLAIN, "LC_TERMINAL": "iTerm2"}, "osc9", ""),
        ({**PLAIN, "TERM_PROGRAM": "WezTerm"}, "osc777", ""),
        ({"TERM": "xterm-ghostty"}, "osc777", ""),
        ({"TERM": "foot-extra"}, "osc777", ""),
        ({**PLAIN, "VTE_VERSION": "7600"}, "osc777", ""),
        ({**PLAIN, "TERM_PROGRAM": "vscode", "VTE_VERSION": "7600"}, "bell", ""),
        (PLAIN, "bell", ""),
        ({"TERM": "linux"}, "bell", ""),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/t,1,0", "TERM_PROGRAM": "tmux", "LC_TERMINAL": "iTerm2"},
            "osc9",
            "tmux",
        ),
        ({"TERM": "screen-256color", "STY": "1.pts-0", "KITTY_WINDOW_ID": "1"}, "osc99", "screen"),
    ],
)
def test_the_way_follows_from_the_environment(environ: dict[str, str], way: str, inside: str) -> None:
    kind = kind_of(environ)
    assert (kind.way, kind.inside) == (way, inside)


def test_tmux_knows_which_terminal_shows_it() -> None:
    environ = {"TERM": "tmux-256color", "TMUX": "/tmp/t,1,0", "KITTY_WINDOW_ID": "1"}
    assert kind_of(environ, "xterm-256color iTerm2 3.5.1").way == "osc9"
    assert kind_of(environ, "xterm-256color WezTerm 20240203").way == "osc777"
    assert kind_of(environ, "foot foot(1.16)").way == "osc777"


def kind(way: Way, inside: Multiplexer = "", *, certain: bool = True) -> TerminalKind:
    return TerminalKind(way, certain=certain, progress=False, title=True, inside=inside)


@pytest.mark.parametrize("way", ["osc9", "osc777", "osc99"])
def test_a_terminal_that_may_not_show_it_gets_the_bell_too(way: Way) -> None:
    text = "stoker: b is done"
    assert not notification(kind(way), text).endswith("\x07\x07")
    assert notification(kind(way, certain=False), text).endswith("b is done\x07\x07")
    assert notification(kind(way, "tmux", certain=False), text).endswith("\x1b\\\x07")
    assert notification(kind("bell", "tmux"), text) == BELL


def test_what_is_news_is_said_once() -> None:
    attention = Attention({"TERM": "xterm-kitty"}, AttentionSettings())
    running, failed = state(), state("pytorch", failure("a.o"))
    over = state("pytorch", failure("a.o"), ended())
    first = seen(attention, running)
    assert "]99;" not in first
    assert "]2;pytorch" in first
    assert "a.o failed" in seen(attention, failed)
    assert seen(attention, failed) == ""
    assert "failed after" in seen(attention, over)
    assert seen(attention, over) == ""


def test_what_had_happened_before_one_looked_is_no_news() -> None:
    attention = Attention({"TERM": "xterm-kitty"}, AttentionSettings(title="no"))
    assert seen(attention, BuildState(), state("b", failure("a.o"), ended())) == ""


def test_a_replay_announces_nothing() -> None:
    attention = Attention(PLAIN, AttentionSettings(progress="yes"))
    assert (
        seen(attention, state(), state("b", ended()), link="replay") == "\x1b]2;pytorch starting\x07\x1b]2;b failed\x07"
    )


def test_settings_decide() -> None:
    over = (state(), state("b", ended()))
    quiet = AttentionSettings("off", "no", "no")
    assert seen(Attention(PLAIN, quiet), *over) == ""
    assert seen(Attention({"TERM": "xterm-kitty"}, AttentionSettings("bell", "no", "no")), *over) == BELL
    assert seen(Attention(PLAIN, AttentionSettings("osc9", "no", "no")), *over).startswith("\x1b]9;stoker: b failed")


def test_progress_goes_to_those_who_show_it_and_is_taken_away() -> None:
    windows = Attention({**PLAIN, "WT_SESSION": "x"}, AttentionSettings("off", "auto", "no"))
    assert seen(windows, state()).startswith("\x1b]9;4;")
    assert windows.end() == NO_PROGRESS
    assert seen(Attention(PLAIN, AttentionSettings("off", "auto", "no")), state()) == ""


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("term", ["xterm-kitty", "foot", "xterm-256color"])
def test_nothing_of_a_build_reaches_an_escape(hostile: str, term: str) -> None:
    environ = {"TERM": term, "LC_TERMINAL": "iTerm2"}
    attention = Attention(environ, AttentionSettings(progress="yes"))
    sent = seen(
        attention, state("quiet"), state(hostile, failure(hostile)), state(hostile, failure(hostile), ended(hostile))
    )
    assert "failed" in sent
    assert [piece for piece in ESCAPES.split(sent) if piece] == []
    sent.encode()


def test_inside_a_multiplexer_an_escape_is_handed_on_whole() -> None:
    escape = "\x1b]99;i=stoker:d=0;a\x07\x1b]99;i=stoker:p=body;b\x07"
    assert wrapped(escape, "tmux") == f"\x1bPtmux;{escape.replace(chr(27), chr(27) * 2)}\x1b\\"
    assert wrapped(escape, "screen") == "\x1bP\x1b]99;i=stoker:d=0;a\x07\x1b\\\x1bP\x1b]99;i=stoker:p=body;b\x07\x1b\\"
    longest = notification(kind("osc777", "screen"), "stoker: " + "漢" * 152)
    assert all(len(part.encode()) < 768 for part in longest.split("\x1b\\"))
