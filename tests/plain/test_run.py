"""The plain and the JSON client with real files and real pipes."""

import asyncio
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest

from stoker.model.state import BuildState, Failure, Job, LogPart, Step
from stoker.model.update import Update
from stoker.show import plain
from stoker.show.json import run_json
from stoker.show.plain import OutputText, run_plain

from .fakes import START, FileLog, ListSource, done, state


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def live(s: BuildState) -> Update:
    return Update(s, "live")


async def test_output_goes_to_stdout_and_narration_to_stderr(tmp_path: Path) -> None:
    path = tmp_path / "log"
    hostile = b"\x1b]52;c;Zm9v\x07\x1b[2J\x1b[31merror [/usr/include/x.h]\x1b[m\x00\xff\n10%\r20%\rready\r\n"
    source = ListSource(
        FileLog(path),
        [
            (lambda: append(path, b"[1/2] one\n" + hostile), live(state(1, 2))),
            (lambda: append(path, b"[2/2] two\nno line end"), Update(done(2), "ended")),
        ],
    )
    out, err = io.StringIO(), io.StringIO()
    await run_plain(source, out, err, colour=False)
    assert (
        out.getvalue()
        == "[1/2] one\nerror [/usr/include/x.h]\N{REPLACEMENT CHARACTER}\nready\n[2/2] two\nno line end\n"
    )
    assert err.getvalue().splitlines()[-1].startswith("stoker: done in 12:34, 2 jobs")
    coloured = io.StringIO()
    await run_plain(source, coloured, io.StringIO(), colour=True)
    assert "\x1b[0;31merror [/usr/include/x.h]\x1b[0m\N{REPLACEMENT CHARACTER}\n" in coloured.getvalue()


async def test_all_output_is_written_before_the_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = 200_000
    source = ListSource(
        FileLog(path),
        [
            (lambda: None, live(state())),
            (lambda: append(path, b"".join(b"line %d\n" % i for i in range(lines))), Update(done(), "ended")),
        ],
    )
    both = io.StringIO()
    await run_plain(source, both, both, colour=False)
    text = both.getvalue().splitlines()
    assert text[-2] == f"line {lines - 1}"
    assert text[-1].startswith("stoker: done")
    assert sum(line.startswith("line ") for line in text) == lines


async def test_a_line_of_ten_megabytes_is_cut_and_what_follows_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"x" * 10_000_000 + b"\nnext\n")
    out = io.StringIO()
    await run_plain(
        ListSource(FileLog(path), [(lambda: None, Update(done(), "ended"))]), out, io.StringIO(), colour=False
    )
    first, second = out.getvalue().splitlines()
    assert first.endswith("x…")
    assert len(first) < 70_000
    assert second == "next"


async def test_output_may_start_late_or_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"old\nnew\n")
    source = ListSource(FileLog(path), [(lambda: None, Update(done(), "ended"))])
    out = io.StringIO()
    await run_plain(source, out, io.StringIO(), colour=False, offset=4)
    assert out.getvalue() == "new\n"
    none = io.StringIO()
    await run_plain(source, none, io.StringIO(), colour=False, show_output=False)
    assert none.getvalue() == ""


def broken_pipe() -> TextIO:
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


async def test_a_reader_that_goes_away_ends_the_output_but_not_the_watching(tmp_path: Path) -> None:
    path = tmp_path / "log"
    source = ListSource(
        FileLog(path),
        [
            (lambda: append(path, b"one\n" * 100_000), live(state(1))),
            (lambda: append(path, b"two\n" * 100_000), live(state(50))),
            (lambda: None, Update(done(), "ended")),
        ],
    )
    err = io.StringIO()
    with broken_pipe() as stdout:
        await run_plain(source, stdout, err, colour=False)
    last = err.getvalue().splitlines()[-1]
    assert last.startswith("stoker: done")
    assert "takes no more" not in err.getvalue()


async def test_a_full_disk_behind_stdout_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"one\n")
    err = io.StringIO()
    with os.fdopen(os.open("/dev/full", os.O_WRONLY), "w") as stdout:
        await run_plain(ListSource(FileLog(path), [(lambda: None, Update(done(), "ended"))]), stdout, err, colour=False)
    assert "stoker: stdout takes no more output: No space left on device; the log has all of it" in err.getvalue()
    assert err.getvalue().splitlines()[-1].startswith("stoker: done")


async def test_a_lost_stderr_does_not_stop_the_output(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"one\n")
    out = io.StringIO()
    with broken_pipe() as stderr:
        await run_plain(ListSource(FileLog(path), [(lambda: None, Update(done(), "ended"))]), out, stderr, colour=False)
    assert out.getvalue() == "one\n"


async def test_a_narrow_encoding_does_not_stop_the_output(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, "größer 漢\n".encode())
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    await run_plain(
        ListSource(FileLog(path), [(lambda: None, Update(done(), "ended"))]), out, io.StringIO(), colour=False
    )
    assert raw.getvalue() == b"gr??er ?\n"


async def test_watching_can_be_left_at_any_time(tmp_path: Path) -> None:
    class Endless(ListSource):
        async def updates(self):  # type: ignore[no-untyped-def]
            yield live(state())
            await asyncio.Event().wait()

    for client in (
        run_plain(Endless(FileLog(tmp_path / "log"), []), io.StringIO(), io.StringIO(), colour=False),
        run_json(Endless(FileLog(tmp_path / "log"), []), io.StringIO()),
    ):
        task = asyncio.create_task(client)
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_json_lines_are_statuses_and_the_last_is_the_end(tmp_path: Path) -> None:
    updates = [live(state(i, name="\x1b[2J\x9b")) for i in range(50)]
    source = ListSource(FileLog(tmp_path / "log"), [(lambda: None, u) for u in [*updates, Update(done(), "ended")]])
    out = io.StringIO()
    await run_json(source, out, interval=30)
    assert out.getvalue().isascii()
    assert out.getvalue().replace("\n", "").isprintable()
    objects = [json.loads(line) for line in out.getvalue().splitlines()]
    assert 1 <= len(objects) <= 3
    assert all(o["type"] == "status" for o in objects)
    assert objects[-1]["link"] == "ended"
    assert objects[-1]["state"] == "done"
    assert objects[-1]["progress"]["finished"] == 100


async def test_json_survives_its_reader(tmp_path: Path) -> None:
    steps = [(lambda: None, live(state(i))) for i in range(50)]
    source = ListSource(FileLog(tmp_path / "log"), [*steps, (lambda: None, Update(done(), "ended"))])
    with broken_pipe() as stdout:
        await run_json(source, stdout, interval=0)


async def test_an_error_of_the_source_is_not_swallowed(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("broken source")

    source = ListSource(FileLog(tmp_path / "log"), [(lambda: None, live(state())), (fail, live(state()))])
    for client in (run_json(source, io.StringIO()), run_plain(source, io.StringIO(), io.StringIO(), colour=False)):
        with pytest.raises(RuntimeError, match="broken source"):
            await client


def test_the_interpreter_ends_quietly_when_the_reader_is_gone(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from fakes import FileLog, ListSource, done\n"
        "from stoker.model.update import Update\n"
        "from stoker.show.plain import run_plain\n"
        "source = ListSource(FileLog(Path(sys.argv[1])), [(lambda: None, Update(done(), 'ended'))])\n"
        "asyncio.run(run_plain(source, sys.stdout, sys.stderr, colour=False))\n"
        "assert not {'textual', 'rich'} & set(sys.modules)\n"
        "sys.exit(7)\n"
    )
    append(tmp_path / "log", b"one\n" * 500_000)
    client = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "log")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    assert client.stderr is not None
    with client:
        assert client.stdout.readline() == "one\n"
        client.stdout.close()
        narration = client.stderr.read()
    assert client.returncode == 7
    assert "Error" not in narration
    assert narration.splitlines()[-1].startswith("stoker: done")


def test_what_a_job_is_said_to_have_failed_of_waits_for_what_became_of_it(tmp_path: Path) -> None:
    """However long the engine needs to find out that a stop has ended it; a real failure waits for nothing."""
    path = tmp_path / "log"
    real = b"[1/9] CXX a.o\nFAILED: [code=1] a.o \ng++ a.cpp\na.cpp:1: error: no\n"
    ended = b"[1/9] CXX b.o\nFAILED: [code=137] b.o \ng++ b.cpp\n"
    path.write_bytes(real + ended)
    output = OutputText(FileLog(path), 0, colour=False)
    read = replace(BuildState().output, read=len(real + ended))
    failed = state(0, 9, failures=(Failure(START, "a.o", "g++ a.cpp", 1, (), 0, 50),), output=read)
    b = Job(2, 1, 200, "b.o", "cxx", START)
    output.state = replace(failed, leaving={2: b}, phase="stopping")
    assert "\n".join(output.lines(None)) + "\n" == real.decode()
    assert output.lines(None) == []
    interrupted = {1: replace(failed.schedulers[1], interrupted=1)}
    output.state = replace(failed, schedulers=interrupted, leaving={}, phase="stopping")
    assert [*output.lines(None), *output.finish()] == [
        "stoker: 1 job was ended by the stop or discarded before it; the build tool reports it as FAILED"
    ]


def test_a_failure_of_which_the_engine_knows_nothing_more_is_shown(tmp_path: Path) -> None:
    """As where a test prints the word, or of more failures than are kept."""
    path = tmp_path / "log"
    path.write_bytes(said := b"FAILED: test_arithmetic\nexpected 4\n")
    output = OutputText(FileLog(path), 0, colour=False)
    output.state = state(0, 9)
    assert output.lines(None) == []
    output.state = state(0, 9, output=replace(BuildState().output, read=len(said)))
    assert "\n".join(output.lines(None)) + "\n" == said.decode()


@pytest.mark.parametrize("chunk", [7, 1 << 18])
def test_jobs_that_ran_again_are_one_line_however_the_output_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """Also where a later attempt fails at one of them."""
    monkeypatch.setattr(plain, "CHUNK", chunk)
    first = b"[1/9] CXX a.o\n" + b"".join(b"[2/9] CXX %d.o\nFAILED: %d.o \ng++ %d.cpp\n" % (n, n, n) for n in range(3))
    second = b"[1/8] CXX 0.o\nFAILED: [code=1] 0.o \ng++ 0.cpp\n0.cpp:1: error: no\n"
    path = tmp_path / "log"
    path.write_bytes(first + second)
    output = OutputText(FileLog(path), 0, colour=False)
    failure = Failure(START, "0.o", "g++ 0.cpp", 1, (), len(first), len(first + second))
    step = Step("build", 1, 1, attempt=2, log_start=len(first))
    output.state = state(0, 9, failures=(failure,), step=step, repeated=(LogPart(0, len(first)),))
    shown: list[str] = []
    while output.offset < output.size():
        shown += output.lines(output.size())
    told = "stoker: 3 jobs were ended or discarded here, and ran again; the build tool reports each as FAILED"
    assert [*shown, *output.finish()] == ["[1/9] CXX a.o", told, *second.decode().splitlines()]


async def test_what_ninja_says_of_dropped_jobs_is_one_line_though_the_state_follows_the_output(tmp_path: Path) -> None:
    path = tmp_path / "log"
    real = b"[1/9] CXX a.o\nFAILED: a.o\ng++ a.cpp\na.cpp:1: error: no\n"
    dropped = b"".join(b"[1/9] CXX %d.o\nFAILED: [code=137] %d.o \ng++ %d.cpp\n" % (n, n, n) for n in range(3))
    failed = state(0, 9, failures=(Failure(START, "a.o", "g++ a.cpp", 1, (), 0, 50),))
    scheduler = replace(failed.schedulers[1], dropped=3)
    ended = replace(failed, schedulers={1: scheduler}, phase="failed", outcome="failed", exit_code=1, ended=START + 9)
    source = ListSource(
        FileLog(path),
        [
            (lambda: append(path, real + dropped), live(failed)),
            (lambda: append(path, b"ninja: build stopped: subcommand failed.\n"), Update(ended, "ended")),
        ],
    )
    out = io.StringIO()
    await run_plain(source, out, io.StringIO(), colour=False)
    *before, told, stopped = out.getvalue().splitlines()
    assert "\n".join(before) + "\n" == real.decode()
    assert "3 jobs that had not started were discarded after the failure" in told
    assert stopped == "ninja: build stopped: subcommand failed."
