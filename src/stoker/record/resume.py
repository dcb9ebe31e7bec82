"""Where the last build of a profile stopped, by its specification and its journal. Unaware of how one is started."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.config.paths import BuildPaths, builds_dir
from stoker.model.codec import CodecError, decode_record
from stoker.model.events import BuildEnded, Event, StepEnded
from stoker.record.builds import list_builds
from stoker.record.jsonlines import BadLineError, parse_line

_TELLING = (b'"type":"step_ended"', b'"type":"build_ended"')


@dataclass(frozen=True, slots=True)
class EarlierBuild:
    """A build of a profile: what its person had asked for, and the name of its first step that has not ended with 0.

    `step` is empty if all of them have.
    """

    id: str
    live: bool
    settings: Mapping[str, str]
    extra: tuple[str, ...]
    step: str


def last_build_of(profile: str, folder: str) -> EarlierBuild | None:
    """The newest build of this profile in this folder, None if there is none whose files are kept."""
    for build in list_builds():
        paths = BuildPaths(builds_dir() / build.id)
        spec = _spec(paths)
        origin = spec.get("profile")
        if isinstance(origin, dict) and origin.get("name") == profile and spec.get("cwd") == folder:
            return EarlierBuild(
                build.id, build.live, origin["settings"], tuple(origin["extra"]), _unfinished(paths, spec)
            )
    return None


def _spec(paths: BuildPaths) -> dict[str, Any]:
    try:
        value = json.loads(paths.spec.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _unfinished(paths: BuildPaths, spec: Mapping[str, Any]) -> str:
    done = set[int]()
    for event in _endings(paths):
        if isinstance(event, StepEnded) and event.exit_code == 0:
            done.add(event.index)
        elif isinstance(event, BuildEnded) and event.outcome == "stopped" and done:
            done.remove(max(done))  # a command may catch SIGTERM and end with 0, half of its work undone
    left = (n for n in range(spec["first"], len(spec["steps"]) + 1) if n not in done)
    number = next(left, None)
    return str(spec["steps"][number - 1]["name"]) if number is not None else ""


def _endings(paths: BuildPaths) -> Iterator[Event]:
    """Of steps and of the build. A journal may have a hundred MB, mostly samples: they are passed over undecoded."""
    try:
        file = paths.journal.open("rb")
    except OSError:
        return
    with file:
        for line in file:
            if any(kind in line for kind in _TELLING):
                with contextlib.suppress(BadLineError, CodecError):
                    yield decode_record(parse_line(line)).event
