"""`stoker run --resume`: goes on with a build that failed or was stopped, at that step, in its folder and environment.

With `--remedy` what the diagnosis offers is done first, by the new build itself, so that it outlives the viewer.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pwd
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from stoker.act.environment import Kept, load_environment
from stoker.act.launch import Decided, Spec
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.remedy import remedied
from stoker.cli.screen import pick_screen
from stoker.cli.starting import bytes_of, examined, show_own, spec_of_command, start_build, window_of
from stoker.cli.twin import check_alone
from stoker.config.paths import BuildPaths, build_paths, builds_dir
from stoker.model.diagnosis import words_of
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.record.builds import NoSuchBuildError, final_state, is_live, list_builds, read_object, resolve

MAX_ID = 200

MAX_NAMED = 4
"""Missing variables that are named."""


def go_on(args: argparse.Namespace) -> int:
    """Go on with the build that is named, else the newest of this folder. Raises CliError."""
    screen = None if args.detach else pick_screen(args)
    paths = _meant(args.words)
    state = final_state(paths)
    _check_ended(paths, state)
    with _claimed(paths) as claim:
        spec = replace(_spec(args, paths, state), earlier=paths.id)
        if screen is not None:
            print(f"stoker: {clean(spec.decided.what if spec.decided else '')}", file=sys.stderr)
        new = start_build(lambda _: spec)
        claim.write(new.id)
    if screen is None:
        print(new.id)
        return 0
    return show_own(new, screen)


def _meant(words: list[str]) -> BuildPaths:
    words = words[1:] if words[:1] == ["--"] else words
    if len(words) > 1:
        raise CliError("--resume takes a build at most, behind all options: stoker run --resume --remedy ID")
    try:
        return resolve(words[0]) if words else _newest_here(os.getcwd())
    except NoSuchBuildError as err:
        raise CliError(str(err), FAILURE) from err
    except FileNotFoundError as err:
        raise CliError("the working folder is gone; name the build: stoker run --resume ID", FAILURE) from err


def _newest_here(folder: str) -> BuildPaths:
    for build in list_builds():
        paths = build_paths(build.id)
        if read_object(paths.spec).get("cwd") == folder:
            return paths
    raise NoSuchBuildError("no build was started in this folder; name one of 'stoker ls': stoker run --resume ID")


def _check_ended(paths: BuildPaths, state: BuildState) -> None:
    if is_live(paths) or not state.over:
        raise CliError(f"{paths.id} still runs; look at it with: stoker attach {paths.id}", FAILURE)
    if state.outcome == "done":
        raise CliError(f"{paths.id} ended well; there is nothing to go on with", FAILURE)
    if not state.cwd or not Path(state.cwd).is_dir():
        raise CliError(f"{clean(state.cwd)}, where {paths.id} ran, is gone", FAILURE)


@contextlib.contextmanager
def _claimed(paths: BuildPaths) -> Iterator[IO[str]]:
    """Only one goes on with a build: two would write into the same folder. The file takes that one's ID."""
    opener = lambda path, flags: os.open(path, flags | os.O_CREAT, 0o600)  # noqa: E731  (open's own way to set a mode)
    with open(paths.successor, "r+", encoding="utf-8", errors="replace", opener=opener) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise CliError(f"somebody goes on with {paths.id} right now", FAILURE) from err
        other = file.read(MAX_ID)
        if other and "/" not in other and (builds_dir() / other).is_dir():
            live = is_live(build_paths(other))
            how = f"look at it with: stoker attach {other}" if live else f"go on with that: stoker run --resume {other}"
            raise CliError(f"{other} has gone on with {paths.id} already; {how}", FAILURE)
        file.seek(0)
        file.truncate()
        yield file


def _spec(args: argparse.Namespace, paths: BuildPaths, state: BuildState) -> Spec:
    """The build that goes on: what the earlier one was, what has changed by the words now, and the remedy."""
    old = read_object(paths.spec)
    if not {"words", "cwd", "name", "jobs", "memory", "steps", "profile"} <= old.keys():
        raise CliError(f"{paths.spec} cannot be read; start the build anew", FAILURE)
    if not args.again:
        check_alone(old["words"], str(old["cwd"]), FAILURE)
    kept = load_environment(paths.environment, os.environ)
    known: Mapping[str, str] = os.environ if kept is None else kept.environ
    spec = _told_of(kept, paths.id, _again(args, old, paths, known))
    if not args.remedy:
        return replace(spec, decided=Decided(_login_name(), f"go on with {paths.id}", "asked for"))
    found = state.diagnosis
    if found is None or found.cause is None or found.action is None:
        raise CliError(f"there is no remedy for {paths.id} that is safe; mend it, then: stoker run --resume {paths.id}")
    step = old["steps"][state.step.index - 1] if state.step is not None else old
    spec = remedied(spec, found.action, found.cause.rule, str(step["cwd"]), known)
    why = f"asked for, since {paths.id} failed: {found.cause.title}"
    return replace(spec, decided=Decided(_login_name(), words_of(found.action), why))


def _told_of(kept: Kept | None, earlier: str, spec: Spec) -> Spec:
    """With a word on what of the `earlier` build's environment is not at hand."""
    if kept is None:
        note = f"{earlier} kept no environment; it goes on in this one"
        return replace(spec, note="; ".join(n for n in (spec.note, note) if n))
    if not kept.missing:
        return spec
    more = f" and {len(kept.missing) - MAX_NAMED} more" if len(kept.missing) > MAX_NAMED else ""
    names = ", ".join(kept.missing[:MAX_NAMED]) + more
    text = f"secrets are not kept, and not set here: {names}; if the build needs them, stop it, export them, and go on"
    return replace(spec, missing=kept.missing, notices=(*spec.notices, text))


def _again(args: argparse.Namespace, old: Mapping[str, Any], paths: BuildPaths, environ: Mapping[str, str]) -> Spec:
    """The earlier build once more, from the step that has not ended well."""
    jobs = old["jobs"] if args.jobs is None else args.jobs
    cwd, name, origin = str(old["cwd"]), args.name or str(old["name"]), old["profile"]
    # Of a profile's build the memory may be the profile's word, which is asked again.
    memory = bytes_of(args.memory) or (old["memory"] if origin is None or origin.get("memory_by_hand") else None)
    if origin is None:
        return spec_of_command(old["words"], cwd, name, jobs, memory, environ)
    from stoker.cli.steps import plan_of, spec_of

    by_path = len(old["words"]) > 3 and "/" in old["words"][3]
    asked = argparse.Namespace(profile=origin["path"] if by_path else origin["name"], set=[], resume=True)
    _check_newest(origin["name"], cwd, paths)
    plan = plan_of(asked, (), cwd)
    width = window_of(cwd, jobs, memory or plan.profile.memory)
    base = Spec(plan.words, cwd, name, jobs=jobs, memory=memory, window=width)
    made = replace(spec_of(plan, base, environ), environ=environ)
    if args.remedy or args.no_doctor:  # a remedy mends what the doctor would refuse
        return made
    return replace(made, notices=(*made.notices, *examined(plan, made, cwd, args)))


def _check_newest(profile: str, folder: str, paths: BuildPaths) -> None:
    """A profile's build goes on where the newest one of that profile stopped."""
    from stoker.record.resume import last_build_of

    newest = last_build_of(profile, folder)
    if newest is not None and newest.id != paths.id:
        raise CliError(f"{newest.id} is a later build of {profile} there; stoker run --resume {newest.id}", FAILURE)


def _login_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
