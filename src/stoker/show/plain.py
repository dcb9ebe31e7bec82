"""Shows a build as plain lines, for pipes, dumb terminals and CI: its output on stdout, stoker's own lines on stderr.

Does not know how the state was obtained, and never imports Textual. All text from the build passes the sanitiser.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import sys
import time
from collections import deque
from typing import NamedTuple, TextIO

from stoker.diagnose.dropped_blocks import BlockFilter, failed_output, find_failed
from stoker.diagnose.output_parts import OutputPart, folds_any, part_at, parts_of
from stoker.model.killed import has_dropped
from stoker.model.progress import not_run, progress_of
from stoker.model.state import BuildState, Failure, Notice, Scheduler
from stoker.model.text import Ink, LineSplitter, Span, clean, sgr, spans
from stoker.model.units import format_bytes, format_duration
from stoker.model.update import Update
from stoker.show import budget_text, cache_text, killed_text, remote_text
from stoker.show.attention import Attention
from stoker.show.governing_text import MAX_NAME, GoverningReporter, newer
from stoker.show.left_text import frozen_text, left_text, stalled_text
from stoker.show.level_text import share_text, uncounted, ungoverned
from stoker.show.sink import Sink
from stoker.show.update_source import OutputLog, UpdateSource
from stoker.show.verification_text import closing_lines

INTERVAL = 10.0
"""Seconds between two progress lines: CI systems treat ten silent minutes as a hang; people lose patience sooner."""

MAX_BURST = 10
"""Maximum lines of one kind per update; a viewer that joins late sees the number of the others."""

MAX_VERDICT = 600
"""Maximum characters of a line of the verdict: a path, its problem, and the remedy."""

MAX_LINE = 64 * 1024
"""Maximum bytes of one output line that are passed on; the log file has the whole line."""

HARMLESS = re.compile(rb"(?:[\x20-\x7e]{0,4096}\n)*")
"""Lines that the sanitiser leaves unchanged: ASCII, no control characters (tabs become spaces), not too long."""

CHUNK = 256 * 1024
POLL, QUIET_POLL = 0.2, 0.8
"""Bytes of output read at once; seconds between two reads while there is no output, at first and later."""

SETTLED = 20.0
"""Seconds after which a failure in the output is shown even if the state says nothing of that job: no engine is slower
to find out whether it was dropped or interrupted, unless it is gone."""

PLAN_SECONDS = 5.0
"""How long the level waits to be reported after the first build tool and a ninja's plan; what goes on without these is
not kept back."""

_STEP = 10
"""Percent of progress after which a line is written before its time."""

_GIB = 2**30
_GOOD, _BAD, _WARN, _DIM = Ink(fg="green", bold=True), Ink(fg="red", bold=True), Ink(fg="yellow"), Ink(dim=True)


async def run_plain(
    source: UpdateSource,
    stdout: TextIO,
    stderr: TextIO,
    *,
    colour: bool,
    show_output: bool = True,
    offset: int = 0,
    attention: Attention | None = None,
) -> None:
    """Follow a build to its end. All output from byte `offset` of its log on is written before the last narration line.

    `attention` is for a terminal on stderr; its escapes bypass the sanitiser. If the reader of stdout goes away, the
    copying ends, but not the watching; the build never notices either.
    """
    renderer = PlainRenderer(colour=colour)
    out, err, aside = Sink(stdout), Sink(stderr), Sink(sys.__stderr__ or stderr)
    over = asyncio.Event()
    output = OutputText(source.log, offset, colour=colour)
    copier = asyncio.create_task(_copy(output, out, err, over)) if show_output else None
    try:
        async for update in source.updates():
            output.state = update.state
            if update.link == "ended" or update.state.over:
                over.set()
                if copier is not None:
                    await copier
            now = update.state.time if update.link == "replay" else time.time()
            await err.write(renderer.update(update, now))
            await aside.send(attention.look(update) if attention is not None else "")
        over.set()
        if copier is not None:
            await copier
    finally:
        if copier is not None:
            copier.cancel()
            await asyncio.wait([copier])
        await aside.send(attention.end() if attention is not None else "")


async def _copy(output: OutputText, out: Sink, err: Sink, over: asyncio.Event) -> None:
    """Copy the sanitised log to stdout until the build is over and the log is read to its end."""
    end: int | None = None
    pause = POLL
    while not out.broken:
        if over.is_set() and end is None:
            end = output.size()
        before = output.offset
        await out.write(output.lines(end))
        if output.offset > before:
            pause = POLL
            continue
        if end is not None:
            break
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), pause)
        pause = min(2 * pause, QUIET_POLL)
    await out.write(output.finish())
    if out.error is not None and not isinstance(out.error, BrokenPipeError):
        await err.write([f"stoker: stdout takes no more output: {out.error.strerror}; the log has all of it"])


class OutputText:
    """The log as sanitised lines, read in portions from `offset` on. One line replaces what the build tool prints about
    dropped jobs; `state` says which jobs are known to be dropped so far."""

    def __init__(self, log: OutputLog, offset: int, *, colour: bool) -> None:
        self.offset = offset
        self.state = BuildState()
        self._log = log
        self._colour = colour
        self._splitter = LineSplitter(MAX_LINE)
        self._blocks = BlockFilter()
        self._sizes: deque[tuple[float, int]] = deque()
        self._settled = offset

    def size(self) -> int:
        """Bytes written to the log so far."""
        return self._log.size()

    def lines(self, end: int | None) -> list[str]:
        """Return the lines of the next portion. `end` is where the log ends; None if the build still writes."""
        part = part_at(parts_of(self.state), self.offset)
        limit = part.end if end is None else min(part.end, end)
        data = self._log.read(self.offset, min(CHUNK, limit - self.offset))
        if end is None and part.by != "rerun":
            data = self._certain(data)
        self.offset += len(data)
        if not folds_any(self.state):
            return _output_lines(self._splitter, data, colour=self._colour)
        lines = self._splitter.feed(data)
        shown = [self._line(piece, part) for line in lines for piece in self._blocks.feed(line, part.is_dropped)]
        if self.offset == part.end:
            shown += [self._line(piece, part) for piece in self._blocks.finish()]
        return shown

    def finish(self) -> list[str]:
        """Return the last lines, when nothing more will be read."""
        part = part_at(parts_of(self.state), self.offset)
        last = [piece for line in self._splitter.finish() for piece in self._blocks.feed(line, part.is_dropped)]
        return [self._line(piece, part) for piece in (*last, *self._blocks.finish())]

    def _line(self, piece: bytes | int, part: OutputPart) -> str:
        if isinstance(piece, bytes):
            return _output_line(piece, colour=self._colour)
        return sgr([Span(f"stoker: {killed_text.dropped_text(piece, part.by)}", _DIM)], colour=self._colour)

    def _certain(self, data: bytes) -> bytes:
        """Return `data` up to the first failed job that may still turn out to be dropped.

        The state lags the output by up to a second.
        """
        now = time.monotonic()
        self._sizes.append((now, self.size()))
        while self._sizes and now - self._sizes[0][0] >= SETTLED:
            self._settled = max(self._settled, self._sizes.popleft()[1])
        start = max(0, self._settled - self.offset)
        while (failed := find_failed(data, start)) >= 0:
            start = _end_of_report(data, failed)
            if not start or not self._is_clear(data[failed:start], self.offset + start):
                return data[:failed]
        return data

    def _is_clear(self, report: bytes, end: int) -> bool:
        """Say whether the state knows what became of the job that a report up to byte `end` of the log calls failed."""
        output = failed_output(report)
        if output and any(clean(failure.output) == output for failure in self.state.failures):
            return True
        jobs = (*self.state.jobs.values(), *self.state.leaving.values())
        is_open = any(clean(job.output) == output for job in jobs)
        return self.state.output.read >= end and (has_dropped(self.state) or not is_open)


def _end_of_report(data: bytes, start: int) -> int:
    """Return the end of the line that reports the failure which starts at `start`, perhaps with a status line; 0 if
    that is not complete yet."""
    end = data.find(b"\n", start) + 1
    return data.find(b"\n", end) + 1 if end and find_failed(data[start:end]) < 0 else end


def _output_lines(splitter: LineSplitter, data: bytes, *, colour: bool) -> list[str]:
    """Return the lines that `data` completes. Plain ASCII, which is most of any output, passes in one piece."""
    first = 0 if splitter.idle else data.find(b"\n") + 1
    end = data.rfind(b"\n") + 1
    if first >= end or not HARMLESS.fullmatch(data, first, end):
        return [_output_line(line, colour=colour) for line in splitter.feed(data)]
    lines = [_output_line(line, colour=colour) for line in splitter.feed(data[:first])]
    lines.append(data[first : end - 1].decode("ascii"))
    return lines + [_output_line(line, colour=colour) for line in splitter.feed(data[end:])]


def _output_line(line: bytes, *, colour: bool) -> str:
    return sgr(spans(line, MAX_LINE), colour=colour)


class Dated(NamedTuple):
    """A line of narration without its timestamp, and the Unix time that it is about."""

    when: float
    spans: list[Span]


class PlainRenderer:
    """Turns updates into lines about what is new. Its only state is what it has reported already."""

    def __init__(self, *, colour: bool = False, interval: float = INTERVAL) -> None:
        self._colour = colour
        self._interval = interval
        self._reported_start = False
        self._reported_end = False
        self._reported_verdict = False
        self._latest = 0.0
        self._lost = self._linked = False
        self._step = (0, 1)
        self._schedulers: set[int] = set()
        self._failures = 0
        self._governing = GoverningReporter()
        self._last_notice: Notice | None = None
        self._next_progress = 0.0
        self._next_percent = float(_STEP)

    def update(self, update: Update, now: float) -> list[str]:
        """Return the lines for an update that arrived at Unix time `now`."""
        state = update.state
        dated = [
            *self._link(update, now),
            *self._steps(state, now),
            *self._new_schedulers(state, now),
            *self._notices(state),
            *self._governed(state, now),
            *self._new_failures(state),
            *self._progress(update, now),
        ]
        lines = [*self._start(state), *self._in_order(dated), *self._verdict(state), *self._end(update)]
        return [sgr(line, colour=self._colour) for line in lines]

    def _in_order(self, dated: list[Dated]) -> list[list[Span]]:
        """Sort by time. A late line gets the time of the line above it, so that the times never go back."""
        lines = []
        for when, line in sorted(dated, key=lambda d: d.when):
            self._latest = max(self._latest, when)
            lines.append([_stamp(self._latest), *line])
        return lines

    def _start(self, state: BuildState) -> list[list[Span]]:
        if self._reported_start or not state.id:
            return []
        self._reported_start = True
        lines = [[Span(f"stoker: {_name(state.name)} ({_name(state.id)}): {_name(shlex.join(state.command))}")]]
        if not state.over:
            lines.append([Span(f"stoker: see it in full from any terminal: stoker attach {_name(state.id)}", _DIM)])
        return lines

    def _link(self, update: Update, now: float) -> list[Dated]:
        lost, linked = update.link == "lost", self._linked
        self._linked = linked or not lost
        if update.link == "journal" and not linked:
            return [_line(now, f"read from the journal: {_name(update.note)}", _DIM)]
        if lost == self._lost:
            return []
        self._lost = lost
        note = f" ({_name(update.note)})" if update.note else ""
        if lost and not linked:
            return [_line(now, f"the build is running; its status follows in a moment{note}", _DIM)]
        if lost:
            return [_line(now, f"link to the build lost{note}; the build itself continues; looking for it", _WARN)]
        return [] if update.link == "ended" or not linked else [_line(now, "link to the build is back")]

    def _steps(self, state: BuildState, now: float) -> list[Dated]:
        step = state.step
        if step is None or (step.index, step.attempt) == self._step:
            return []
        self._step = step.index, step.attempt
        if step.index > 1 or step.attempt > 1:
            self._failures = 0  # start over: a step that fails again is reported again
        if step.attempt > 1:
            return [_line(now, f"step {step.index} of {step.count}, attempt {step.attempt}: {_name(step.name)}", _WARN)]
        return [_line(now, f"step {step.index} of {step.count}: {_name(step.name)}")] if step.count > 1 else []

    def _new_schedulers(self, state: BuildState, now: float) -> list[Dated]:
        new = [s for s in state.schedulers.values() if s.sid not in self._schedulers and s.plan is not None]
        self._schedulers.update(s.sid for s in new)
        # Its plan may arrive late; its failures must not be reported before it.
        return _burst([_line(min(now, s.started), _scheduler(s)) for s in new], "scheduler")

    def _notices(self, state: BuildState) -> list[Dated]:
        new = newer(state.notices, self._last_notice)
        self._last_notice = state.notices[-1] if state.notices else None
        return _burst([_notice(n) for n in new], "notice")

    def _governed(self, state: BuildState, now: float) -> list[Dated]:
        is_young = not state.over and state.time - state.started < PLAN_SECONDS
        no_tool_yet = not state.schedulers and is_young
        early = no_tool_yet or any(self._awaits_plan(s, state) for s in state.schedulers.values())
        level = [_line(when, text) for when, text in self._governing.level(state, early=early)]
        decisions = [_line(when, text) for when, text in self._governing.decisions(state, now)]
        return level + _burst(decisions, "decision")

    def _awaits_plan(self, scheduler: Scheduler, state: BuildState) -> bool:
        """Return whether this scheduler's own line comes first: ninja's plan is made right after its start."""
        planned = scheduler.tool != "make" and scheduler.ended is None and scheduler.sid not in self._schedulers
        return planned and not state.over and state.time - scheduler.started < PLAN_SECONDS

    def _new_failures(self, state: BuildState) -> list[Dated]:
        new = state.failures[self._failures :]
        self._failures = len(state.failures)
        return _burst([_failure(f) for f in new], "failure")

    def _progress(self, update: Update, now: float) -> list[Dated]:
        """Return a line at every interval and at every tenth of the progress."""
        state = update.state
        if state.over or self._lost or update.link == "ended" or not state.id:
            return []
        if not self._next_progress:
            self._next_progress = now + self._interval
        share = progress_of(state).share
        percent = 0.0 if share is None else 100 * share
        if now < self._next_progress and percent < self._next_percent:
            return []
        self._next_progress = now + self._interval
        self._next_percent = percent - percent % _STEP + _STEP
        return [_line(now, _progress_text(state, now))]

    def _verdict(self, state: BuildState) -> list[list[Span]]:
        if self._reported_verdict or state.verification is None:
            return []
        self._reported_verdict = True
        inks = {"good": _GOOD, "warn": _WARN, "bad": _BAD}
        (standing, text), *rest = closing_lines(state.verification)
        head = [Span("stoker: "), Span("verified", inks[standing]), Span(f": {clean(text, MAX_VERDICT)}")]
        return [head, *([Span("stoker:   "), Span(clean(line, MAX_VERDICT), inks[ink])] for ink, line in rest)]

    def _end(self, update: Update) -> list[list[Span]]:
        state = update.state
        if self._reported_end or not (state.over or update.link == "ended"):
            return []
        self._reported_end = True
        closing = cache_text.closing_lines(state.cache) if state.cache is not None else []
        closing += [("remote", remote)] if (remote := remote_text.outcome_text(state)) else []
        closing += [("killed", line) for line in killed_text.cost_lines(state)]
        closing += [("memory", over)] if (over := budget_text.over_text(state)) else []
        return [*([Span(f"stoker: {title}: {text}")] for title, text in closing), _ending(state)]


def _name(text: str) -> str:
    return clean(text, MAX_NAME)


def _stamp(when: float) -> Span:
    return Span(f"stoker {time.strftime('%H:%M:%S', time.localtime(when))}  ", _DIM)


def _line(when: float, text: str, ink: Ink | None = None) -> Dated:
    return Dated(when, [Span(text, ink or Ink())])


def _burst(lines: list[Dated], what: str) -> list[Dated]:
    """Return the newest lines, below the number of older ones."""
    more = len(lines) - MAX_BURST
    if more <= 0:
        return lines
    return [_line(lines[more].when, f"{more} earlier {what}{'s' if more > 1 else ''}", _DIM), *lines[more:]]


def _scheduler(scheduler: Scheduler) -> str:
    plan = scheduler.plan
    total = plan.total if plan is not None else None
    jobs = "an unknown number of jobs" if total is None else _jobs(total)
    version = f" {_name(scheduler.version)}" if scheduler.version else ""
    return f"{scheduler.tool}{version} in {_name(scheduler.directory)}: {jobs}"


def _notice(notice: Notice) -> Dated:
    if notice.severity == "info":
        return _line(notice.time, _name(notice.text))
    return _line(
        notice.time, f"{notice.severity}: {_name(notice.text)}", _WARN if notice.severity == "warning" else _BAD
    )


def _failure(failure: Failure) -> Dated:
    if failure.killed_by is not None:
        how = killed_text.how_text(failure.killed_by)
        words = f"{_name(failure.output)} was {how}; the build tool calls that a failure"
        return _line(failure.time, words, _WARN)
    status = "" if failure.exit_code is None else f" (exit {failure.exit_code})"
    return _line(failure.time, f"FAILED {_name(failure.output)}{status}", _BAD)


def _progress_text(state: BuildState, now: float) -> str:
    """Return `1204/6579  18 %  28 running  mem 18.2/23.4 GiB  ETA 24-31 min`, as far as it is known."""
    p = progress_of(state)
    parts = []
    if state.schedulers:
        parts.append(f"{p.finished}/{p.total}" if p.total_known else f"{p.finished} done")
        parts += [share_text(p), remote_text.counts(p)]
        parts += [f"{count} {what}" for count, what in ((p.on_deck, "on deck"), (p.frozen, "frozen")) if count]
        if p.failed:
            parts.append(f"{p.failed} failed")
        if left_out := killed_text.not_started_text(state):
            parts.append(left_out)
        if killed := killed_text.outlook_text(state):
            parts.append(killed)
    else:
        parts.append(ungoverned(state) if state.level.ungoverned else _name(state.activity) or state.phase)
    if state.machine is not None:
        parts.append(f"mem {_share_of(state.machine.memory_used, state.machine.memory_budget)}")
        if (disk := state.machine.ramdisk) is not None and not state.over:
            parts.append(f"RAM disk {_share_of(disk.used, disk.size)}")
    if state.cache is not None and (rate := cache_text.rate_text(state.cache)):
        parts.append(f"{state.cache.tool} {rate} hits")
    if left := left_text(state, now):
        parts.append(f"ETA {left}")
    return "  ".join(filter(None, (*parts, stalled_text(state) or frozen_text(state))))


def _share_of(used: int, total: int) -> str:
    """Return `18.2/23.4 GiB`, or `446/600 MiB` below 10 GiB."""
    if total >= 10 * _GIB:
        return f"{used / _GIB:.1f}/{total / _GIB:.1f} GiB"
    return f"{used / 2**20:.0f}/{total / 2**20:.0f} MiB"


def _ending(state: BuildState) -> list[Span]:
    took = format_duration((state.ended or state.time) - state.started)
    peak = _used(state)
    if state.outcome == "done":
        jobs = "" if uncounted(state) else f", {_jobs(progress_of(state).finished)}"
        return [Span("stoker: "), Span("done", _GOOD), Span(f" in {took}{jobs}{peak}")]
    why = re.sub(rf"exit status {state.exit_code}(?:: |$)", "", state.reason, count=1).removesuffix(": ")
    reason = f": {_name(why)}" if why else ""
    if state.outcome == "stopped":
        how = _name(why.removeprefix("stopped").lstrip(": "))  # the line begins with "stopped" already
        text = f" {how} after {took}" if how.startswith("by ") else f" after {took}: {how}" if how else f" after {took}"
        return [Span("stoker: "), Span("stopped", _WARN), Span(text)]
    if state.outcome is None:
        return [Span("stoker: "), Span("the build was lost", _BAD), Span(f" after {took}{reason}")]
    status = "" if state.exit_code is None else f" with exit status {state.exit_code}"
    where = f"; output: {clean(state.log_path)}"
    unfinished = ((progress_of(state).interrupted, "interrupted"), (not_run(state), "not run"))
    left_out = "".join(f", {_jobs(count)} {what}" for count, what in unfinished if count)
    return [Span("stoker: "), Span("failed", _BAD), Span(f"{status} after {took}{left_out}{peak}{reason}{where}")]


def _used(state: BuildState) -> str:
    """Return the build's peaks and what it wrote, leaving out what is unknown."""
    figures = (
        (state.memory.build_peak, "peak {}"),
        (state.disk_written, "{} written to disk"),
        (state.ramdisk.peak, "at most {} in the RAM disk"),
    )
    return "".join(f", {words.format(format_bytes(size))}" for size, words in figures if size)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
