"""Where the last build of a profile stopped, by what its launcher and its keeper wrote. Unaware of how one is started.

The journal is not asked: an engine may have been away when a step ended, and the keeper never is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.config.paths import BuildPaths, builds_dir
from stoker.model.codec import real
from stoker.record.builds import list_builds, read_object


@dataclass(frozen=True, slots=True)
class EarlierBuild:
    """A build of a profile: what its person had asked for, and the name of its first step that has not ended with 0.

    `step` is empty if all of them have. `since` is when its work began, in Unix seconds, or that of the builds which it
    had resumed itself.
    """

    id: str
    live: bool
    settings: Mapping[str, str]
    extra: tuple[str, ...]
    step: str
    since: float


def last_build_of(profile: str, folder: str) -> EarlierBuild | None:
    """The newest build of this profile in this folder, None if there is none whose files are kept."""
    for build in list_builds():
        paths = BuildPaths(builds_dir() / build.id)
        spec = read_object(paths.spec)
        origin = spec.get("profile")
        if isinstance(origin, dict) and origin.get("name") == profile and spec.get("cwd") == folder:
            since = real(spec.get("since")) or real(spec.get("created")) or 0.0
            step = _unfinished(paths, spec)
            return EarlierBuild(build.id, build.live, origin["settings"], tuple(origin["extra"]), step, since)
    return None


def _unfinished(paths: BuildPaths, spec: Mapping[str, Any]) -> str:
    done = {run["step"] for run in read_object(paths.keeper).get("past", ()) if run["exit_code"] == 0}
    ended = read_object(paths.exit)
    # Not if it was stopped: a command may catch SIGTERM and end with 0, half of its work undone.
    if ended.get("exit_code") == 0 and not ended["stopped"]:
        done.add(ended["step"])
    left = [step for n, step in enumerate(spec["steps"], 1) if n >= spec["first"] and n not in done]
    # A remedy is no step of the profile; what it was to mend comes after it.
    return next((str(step["name"]) for step in left if not step.get("remedy")), "")
