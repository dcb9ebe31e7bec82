"""What a diagnosis's action means for the resumed build: a level, a variable, or a step before the others.

Trusts nothing in the journal without checking it against the rules and git again. Unaware of how a build is started.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace

from stoker.contract.spec_file import StepSpec
from stoker.launch.refusals import CannotResumeError
from stoker.launch.request import BuildRequest
from stoker.launch.window import prepared
from stoker.model.diagnosis import Action
from stoker.sense.submodules import missing_submodules, top_of

QUIET = {"GIT_TERMINAL_PROMPT": "0"}
"""Nobody is there to type a password; git must fail rather than wait."""


def remedied(request: BuildRequest, action: Action, rule: str, folder: str, environ: Mapping[str, str]) -> BuildRequest:
    """Return `request` with an action that `rule` allows; `folder` is where the failed step ran.

    Raises CannotResumeError.
    """
    _check_allowed(action, rule)
    if action.kind == "retry-at-lower-level":
        return _at_level(request, action.level or 1, environ)
    if action.kind == "retry-alone":
        return replace(request, spec=request.spec._replace(alone=action.names))
    if action.kind == "set-variable":
        return _with_variable(request, action.variable, environ)
    if action.kind == "update-submodules":
        return _before(request, _fetch_submodules(action, folder, environ))
    if action.kind == "fetch-large-files":
        return _before(request, _fetch_large_files(folder, environ))
    return request


def _check_allowed(action: Action, rule: str) -> None:
    """Accept only what the shipped rule says, which nothing from a build can change."""
    from stoker.diagnose.rule import shipped_rules

    known = next((r for r in shipped_rules() if r.id == rule), None)
    kinds = {known.action} if known is not None else set[str]()
    kinds |= {"retry-at-lower-level"} if "retry-alone" in kinds else set()
    if known is None or action.kind not in kinds or action.variable != known.variable:
        raise CannotResumeError(f"this stoker knows no such remedy for {rule!r}; look at: stoker diagnose")


def _at_level(request: BuildRequest, level: int, environ: Mapping[str, str]) -> BuildRequest:
    """Lower the level; a level that the user gives now takes precedence."""
    spec = request.spec
    jobs = level if spec.jobs is None else min(level, spec.jobs)
    if spec.steps:
        return replace(request, spec=spec._replace(jobs=jobs))
    run = prepared(spec.words, request.window, jobs, environ)
    spec = spec._replace(jobs=jobs, command=run.words, note=run.note)
    return replace(request, spec=spec, environment=run.environment)


def _with_variable(request: BuildRequest, variable: str, environ: Mapping[str, str]) -> BuildRequest:
    name, _, value = variable.partition("=")
    if {**environ, **request.environment}.get(name) == value:
        raise CannotResumeError(f"{variable} was set already and did not help")
    return replace(request, environment={**request.environment, name: value})


def _fetch_submodules(action: Action, folder: str, environ: Mapping[str, str]) -> StepSpec:
    """Return those that were missing then and still are according to git and .gitmodules."""
    missing = missing_submodules(folder, environ)
    names = [path for path in missing.paths if path in action.names] if missing is not None else []
    if missing is None or not names:
        raise CannotResumeError("the submodules are there now, or at a commit of your own; resume without --remedy")
    command = ("git", "-C", str(missing.top), "submodule", "update", "--init", "--recursive", "--", *names)
    return StepSpec("fetch submodules", command, str(missing.top), environment=QUIET, scheduler="none", remedy=True)


def _fetch_large_files(folder: str, environ: Mapping[str, str]) -> StepSpec:
    top = top_of(folder, environ)
    if top is None:
        raise CannotResumeError(f"{folder} is not in a git repository; its large files cannot be fetched")
    if shutil.which("git-lfs", path=environ.get("PATH")) is None:
        raise CannotResumeError("git-lfs is not installed (apt install git-lfs)")
    command = ("git", "-C", str(top), "lfs", "pull")
    return StepSpec("fetch large files", command, str(top), environment=QUIET, scheduler="none", remedy=True)


def _before(request: BuildRequest, step: StepSpec) -> BuildRequest:
    """Return the same build with a step before the one that it starts with."""
    steps = list(request.spec.all_steps())
    steps.insert(request.spec.first - 1, step)
    return replace(request, spec=request.spec._replace(steps=tuple(steps)))
