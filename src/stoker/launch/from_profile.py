"""A build of a profile in a folder: its steps, from the first or a later one on. Unaware of how they are run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.config.choices import level_of
from stoker.config.profiles import profile as profiles
from stoker.config.profiles.added_variables import added_by
from stoker.config.profiles.chain import NoSuchProfileError
from stoker.config.profiles.conditions import obstacle
from stoker.config.profiles.load import ProfileError, load_profile
from stoker.config.profiles.profile import Profile
from stoker.contract.container_words import labelled
from stoker.contract.spec_file import BuildSpec, DistScheduler, Origin, StepSpec
from stoker.launch.from_command import above_limit, window_of
from stoker.launch.in_container import run_words
from stoker.launch.refusals import CommandNotFoundError, RequestError
from stoker.launch.request import BuildRequest
from stoker.launch.tmpfs import ramdisk_for
from stoker.launch.window import Prepared, prepared
from stoker.record.earlier_build import EarlierBuild, last_build_of

PROGRAM = (sys.executable, "-P", "-m", "stoker")
"""This stoker; -P: no module of the folder that is built may shadow ours."""


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """A profile with a person's words, and where in it a build begins; `since` and `earlier` as in `BuildSpec`."""

    profile: Profile
    settings: Mapping[str, str]
    extra: tuple[str, ...]
    words: tuple[str, ...]
    begin_at: str = ""
    since: float | None = None
    earlier: str = ""


def plan_of(
    name: str, values: Mapping[str, str], extra: Sequence[str], folder: str, *, resume: bool = False
) -> ProfilePlan:
    """Return the request in `-p name`, values of its variables and the arguments after `--`. Raises RequestError.

    With `resume` it starts where the last build of that profile in this folder stopped.
    """
    settings, words = dict(values), tuple(extra)
    earlier = _earlier(name, folder) if resume else None
    if earlier is not None:
        settings, words = {**earlier.settings, **settings}, words or earlier.extra
    try:
        profile = load_profile(name, settings, words)
    except NoSuchProfileError as err:
        raise RequestError(f"{err}; 'stoker profiles list' shows them") from err
    except ProfileError as err:
        raise RequestError(str(err)) from err
    written = ["stoker", "run", "-p", name]
    written += [word for variable, value in settings.items() for word in ("--set", f"{variable}={value}")]
    written += ["--", *words] if words else []
    if earlier is None:
        return ProfilePlan(profile, settings, words, tuple(written))
    return ProfilePlan(profile, settings, words, tuple(written), earlier.step, earlier.since, earlier.id)


def profile_build(
    plan: ProfilePlan, cwd: str, name: str, jobs: int | None, memory: int | None, environ: Mapping[str, str]
) -> BuildRequest:
    """Return the build of `plan`; `memory` is the user's setting, or None. `environ` is the user's environment."""
    profile, added = plan.profile, added_by(plan.profile, environ, cwd)
    limit = memory or profile.memory
    known, notes = added.to(environ), list(added.notes)
    window = window_of(jobs, min((n for n in (limit, profile.container.memory) if n), default=None), known)
    steps = []
    for step in _taking_part(plan, Path(cwd), known, notes):
        if step.package is not None:
            run = Prepared((*PROGRAM, *step.package.words[1:]), {})
        else:
            run = prepared(step.command, window, jobs, {**known, **step.env})
            run = _contained(run, profile, step, cwd)
        notes += [run.note] if run.note else []
        steps.append(_step(step, profile, run, cwd))
    disk = ramdisk_for(profile.tmp, known, limit)
    notes += [disk.note] if disk.note else []
    spec = BuildSpec(
        name,
        cwd,
        plan.words,
        plan.words,
        tuple(steps),
        _first(steps, plan),
        jobs,
        limit,
        note="; ".join(dict.fromkeys(notes)),
        notices=disk.warnings,
        verify=profile.verify,
        arch_list=profile.arch_list,
        since=plan.since,
        profile=Origin(profile.name, str(profile.path.absolute()), plan.settings, plan.extra, memory is not None),
        earlier=plan.earlier,
        ramdisk=disk.wish,
        cache=added.cache,
        dist=DistScheduler(profile.dist.scheduler, profile.dist.token_from) if profile.dist.scheduler else None,
    )
    return BuildRequest(spec, window, added.variables, secrets=added.secrets).noticing(*above_limit(memory))


def _contained(run: Prepared, profile: Profile, step: profiles.ProfileStep, folder: str) -> Prepared:
    """Return the command as it runs in the profile's container; unchanged if there is none."""
    if not profile.container.image:
        return run
    cwd, names = str(Path(folder, step.cwd)), [*profile.env, *step.env]
    words = (*run_words(profile.container, folder, cwd, dict.fromkeys(names)), *run.words)
    return replace(run, words=labelled(words))


def _earlier(name: str, folder: str) -> EarlierBuild:
    """Return the build to resume; raises RequestError if there is none."""
    earlier = last_build_of(Path(name).stem if "/" in name else name, folder)
    if earlier is None:
        raise RequestError(f"there is no build of profile {name!r} in this folder to resume; run it without --resume")
    if earlier.live:
        raise RequestError(f"{earlier.id} still runs; watch it with: stoker attach {earlier.id}")
    if not earlier.step:
        raise RequestError(f"{earlier.id} succeeded; there is nothing to resume, run it without --resume")
    return earlier


def _first(steps: Sequence[StepSpec], plan: ProfilePlan) -> int:
    """Return the number of the step to start with."""
    if not steps:
        raise RequestError(
            f"no step of profile {plan.profile.name!r} takes part in this folder; see: "
            f"stoker profiles show {plan.profile.name}"
        )
    if not plan.begin_at:
        return 1
    # What a step leaves behind may be what its condition asks for: then those behind it are what is left.
    order = [step.name for step in plan.profile.steps]
    left = order[order.index(plan.begin_at) :] if plan.begin_at in order else ()
    number = next((n for n, step in enumerate(steps, 1) if step.name in left), 0)
    if not number:
        raise RequestError(
            f"step {plan.begin_at!r}, where the last build stopped, is no part of it now; run it without --resume"
        )
    return number


def _taking_part(
    plan: ProfilePlan, folder: Path, environ: Mapping[str, str], notes: list[str]
) -> list[profiles.ProfileStep]:
    """Return the steps whose conditions hold; the command of each that is still to be done must exist."""
    steps, names = [], [step.name for step in plan.profile.steps]
    done = names[: names.index(plan.begin_at)] if plan.begin_at in names else []
    for step in plan.profile.steps:
        why = obstacle(step.when, plan.profile, folder, environ.get("PATH"))
        if why:
            notes.append(f"step {step.name} is left out: {why}")
            continue
        command = step.words[0] if not plan.profile.container.image else plan.profile.container.engine
        known = "/" in command or step.name in done or step.package is not None
        if not known and shutil.which(command, path={**environ, **step.env}.get("PATH")) is None:
            raise CommandNotFoundError(f"step {step.name}: {command}: not found on PATH; install it")
        steps.append(step)
    return steps


def _step(step: profiles.ProfileStep, profile: Profile, run: Prepared, folder: str) -> StepSpec:
    return StepSpec(
        step.name,
        run.words,
        str(Path(folder, step.cwd)),
        step.words,
        {**run.environment, **step.env},
        level_of(step, profile),
        step.retries,
        step.scheduler,
    )
