"""Follows configuration files while the build runs: the current values, who changed them, and errors in a file.

A file with an error changes nothing: the last accepted values stay. Unaware of how jobs are governed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from stoker.config.choices import Choices, ProfileChoices, ProfileOrigin, from_priors, from_profile, from_settings
from stoker.config.config_error import ConfigError
from stoker.config.file_watch import watch_files
from stoker.config.paths import BuildPaths, settings_path
from stoker.config.priors import load_classes, merged, own_priors, shipped_priors
from stoker.contract import spec_file
from stoker.contract.spec_file import BuildSpec
from stoker.decide.memory.prior_classes import Priors
from stoker.decide.policy.thresholds import Thresholds
from stoker.engine.reload.choices_file import read_choices, write_choices
from stoker.engine.reload.differences import ChoiceChange, differences
from stoker.engine.reload.people import login_name
from stoker.engine.reload.sources import Reading, Source
from stoker.engine.steps import Steps
from stoker.model import events as ev
from stoker.model.text import clean

LEAST_SECONDS = 1.0
"""Seconds between two readings: a program that rewrites a file without end must not fill the journal."""

JOIN_SECONDS = 1.0
"""How long the end waits for the reading thread; it may hang on a file server that does not answer."""


class ConfigReload:
    """The current choices, from the start of the build or as the previous engine left them."""

    def __init__(self, paths: BuildPaths, spec: BuildSpec, steps: Steps) -> None:
        self._paths = paths
        self._steps = steps
        self._names = [step.name for step in spec.steps]
        profile = spec.profile
        self._given = spec.memory
        self._memory_by_hand = profile is None or profile.memory_by_hand
        self._stop = threading.Event()
        self._sources = list(self._made(profile))
        self._readings: deque[Reading | str] = deque()
        self._announced: dict[Source, str] = {}
        self._thread: threading.Thread | None = None
        self.faults: list[ConfigError] = []
        """The errors when the first engine started; whatever could be read still counts."""
        self._shipped, faults = load_classes(shipped_priors())
        kept = read_choices(paths.root)
        self.choices = self._first() if kept is None else kept
        self.faults += faults
        self.priors = self._merged()

    def _made(self, profile: spec_file.Origin | None) -> Iterator[Source]:
        if profile is not None:
            origin = ProfileOrigin(Path(profile.path), profile.settings, profile.extra)
            yield Source(partial(from_profile, origin), [origin.path], self._stop.wait)
        yield Source(from_priors, [own_priors()], self._stop.wait)
        yield Source(from_settings, [settings_path()], self._stop.wait)

    def _first(self) -> Choices:
        """Return the values of the files at the start; a profile that became invalid since it was read counts as it
        was."""
        choices = Choices(ProfileChoices(memory=None if self._memory_by_hand else self._given))
        for source in self._sources:
            found = source.first(choices)
            choices = found.choices
            self.faults += found.faults
        self._keep(choices)
        return choices

    # -- what counts -------------------------------------------------------------------------------------------

    @property
    def memory(self) -> int | None:
        """Bytes that the build's jobs may hold; None for no limit."""
        return self._given if self._memory_by_hand else self.choices.profile.memory

    @property
    def thresholds(self) -> Thresholds:
        """The user's thresholds."""
        return self.choices.thresholds

    def limit(self, step: int) -> float:
        """Return how many jobs may run at once in the step with this number, while the level is automatic."""
        said = self.choices.profile.steps.get(self._names[step - 1])
        return self._steps.limit(step) if said is None else float(said.level or "inf")

    def retries(self, step: int) -> int:
        """Return how often that step runs again after deaths for memory."""
        said = self.choices.profile.steps.get(self._names[step - 1])
        return self._steps.retries(step) if said is None else said.retries

    # -- what changes ------------------------------------------------------------------------------------------

    def start(self, wake: Callable[[], None]) -> None:
        """Start watching, in a thread: `wake` is called in this loop when there is news."""
        run = partial(self._watch, asyncio.get_running_loop(), wake)
        self._thread = threading.Thread(target=run, name="following", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)

    def news(self, situation: Callable[[], str], *, level_by_hand: bool) -> list[ev.Event]:
        """Return what has changed since the last call; it counts from now on. `situation` becomes part of the reason.

        `level_by_hand`: a person has set the level of this build, which takes precedence over files.
        """
        events: list[ev.Event] = []
        while self._readings:
            reading = self._readings.popleft()
            if isinstance(reading, str):
                events.append(ev.Noticed("warning", reading))
            elif reading.faults:
                events += self._faulty(reading)
            else:
                changes = self._accept(reading)
                who, file = login_name(reading.owner), short(reading.changed)
                for change in changes:
                    remark = self._remark(change, level_by_hand=level_by_hand)
                    events.append(ev.Decided(who, change.what, f"{file} was edited; {situation()}{remark}"))
                events += self._remaining(reading, any_change=bool(changes))
        return events

    def _accept(self, reading: Reading) -> list[ChoiceChange]:
        changes = differences(self.choices, reading.choices, self._names)
        if reading.choices != self.choices:
            self.choices = reading.choices
            self._keep(reading.choices)
        if any(change.about == "class" for change in changes):
            self.priors = self._merged()
        return changes

    def _faulty(self, reading: Reading) -> Iterator[ev.Event]:
        """Return the first error, once; the others are announced when it has been repaired."""
        fault = reading.faults[0]
        more = f", and {len(reading.faults) - 1} more" if len(reading.faults) > 1 else ""
        place = f"{short(fault.path)}:{fault.line}" if fault.line else short(fault.path)
        text = f"{place}: {fault.message}{more}; the old values stay"
        known = self._announced.get(reading.source)
        self._announced[reading.source] = text
        if text != known:
            yield ev.Noticed("warning", text)

    def _remaining(self, reading: Reading, *, any_change: bool) -> Iterator[ev.Event]:
        repaired = self._announced.pop(reading.source, None) is not None
        if reading.rest:
            yield ev.Noticed("info", f"{short(reading.changed)}: commands and environment count from the next build on")
        elif repaired and not any_change:
            yield ev.Noticed("info", f"{short(reading.changed)} has no errors any more; nothing has changed")

    def _remark(self, change: ChoiceChange, *, level_by_hand: bool) -> str:
        if change.about == "memory" and self._memory_by_hand:
            return "; --memory takes precedence"
        return "; the level that was set by hand takes precedence" if change.about == "level" and level_by_hand else ""

    def _merged(self) -> Priors:
        return merged(self.choices.profile.classes, self.choices.classes, self._shipped)

    def _keep(self, choices: Choices) -> None:
        """Save the values for the next engine; if the disk is full, that engine reads the files."""
        with contextlib.suppress(OSError):
            write_choices(self._paths.root, choices)

    # -- in the thread -----------------------------------------------------------------------------------------

    def _watch(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        accepted = self.choices
        try:
            for _ in watch_files(self._places, self._stop):
                for source in self._sources:
                    reading = source.again(accepted)
                    if reading is not None and not self._stop.is_set():
                        accepted = accepted if reading.faults else reading.choices
                        self._post(reading, loop, wake)
                        self._stop.wait(LEAST_SECONDS)
        except Exception as err:  # noqa: BLE001  (a fault in here must cost the build nothing else)
            self._post(f"changes of profile and settings are not followed any more: {clean(repr(err))}", loop, wake)

    def _places(self) -> Iterator[Path]:
        for source in self._sources:
            yield from source.files

    def _post(self, reading: Reading | str, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._readings.append(reading)
        with contextlib.suppress(RuntimeError):  # the loop has just been closed
            loop.call_soon_threadsafe(wake)


def short(path: Path) -> str:
    """Return the path as a person would write it, with ~ for their home; sanitised."""
    with contextlib.suppress(RuntimeError, ValueError):
        return clean(f"~/{path.relative_to(Path.home())}")
    return clean(str(path))
