"""Where the last build of a profile stopped, from its launcher's and its supervisor's files.

Does not use the journal: an engine may have been away when a step ended; the supervisor never is. Unaware of how one is
started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stoker.config.paths import BuildPaths, builds_dir
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none
from stoker.contract.supervisor_files import ExitRecord, SupervisorRecord
from stoker.record.builds import list_builds


@dataclass(frozen=True, slots=True)
class EarlierBuild:
    """A build of a profile: the request, and the name of its first step that has not ended with 0.

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
    """Return the newest build of this profile in this folder; None if there is none whose files are kept."""
    for build in list_builds():
        paths = BuildPaths(builds_dir() / build.id)
        spec = load_or_none(BuildSpec, paths.spec)
        if spec is None or spec.profile is None or (spec.profile.name, spec.cwd) != (profile, folder):
            continue
        origin, since = spec.profile, spec.since or spec.created
        return EarlierBuild(build.id, build.live, origin.settings, origin.extra, _unfinished(paths, spec), since)
    return None


def _unfinished(paths: BuildPaths, spec: BuildSpec) -> str:
    supervisor, end = load_or_none(SupervisorRecord, paths.supervisor), load_or_none(ExitRecord, paths.exit)
    done = {run.step for run in supervisor.past if run.exit_code == 0} if supervisor is not None else set[int]()
    # Not if it was stopped: a command may catch SIGTERM and exit with 0 although half of its work is undone.
    if end is not None and end.exit_code == 0 and not end.stopped:
        done.add(end.step)
    rest = [step for n, step in enumerate(spec.steps, 1) if n >= spec.first and n not in done]
    # A remedy is not a step of the profile; what it was to repair comes after it.
    return next((step.name for step in rest if not step.remedy), "")
