"""The full-screen viewer as a person has it: in a real terminal, by its keys, with what happens to terminals."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.act.tree import descendants, signal_tree
from stoker.contract.process import start_ticks
from support.program import PYPI_NINJA, Stoker, stop_supervisors, supervisors_in, until, write_ninja, write_project
from support.terminal import Terminal, harmful

Open = Callable[..., Terminal]

WAIT = "while [ ! -e go ]; do sleep 0.2; done"
"""A job that lasts until the test touches `go`: what is seen meanwhile does not depend on the clock."""

ENTER, ESCAPE, CTRL_C, LEFT = "\r", "\x1b", "\x03", "\x1b[D"


@pytest.fixture
def open_terminal(stoker: Stoker) -> Iterator[Open]:
    """Opens terminals with the program in them."""
    opened: list[Terminal] = []

    def open_one(*words: str, columns: int = 80, lines: int = 24, **env: str) -> Terminal:
        environment = {**stoker.env, "LC_ALL": "C.UTF-8", **env}
        opened.append(Terminal(stoker.argv(*words), environment, stoker.root, columns, lines))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    """Seven jobs: three are quick, for which a level of five always has a place, and four run until `go` is there."""
    quick = [(f"src/quick{n}.o", f"touch src/quick{n}.o") for n in range(3)]
    slow = [(f"src/slow{n}.o", f"{WAIT}; touch src/slow{n}.o") for n in range(4)]
    folder = write_ninja(tmp_path / "gated", [*quick, *slow])
    (folder / "src").mkdir()
    return folder


def ninja(folder: Path) -> tuple[str, ...]:
    return ("ninja", "-C", str(folder), "-j8")


def three_of_seven(screen: str) -> bool:
    """The dashboard in mid-build: the counts on the progress line, and the running jobs by name."""
    lines = screen.splitlines()
    return "3/7" in lines[1] and all(f"src/slow{n}.o" in screen for n in range(4))


TAKEN = ("stop the build?", "only what has these words", "yes yes yes yes")
"""What is on a screen that has taken a text for an answer or for a filter."""


def escape(terminal: Terminal, box: str) -> None:
    """Press Escape and wait for a box to go; the next key would otherwise be taken for one with Alt."""
    terminal.send(ESCAPE)
    terminal.wait_for(lambda _: True, gone=box)


def test_a_build_is_seen_from_its_start_to_its_end(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    screen = terminal.wait_for(three_of_seven)
    header, progress = screen.splitlines()[:2]
    assert header.startswith("gated  ninja -C ")
    assert "running" in header
    assert "42 %" in progress
    assert re.search(r"^memory .* of \d+(\.\d)? G", screen, re.MULTILINE)
    assert re.search(r"^jobs .* 4 running", screen, re.MULTILINE)
    assert "s stop" in screen.splitlines()[-1]
    (gated / "go").touch()
    screen = terminal.wait_for("exit code 0")
    assert "7 done" in screen
    assert "s stop" not in screen.splitlines()[-1]
    terminal.send("q")
    assert terminal.wait() == 0
    assert b"stoker: gated done, " in terminal.raw
    assert harmful(terminal.raw) == []


def test_with_its_messages_in_a_file_plain_lines_go_there(stoker: Stoker, tmp_path: Path) -> None:
    """The full screen is drawn on stderr: in a file it would be of use to nobody."""
    folder, messages = write_ninja(tmp_path / "short", [("o", "touch o")]), tmp_path / "messages"
    command = stoker.argv("run", "--", PYPI_NINJA, "-C", str(folder))
    terminal = Terminal(["sh", "-c", 'exec "$@" 2>"$0"', str(messages), *command], stoker.env, stoker.root)
    try:
        assert terminal.wait() == 0
    finally:
        terminal.close()
    text = messages.read_bytes()
    assert b"stoker: done" in text
    assert b"\x1b" not in text + terminal.raw


@pytest.mark.long
def test_leaving_gives_the_terminal_back_as_it_was_and_leaves_the_build_running(
    stoker: Stoker, open_terminal: Open, gated: Path
) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    terminal.send("q")
    assert terminal.wait() == 75
    assert terminal.restored
    before, _, after = terminal.raw.rpartition(b"\x1b[?1049l")
    assert before.startswith(b"\x1b[?1049h")
    assert after.count(b"\x1b[23;2t") == 1, "the title is given back, too"
    last_words = re.sub(rb"\x1b\[(\?\d+[hl]|<u|0?m|23;2t)", b"", after)
    build = stoker.begun()
    said = f"stoker: the build goes on; look again with: stoker attach {build}\r\n"
    assert last_words.decode().lstrip() == said
    again = open_terminal("attach", build)
    again.wait_for(three_of_seven)
    (gated / "go").touch()
    assert "7 done" in again.wait_for("exit code 0")
    again.send("q")
    assert again.wait() == 0
    assert stoker.ended(build)["progress"]["finished"] == 7


def test_a_compile_error_is_shown_and_is_the_exit_status(stoker: Stoker, open_terminal: Open, tmp_path: Path) -> None:
    folder = write_project(tmp_path / "bad", 2, broken=[1])
    terminal = open_terminal("run", "--", "ninja", "-C", str(folder))
    screen = terminal.wait_for("exit code 1")
    assert "failed" in screen.splitlines()[0]
    assert "unit1.cpp.o" in screen
    terminal.send("f")
    terminal.wait_for(lambda s: "no_such_name" in s and "The source does not compile" in s)
    terminal.send("q")
    assert terminal.wait() == 1
    assert b"stoker: bad failed" in terminal.raw
    assert b"A step was killed" not in terminal.raw  # what was dropped from the deck is no failure


@pytest.mark.parametrize("how", ["left", pytest.param("killed", marks=pytest.mark.long)])
def test_whoever_comes_back_is_told_what_happened_meanwhile(
    stoker: Stoker, open_terminal: Open, tmp_path: Path, how: str
) -> None:
    jobs = [(name, f"while [ ! -e {name}.go ]; do sleep 0.2; done; touch {name}") for name in ("first.o", "second.o")]
    folder = write_ninja(tmp_path / "two", jobs)
    viewer = open_terminal("run", "--", *ninja(folder))
    viewer.wait_for(lambda screen: "first.o" in screen and "since you left" not in screen)
    remembered = stoker.folder(stoker.begun()) / "last-look.json"
    if how == "left":
        viewer.send("q")
    else:
        until(remembered.exists)
        viewer.process.kill()
    viewer.process.wait()
    assert remembered.stat().st_mode & 0o777 == 0o600

    (folder / "first.o.go").touch()
    until(lambda: stoker.status()["progress"]["finished"] == 1)
    look = json.loads(remembered.read_text())
    remembered.write_text(json.dumps({**look, "time": look["time"] - 3600}))  # an hour goes by
    again = open_terminal("attach")
    again.wait_for(lambda screen: "since you left 1:00:" in screen and "ago: 1 job done" in screen)
    again.send("t")
    again.send("t")
    again.wait_for(lambda screen: "second.o" in screen, gone="since you left")


@pytest.mark.long
def test_an_ended_build_can_be_looked_at_again_and_has_its_status(stoker: Stoker, open_terminal: Open) -> None:
    build = stoker.detach("sh", "-c", "echo last words; exit 3")
    stoker.ended(build)
    terminal = open_terminal("attach", build)
    terminal.wait_for("exit code 3")
    terminal.send("o")
    terminal.wait_for("last words")
    terminal.send("q")
    assert terminal.wait() == 3


def test_a_viewer_that_hangs_up_takes_nothing_along(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    terminal.hang_up()
    (gated / "go").touch()
    status = stoker.ended(stoker.begun())
    assert (status["state"], status["progress"]["finished"], status["progress"]["total"]) == ("done", 7, 7)


def test_a_killed_engine_is_told_and_the_screen_finds_the_next(
    stoker: Stoker, open_terminal: Open, gated: Path
) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    build = stoker.begun()
    supervisors = supervisors_in(stoker.supervisor(build))
    stop_supervisors(
        stoker.supervisor(build)
    )  # or a new engine would be there before anybody saw that the old one was not
    try:
        os.kill(stoker.engine_pid(build), signal.SIGKILL)
        terminal.wait_for("engine lost")
        (gated / "go").touch()
        until(lambda: (gated / "src/slow3.o").exists(), "the build going on alone")
    finally:
        signal_tree(supervisors, signal.SIGCONT)
    screen = terminal.wait_for("exit code 0", gone="engine lost")
    assert "7 done" in screen
    terminal.send("q")
    assert terminal.wait() == 0
    finished = [e["output"] for e in stoker.events(build) if e["type"] == "job_finished"]
    assert len(finished) == len(set(finished)) == 7


NASTY = b"\n".join(
    (
        b"\x1b]52;c;ZXZpbA==\x07clipboard",
        b"\x1b[2J\x1bc\x1b[3Jcleared",
        b"\x1b]0;owned\x07\x1b]2;owned\x1b\\title",
        b"/a.h:1: error: [/usr/include/x.h]",
        b"[@click=app.quit]x[/] [/red] [bold",
        b"nul \x00 bell \x07 back \x08\x08 shift \x0e delete \x7f",
        b"\x9b2J\xc2\x9b2J\xc2\x9d0;owned\x9cone",
        b"\xff\xfe invalid \xc3( \xed\xa0\x80",
        "\u202egnp.exe\u202c bidi \u2066x\u2069 \u200b".encode(),
        b"\x1b[31mred\x1b[0m \x1b[8mhidden\x1b[0m \x1b[5mblink",
        b"\x1bP1;1|17/6d\x1b\\ dcs \x1b_apc\x1b\\ \x1b^pm\x1b\\",
        b"\rover\rwritten \x0b\x0c and fed",
        b"\x1b[6n\x1b[c\x1b[>c\x1b[21t\x05 asked",
        b"x" * 10_000_000,
        b"the last line\n",
    )
)


@pytest.mark.long
def test_hostile_output_harms_no_terminal_and_is_kept_to_the_byte(
    stoker: Stoker, open_terminal: Open, tmp_path: Path
) -> None:
    (tmp_path / "nasty").write_bytes(NASTY)
    (tmp_path / "script").write_text(f"cat nasty\n{WAIT}\n")
    terminal = open_terminal("run", "--", "sh", "script")
    terminal.wait_for("the last line")
    terminal.send("o")
    terminal.wait_for("follows the build")
    terminal.send("g")
    screen = terminal.wait_for("clipboard")
    assert "/a.h:1: error: [/usr/include/x.h]" in screen
    assert "[@click=app.quit]x[/] [/red] [bold" in screen
    assert "cleared" in screen
    assert "title" in screen
    terminal.send("E")
    terminal.wait_for("1 line that looks like an error", gone="clipboard")
    terminal.send("E")
    terminal.wait_for("clipboard")
    terminal.send("/")
    terminal.wait_for(lambda s: s.splitlines()[-1].startswith("/ words to find"))
    terminal.send("[@click" + ENTER)
    terminal.wait_for(lambda s: "[@click=app.quit]x[/]" in s and "1 of 1" in s)
    (tmp_path / "go").touch()
    until(lambda: stoker.status()["ended"], "the end")
    terminal.send("q")
    assert terminal.wait() == 0
    assert (stoker.folder(stoker.begun()) / "output.log").read_bytes() == NASTY
    raw = terminal.raw
    assert harmful(raw) == []
    assert b"ZXZpbA" not in raw
    assert b"owned" not in raw
    assert not set("\u202e\u202c\u2066\u2069\u200b") & set(raw.decode())


NAMES = ("[/red]a[/].o", "[@click=app.quit]b[/].o", "c\u202egnp.o", "d\x1b]52;c;ZXZpbA==\x07.o", "e\x9b2J\x1b[2J.o")


@pytest.mark.long
def test_hostile_names_are_shown_harmlessly_on_every_screen(
    stoker: Stoker, open_terminal: Open, tmp_path: Path
) -> None:
    waiting = [(name, f"{WAIT}; : {n}") for n, name in enumerate(NAMES)]
    folder = write_ninja(tmp_path / "p", [("[/f]ail.o", "echo '[/x]'; exit 9"), *waiting])
    terminal = open_terminal("run", "--name", "[/n]\x1b]0;t\x07me", "-j", "4", "--", *ninja(folder), "-k0")
    screen = terminal.wait_for(lambda s: "1 failed" in s and "[/red]a[/].o" in s)
    assert "[@click=app.quit]b[/].o" in screen
    assert screen.startswith("[/n]me")
    terminal.send(ENTER)  # picks the first job
    terminal.send(ENTER)
    terminal.wait_for("─ job ─")
    escape(terminal, "─ job ─")
    terminal.send("f")
    terminal.wait_for(lambda s: "failures 1" in s and "[/f]ail.o" in s and "its output" in s)
    terminal.send("t")
    terminal.wait_for("running jobs")
    terminal.send("s")
    terminal.wait_for("stop the build?")
    escape(terminal, "stop the build?")
    (folder / "go").touch()
    until(lambda: stoker.status()["ended"], "the end")
    terminal.send("q")
    assert terminal.wait() == 9
    assert harmful(terminal.raw) == []
    assert b"ZXZpbA" not in terminal.raw
    assert "\u202e" not in terminal.raw.decode()
    outputs = {e["output"] for e in stoker.events(stoker.begun()) if e["type"] == "job_finished"}
    assert set(NAMES) <= outputs


def test_stopping_asks_and_then_ends_everything(stoker: Stoker, open_terminal: Open, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "long", [(f"o{n}", f"sleep 1000; : {n}") for n in range(3)])
    terminal = open_terminal("run", "-j", "4", "--", *ninja(folder))
    terminal.wait_for("3 running")
    build = stoker.begun()
    tree = [p for p in descendants(stoker.supervisor(build)["supervisor_pid"]) if p != stoker.engine_pid(build)]
    assert len(tree) >= 4
    terminal.send("s")
    terminal.wait_for("stop the build?")
    escape(terminal, "stop the build?")
    assert "3 running" in terminal.display
    assert stoker.status(build)["state"] == "running"
    terminal.send("s")
    terminal.wait_for("stop the build?")
    terminal.answer("y")
    assert "stopped" in terminal.wait_for("stopped by ").splitlines()[0]
    terminal.send("q")
    assert terminal.wait() == 130
    assert not [p for p in tree if start_ticks(p) is not None]
    assert stoker.ended(build)["state"] == "stopped"


def test_ctrl_c_asks_instead_of_killing(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    terminal.send(CTRL_C)
    terminal.wait_for("stop the build?")
    terminal.send(CTRL_C)
    escape(terminal, "stop the build?")
    terminal.wait_for(three_of_seven)
    (gated / "go").touch()
    terminal.wait_for("exit code 0")
    terminal.send(CTRL_C)
    assert terminal.wait() == 0


def test_a_read_only_viewer_is_offered_no_stop(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    build = stoker.detach(*ninja(gated), jobs=4)
    terminal = open_terminal("attach", "--read-only", build)
    screen = terminal.wait_for(three_of_seven)
    assert "read-only" in screen.splitlines()[0]
    assert "stop" not in screen.splitlines()[-1]
    terminal.send("s")
    terminal.send("o")
    assert "stop the build?" not in terminal.wait_for("follows the build")
    terminal.send(CTRL_C)
    assert terminal.wait() == 0
    assert stoker.status(build)["state"] == "running"


@pytest.mark.long
def test_two_viewers_see_the_same_and_one_that_is_killed_takes_nothing_along(
    stoker: Stoker, open_terminal: Open, gated: Path
) -> None:
    first = open_terminal("run", "-j", "5", "--", *ninja(gated))
    first.wait_for(three_of_seven)
    second = open_terminal("attach", stoker.begun(), columns=120, lines=40)
    second.wait_for(three_of_seven)
    first.kill()
    (gated / "go").touch()
    assert "7 done" in second.wait_for("exit code 0")
    second.send("q")
    assert second.wait() == 0


@pytest.mark.parametrize(("columns", "lines"), [(60, 20), pytest.param(200, 60, marks=pytest.mark.long)])
def test_every_size_and_a_change_of_it_shows_the_build(
    open_terminal: Open, gated: Path, columns: int, lines: int
) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated), columns=columns, lines=lines)
    screen = terminal.wait_for(three_of_seven)
    assert len(screen.splitlines()[0]) > columns - 2  # the clock stands at the right edge
    terminal.resize(100, 30)
    terminal.wait_for(lambda s: three_of_seven(s) and 98 < len(s.splitlines()[0]) <= 100)
    terminal.resize(20, 4)
    terminal.resize(columns, lines)
    terminal.wait_for(lambda s: three_of_seven(s) and len(s.splitlines()[0]) > columns - 2)
    (gated / "go").touch()
    terminal.wait_for("exit code 0")
    terminal.send("q")
    assert terminal.wait() == 0
    assert harmful(terminal.raw) == []


def test_a_dumb_terminal_gets_plain_lines(open_terminal: Open, gated: Path) -> None:
    (gated / "go").touch()
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated), TERM="dumb")
    assert terminal.wait() == 0
    assert b"\x1b" not in terminal.raw
    assert b"stoker: done in " in terminal.raw
    assert b", 7 jobs" in terminal.raw


@pytest.mark.long
def test_a_recorded_build_is_played_in_the_same_screens(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    build = stoker.detach(*ninja(gated), jobs=4)
    until(lambda: stoker.status(build)["progress"]["running"] == 4, "four jobs")
    (gated / "go").touch()
    stoker.ended(build)
    terminal = open_terminal("replay", build, "--speed", "50")
    assert "7 done" in terminal.wait_for("exit code 0")
    terminal.send(" ")
    terminal.send(LEFT)
    screen = terminal.wait_for("replay", gone="exit code 0")
    assert "stop" not in screen.splitlines()[-1]
    terminal.send(" ")
    terminal.wait_for("exit code 0")
    terminal.send("q")
    assert terminal.wait() == 0


@pytest.mark.long
def test_a_theme_changes_as_it_is_saved_and_keys_are_the_persons_own(
    stoker: Stoker, open_terminal: Open, gated: Path
) -> None:
    config = stoker.root / "config/stoker"
    (config / "themes").mkdir(parents=True)
    theme = config / "themes/mine.yaml"
    theme.write_text('extends: dark\ncolors:\n  accent: "#010203"\n')
    (config / "settings.yaml").write_text("theme: mine\nkeys:\n  detach: x\n")
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated), COLORTERM="truecolor")
    assert "x leave" in terminal.wait_for(three_of_seven)
    assert b"38;2;1;2;3" in terminal.raw
    theme.write_text('extends: dark\ncolors:\n  accent: "#040506"\n')
    until(lambda: b"38;2;4;5;6" in terminal.raw, "the new colour")
    theme.write_text("extends: dark\ncolors:\n  acent: x\n")
    until(lambda: b"mine.yaml:3:" in terminal.raw, "what is wrong with it")
    terminal.send("x")
    assert terminal.wait() == 75


def test_a_theme_that_is_not_there_is_named_before_anything_runs(open_terminal: Open, stoker: Stoker) -> None:
    terminal = open_terminal("run", "--theme", "drak", "--", "true")
    assert terminal.wait() == 2
    assert terminal.raw == b"stoker: no theme 'drak'; did you mean 'dark'?; 'stoker themes list' shows them\r\n"
    assert not stoker.folder("").exists()


@pytest.mark.long
def test_ascii_without_colour_is_only_that(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    (stoker.root / "config/stoker").mkdir(parents=True)
    (stoker.root / "config/stoker/settings.yaml").write_text("ascii: yes\n")
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated), NO_COLOR="1")
    terminal.wait_for(three_of_seven)
    terminal.send("q")
    assert terminal.wait() == 75
    assert terminal.raw.isascii()
    assert not re.search(rb"\x1b\[[0-9;]*[34]8;[25];[0-9;]*m", terminal.raw)


@pytest.mark.long
def test_letters_that_arrive_in_one_piece_stop_nothing(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    terminal.send("o")
    terminal.wait_for("follows the build")
    terminal.send("/tasky")  # a paste, or a slow link: "s", "k" and "y" may arrive before the search line is open
    terminal.send("t")
    terminal.wait_for(lambda s: "stop the build?" in s or "search" in s or "running jobs" in s)
    assert stoker.status()["state"] == "running"


@pytest.mark.long
@pytest.mark.parametrize("gap", [0.0, 0.05], ids=["at once", "letter by letter"])
def test_a_text_typed_into_the_wrong_window_stops_nothing(
    stoker: Stoker, open_terminal: Open, gated: Path, gap: float
) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    for page in ("", "t", "d"):
        for letter in f"{page}/task: yes, stop and kill, yes yes yes yes":
            terminal.send(letter)
            time.sleep(gap)
        # Where a page has a filter, the words go there; all in one piece, some are dropped.
        terminal.wait_for(lambda s: any(line in s for line in TAKEN))
        terminal.send(ESCAPE)
        terminal.wait_for(lambda s: not any(line in s for line in TAKEN))
        status = stoker.status()
        assert (status["state"], status["progress"]["running"], status["progress"]["failed"]) == ("running", 4, 0)


def test_a_paste_that_the_terminal_marks_as_one_does_nothing(stoker: Stoker, open_terminal: Open, gated: Path) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    before = terminal.wait_for(three_of_seven).splitlines()
    for page in ("", "o", "t", "d", "?"):
        terminal.send(page)
        terminal.send("\x1b[200~+p-P9skqyX/task\r\x1b[201~")
        if page:
            terminal.wait_for(lambda s: not three_of_seven(s))
            terminal.send(page)
        after = terminal.wait_for(three_of_seven).splitlines()
        assert (after[-1], terminal.process.poll()) == (before[-1], None), page
    status = stoker.status()
    assert (status["state"], status["level"]["mode"], status["level"]["target"]) == ("running", "manual", 5)


@pytest.mark.long
def test_a_terminated_viewer_gives_the_terminal_back(open_terminal: Open, gated: Path) -> None:
    terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    terminal.wait_for(three_of_seven)
    terminal.process.terminate()
    terminal.wait()
    assert terminal.restored
    assert b"\x1b[?1049l" in terminal.raw


@pytest.mark.long
def test_a_viewer_that_nobody_can_see_ends_even_where_hang_ups_are_ignored(
    stoker: Stoker, open_terminal: Open, gated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        terminal = open_terminal("run", "-j", "5", "--", *ninja(gated))
    finally:
        signal.signal(signal.SIGHUP, handler)
    terminal.wait_for(three_of_seven)
    terminal.hang_up()  # fails by its patience: the viewer goes on at 90 % of a core


@pytest.mark.long
def test_the_builds_of_a_folder_are_listed_looked_at_and_compared(stoker: Stoker, open_terminal: Open) -> None:
    folder = write_ninja(stoker.root, [("a.o", "touch a.o")])
    builds = []
    for _ in range(2):
        (folder / "a.o").unlink(missing_ok=True)
        builds.append(stoker.detach("ninja", cwd=folder))
        assert stoker.ended(builds[-1])["state"] == "done"
    terminal = open_terminal("history")
    terminal.wait_for(lambda screen: all(build[-4:] in screen for build in builds))
    terminal.send(ENTER)
    terminal.wait_for("CPU time")
    terminal.send(ESCAPE)
    terminal.wait_for("2 builds of")
    terminal.send(" jc")
    terminal.wait_for("in all")
    terminal.send("q")
    assert terminal.wait() == 0
    assert harmful(terminal.raw) == []
    plain = stoker.run("history", "--builds", cwd=folder).stdout.decode()
    assert all(build[-4:] in plain for build in builds)
