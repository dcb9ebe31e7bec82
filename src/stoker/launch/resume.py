"""Resumes a build that failed or was stopped, at that step, in its folder and environment.

With its remedy, the new build itself first applies what the diagnosis offers, so that it outlives the viewer.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from stoker.config.paths import BuildPaths, build_paths, builds_dir
from stoker.contract.spec_file import BuildSpec, PersonsDecision
from stoker.contract.strict_json import load_or_none
from stoker.launch.duplicate import check_alone, live_specs
from stoker.launch.from_command import command_build, memory_limit_here
from stoker.launch.notify import notify_command
from stoker.launch.refusals import CannotResumeError, DuplicateBuildError, RequestError
from stoker.launch.remedy import remedied
from stoker.launch.request import BuildRequest
from stoker.launch.saved_environment import Kept, load_environment
from stoker.launch.start import start_build
from stoker.model.diagnosis import words_of
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.record.builds import NoSuchBuildError, final_state, is_live, list_builds, resolve

MAX_ID = 200

MAX_NAMED = 4
"""Missing variables that are named."""


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """Which build to resume, None for the newest of the working folder, and what the user specifies again.

    `again` allows a duplicate of a running one, `no_doctor` starts what the doctor would refuse. `notify` is another
    notify command, empty for none.
    """

    build: str | None = None
    remedy: bool = False
    jobs: int | None = None
    memory: int | None = None
    name: str = ""
    again: bool = False
    no_doctor: bool = False
    notify: str | None = None


def resume(
    wish: ResumeRequest, say: Callable[[str], None], warn: Callable[[str], None]
) -> tuple[BuildPaths, PersonsDecision]:
    """Resume a build, and return the files of the new one with the decisions made for it.

    `say` gets lines about what is done and awaited, `warn` the doctor's warnings. Raises LaunchError.
    """
    paths = _meant(wish.build)
    state = final_state(paths)
    _check_ended(paths, state)
    with _claimed(paths) as claim:
        request, decision = _request(wish, paths, state, say, warn)
        spec = request.spec._replace(earlier=paths.id, decided=decision)
        new = start_build(lambda _: replace(request, spec=spec), say)
        claim.write(new.id)
    return new, decision


def _meant(build: str | None) -> BuildPaths:
    try:
        return resolve(build) if build is not None else _newest_here(os.getcwd())
    except NoSuchBuildError as err:
        raise CannotResumeError(str(err)) from err
    except FileNotFoundError as err:
        raise CannotResumeError("the working folder is gone; name the build: stoker run --resume ID") from err


def _newest_here(folder: str) -> BuildPaths:
    for build in list_builds():
        paths = build_paths(build.id)
        spec = load_or_none(BuildSpec, paths.spec)
        if spec is not None and spec.cwd == folder:
            return paths
    raise NoSuchBuildError("no build was started in this folder; name one of 'stoker ls': stoker run --resume ID")


def _check_ended(paths: BuildPaths, state: BuildState) -> None:
    if is_live(paths) or not state.over:
        raise CannotResumeError(f"{paths.id} still runs; watch it with: stoker attach {paths.id}")
    if state.outcome == "done":
        raise CannotResumeError(f"{paths.id} succeeded; there is nothing to resume")
    if not state.cwd or not Path(state.cwd).is_dir():
        raise CannotResumeError(f"{clean(state.cwd)}, where {paths.id} ran, is gone")


@contextlib.contextmanager
def _claimed(paths: BuildPaths) -> Iterator[IO[str]]:
    """Let only one build resume this one: two would write into the same folder. The file takes that one's ID."""
    opener = lambda path, flags: os.open(path, flags | os.O_CREAT, 0o600)  # noqa: E731  (open's own way to set a mode)
    with open(paths.successor, "r+", encoding="utf-8", errors="replace", opener=opener) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise CannotResumeError(f"somebody resumes {paths.id} right now") from err
        if other := _known(file.read(MAX_ID)):
            raise CannotResumeError(f"{other} has resumed {paths.id} already{_instead(build_paths(other))}")
        file.seek(0)
        file.truncate()
        yield file


def folder_is_gone(paths: BuildPaths) -> bool:
    """Return whether the working folder of a build is gone, so that it cannot be resumed."""
    spec = load_or_none(BuildSpec, paths.spec)
    return spec is not None and not Path(spec.cwd).is_dir()


def resumed_as(paths: BuildPaths) -> str:
    """Return the ID of the build that has resumed this one, if that is still there; empty if none has."""
    try:
        with open(paths.successor, encoding="utf-8", errors="replace") as file:
            return _known(file.read(MAX_ID))
    except OSError:
        return ""


def _known(build: str) -> str:
    """Return the ID if there is such a build, else nothing."""
    return build if build and "/" not in build and (builds_dir() / build).is_dir() else ""


def _instead(other: BuildPaths) -> str:
    """Return what to do instead of resuming a build once more."""
    if is_live(other):
        return f"; watch it with: stoker attach {other.id}"
    succeeded = final_state(other).outcome == "done"
    return ", and succeeded" if succeeded else f"; resume that: stoker run --resume {other.id}"


def _request(
    wish: ResumeRequest, paths: BuildPaths, state: BuildState, say: Callable[[str], None], warn: Callable[[str], None]
) -> tuple[BuildRequest, PersonsDecision]:
    """Return the new build and its reason: what the earlier one was, what is specified again, and the remedy."""
    old = load_or_none(BuildSpec, paths.spec)
    if old is None or not old.words:
        raise CannotResumeError(f"{paths.spec} cannot be read; start a new build")
    if not wish.again:
        try:
            remedy = ("--remedy",) if wish.remedy else ()
            check_alone(old.words, old.cwd, ("stoker", "run", "--again", "--resume", *remedy, paths.id), live_specs())
        except DuplicateBuildError as err:
            raise CannotResumeError(str(err)) from err
    kept = load_environment(paths.environment, os.environ)
    environ: Mapping[str, str] = os.environ if kept is None else kept.environ
    limit = _limit_of_its_group(old, state) if wish.memory is None else None
    again = _once_more(wish if limit is None else replace(wish, memory=limit), old, paths, environ, say, warn)
    if limit is not None:
        again = again.noticing(_keeps_limit(limit, paths.id, state))
    request = _noting_what_lacks(kept, paths.id, again)
    notify = notify_command(old.notify if wish.notify is None else wish.notify)
    request = replace(request, spec=request.spec._replace(notify=notify))
    if not wish.remedy:
        return request, PersonsDecision(_login_name(), f"resume {paths.id}", "by request")
    diagnosis = state.diagnosis
    if diagnosis is None or diagnosis.cause is None or diagnosis.action is None:
        raise RequestError(
            f"there is no remedy for {paths.id} that is safe; repair it, then: stoker run --resume {paths.id}"
        )
    folder = old.step(state.step.index).cwd if state.step is not None else old.cwd
    request = remedied(request, diagnosis.action, diagnosis.cause.rule, folder, environ)
    why = f"asked for, since {paths.id} failed: {diagnosis.cause.title}"
    return request, PersonsDecision(_login_name(), words_of(diagnosis.action), why)


def _limit_of_its_group(old: BuildSpec, state: BuildState) -> int | None:
    """Return the memory limit of the control group that a build ran in, if it would be lost here, in another group.

    None in the same group: then its limit counts, as it is now.
    """
    machine = state.machine
    if machine is None or not machine.limiting_group:
        return None
    here, limit = memory_limit_here(), machine.memory_budget
    lost = here.path != machine.limiting_group and here.limit > limit and (old.memory or here.limit) > limit
    return limit if lost else None


def _keeps_limit(limit: int, earlier: str, state: BuildState) -> str:
    group = clean(state.machine.limiting_group if state.machine is not None else "")
    return (
        f"{earlier} ran within {format_bytes(limit)}, the limit of {group}; this build runs outside of that and "
        "keeps to the same limit; stoker run --resume ID --memory SIZE sets another"
    )


def _noting_what_lacks(kept: Kept | None, earlier: str, request: BuildRequest) -> BuildRequest:
    """Add a note about variables of the `earlier` build's environment that are missing."""
    if kept is None:
        note = f"{earlier} kept no environment; it is resumed in this one"
        spec = request.spec
        return replace(request, spec=spec._replace(note="; ".join(n for n in (spec.note, note) if n)))
    if not kept.missing:
        return request
    more = f" and {len(kept.missing) - MAX_NAMED} more" if len(kept.missing) > MAX_NAMED else ""
    names = ", ".join(kept.missing[:MAX_NAMED]) + more
    text = f"secrets are not kept, and not set here: {names}; if the build needs them, stop it, export them, and resume"
    return replace(request, missing=kept.missing).noticing(text)


def _once_more(
    wish: ResumeRequest,
    old: BuildSpec,
    paths: BuildPaths,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    warn: Callable[[str], None],
) -> BuildRequest:
    """Return the earlier build again, from the step that has not succeeded."""
    jobs = old.jobs if wish.jobs is None else wish.jobs
    name, origin = wish.name or old.name, old.profile
    # In a profile's build the memory may come from the profile, which is read again.
    memory = wish.memory or (old.memory if origin is None or origin.memory_by_hand else None)
    if origin is None:
        return command_build(old.words, old.cwd, name, jobs, memory, environ)
    from stoker.launch.from_profile import plan_of, profile_build
    from stoker.launch.precheck import with_precheck

    by_path = len(old.words) > 3 and "/" in old.words[3]
    _check_newest(origin.name, old.cwd, paths)
    plan = plan_of(origin.path if by_path else origin.name, {}, (), old.cwd, resume=True)
    request = replace(profile_build(plan, old.cwd, name, jobs, memory, environ), environ=environ)
    if wish.remedy or wish.no_doctor:  # a remedy repairs what the doctor would refuse
        return request
    return with_precheck(plan, request, say, warn)


def _check_newest(profile: str, folder: str, paths: BuildPaths) -> None:
    """Refuse any but the newest build of a profile: a profile is resumed where that one stopped."""
    from stoker.record.earlier_build import last_build_of

    newest = last_build_of(profile, folder)
    if newest is not None and newest.id != paths.id:
        raise CannotResumeError(f"{newest.id} is a later build of {profile} there; stoker run --resume {newest.id}")


def _login_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
