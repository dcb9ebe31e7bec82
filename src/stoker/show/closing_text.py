"""The last lines about a failed build: its cause, the line that shows it, and the commands to continue. Pure.

Knows no screens. The lines are safe to print on a terminal.
"""

from __future__ import annotations

import signal

from stoker.model.diagnosis import Cause, words_of
from stoker.model.killed import failed_steps
from stoker.model.memory_shortage import memory_was_short
from stoker.model.state import BuildState
from stoker.model.text import clean

MAX_WORDS = 300

OF_OTHERS = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
"""Signals that a program does not send itself by a mistake of its own."""


def closing_lines(state: BuildState, *, lasting: bool = True, resumed_as: str = "") -> list[str]:
    """Return the closing lines; empty for a build that succeeded or is still running.

    They say how to resume only if the build is `lasting`: its folder exists and will stay. Only the build `resumed_as`
    can be resumed, if one has resumed this.
    """
    if state.outcome not in ("failed", "stopped"):
        return []
    diagnosis, name, sent = state.diagnosis, clean(state.id), sent_a_signal(state)
    lines = []
    if diagnosis is not None and diagnosis.cause is not None:
        more = "the lines around it" if diagnosis.cause.is_guess else "what to do"
        lines.append(f"{clean(diagnosis.cause.heading)}; {more}: stoker diagnose {name}")
        lines += _cause_lines(diagnosis.cause)
        lines += [clean(fact, MAX_WORDS) for fact in diagnosis.facts[:1]]
    elif sent:
        lines.append(sent)
    elif state.outcome == "failed":
        lines.append(f"the cause is not known; look at: stoker log {name}")
    if not lasting:
        return lines
    if resumed_as:
        lines.append(f"{clean(resumed_as)} has resumed it; look at that: stoker attach {clean(resumed_as)}")
    elif diagnosis is not None and diagnosis.action is not None:
        lines.append(f"to {clean(words_of(diagnosis.action), MAX_WORDS)}: stoker run --resume --remedy {name}")
    else:
        when = "when that is fixed, resume with" if state.outcome == "failed" and not sent else "to resume"
        lines.append(f"{when}: stoker run --resume {name}")
    return lines


def sent_a_signal(state: BuildState) -> str:
    """Return in words that somebody else's signal ended a build in which nothing failed; empty if none did.

    A command that a signal ends has the exit status 128 + its number, also where a shell stands above it.
    """
    signum = (state.exit_code or 0) - 128
    if state.outcome != "failed" or signum not in OF_OTHERS or failed_steps(state) or state.killed:
        return ""
    by = f"somebody else ended the command by {signal.Signals(signum).name}"
    if signum != signal.SIGKILL:
        return f"no job failed: {by}"
    short = memory_was_short(state) is not False
    return f"no job failed: {by}, {'perhaps the kernel for memory: see dmesg' if short else 'and memory was not short'}"


def _cause_lines(cause: Cause) -> list[str]:
    """Return the tool's own message, which is more specific than any title: which file, which name."""
    text = clean(cause.message, MAX_WORDS)
    where = "" if cause.line is None else f"line {cause.line} of the output: "
    return [f"  {where}{text}"] if text else []


def place_of(cause: Cause) -> str:
    """Return where a cause is in the output: its line, how often it occurs, and the job."""
    parts = [] if cause.line is None else [f"line {cause.line}"]
    if cause.count > 1:
        parts[-1:] = [f"{parts[-1] if parts else 'there'} and {cause.count - 1} more"]
    return ", ".join([*parts, *([clean(cause.job, MAX_WORDS)] if cause.job else [])])
