"""Runs the doctor before a build of a profile: failures prevent the build, warnings become notices.

Each step is checked as it would run, in its own environment. Unaware of how anything is checked.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from stoker.doctor.check import Check, Examination, Status
from stoker.doctor.examine import Examining
from stoker.doctor.need import Need
from stoker.doctor.recognise import recognise
from stoker.launch.from_profile import ProfilePlan
from stoker.launch.needs import with_history, with_profile
from stoker.launch.refusals import LaunchError
from stoker.launch.request import BuildRequest
from stoker.model.text import clean

PROGRAM_SECONDS = 2.0
"""Time limit for each program that is run: a healthy one answers in hundredths of a second (all parts together took 0.3
s on two cores with a load of 17), and two in sequence must fit into the time for all."""

TOTAL_SECONDS = 5.0
"""Time limit for all checks together; a check without an answer by then is a warning, and the build starts."""

QUIET_SECONDS = 1.0
"""Seconds after which to print what the doctor is waiting for."""

LONGEST = 600
"""Characters of a check's reason, and of its remedy, that are printed in a line: a path may have 4096."""

Say = Callable[[str], None]


def with_precheck(plan: ProfilePlan, request: BuildRequest, say: Say, warn: Say) -> BuildRequest:
    """Run the checks, and return the build with the doctor's warnings as notices; `warn` gets these too.

    Raises LaunchError if something fails.
    """
    warnings = precheck(plan, request, say)
    for warning in warnings:
        warn(warning)
    return request.noticing(*(f"doctor: {warning}" for warning in warnings))


def precheck(plan: ProfilePlan, request: BuildRequest, say: Say) -> list[str]:
    """Check the folder of `request` for the steps that it runs, and return the warnings.

    `say` gets a line about what is awaited, if it takes a while. Raises LaunchError if anything fails.
    """
    spec = request.spec
    folder, steps = spec.cwd, [step.name for step in spec.steps[spec.first - 1 :]]
    temporary = {"TMPDIR": spec.ramdisk.parent} if spec.ramdisk is not None else {}
    environ = {**request.base, **request.environment, **temporary}
    began = time.monotonic()
    by_step = {step.name: {**environ, **step.env} for step in plan.profile.steps if step.name in steps}
    environments: list[tuple[list[str], Mapping[str, str]]] = []
    for name, env in by_step.items():
        same = next((names for names, other in environments if other == env), None)
        same.append(name) if same is not None else environments.append(([name], env))
    running = [(names, Examining(_need(plan, folder, env), env, PROGRAM_SECONDS)) for names, env in environments]
    _say_what_is_waited_for([examining for _, examining in running], began + QUIET_SECONDS, say)
    end = began + TOTAL_SECONDS
    checks = list(_combined([(names, examining.result(end - time.monotonic())) for names, examining in running]))
    failed = [check for check in checks if check.status == "fail"]
    if failed:
        raise LaunchError(_refusal(failed, len(checks), plan))
    return [_sentence(check) for check in checks if check.status == "warn"]


def _need(plan: ProfilePlan, folder: str, env: Mapping[str, str]) -> Need:
    """Return the need. If memory is too small for the heaviest job measured here, that is only a notice."""
    need = with_history(with_profile(recognise(folder, env), plan.profile, env))
    return replace(need, job=replace(need.job, measured=False)) if need.job is not None else need


def _say_what_is_waited_for(running: Sequence[Examining], until: float, say: Say) -> None:
    waiting = [examining.waiting(max(0.0, until - time.monotonic())) for examining in running]
    late = list(dict.fromkeys(name for names in waiting for name in names))
    if late:
        say(f"checking whether it can succeed here; waiting for {', '.join(late)}")


def _combined(found: Sequence[tuple[Sequence[str], Examination]]) -> Iterator[Check]:
    """Yield the checks of all environments, each once. What fails only in some is a warning."""
    for name in dict.fromkeys(check.name for _, examination in found for check in examination.checks):
        answers = [(steps, [c for c in examination.checks if c.name == name]) for steps, examination in found]
        statuses = [[check.status for check in checks] for _, checks in answers]
        if all(other == statuses[0] for other in statuses):
            yield from answers[0][1]
            continue
        status: Status = "fail" if all("fail" in given for given in statuses) else "warn"
        for steps, checks in answers:
            grave = [check for check in checks if check.status != "ok"]
            yield from (replace(c, status=status, why=f"in step {' and '.join(steps)}: {c.why}") for c in grave)


def _refusal(failed: Sequence[Check], total: int, plan: ProfilePlan) -> str:
    """Return one line: the first thing to repair, how, and the command that prints the rest."""
    words = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in plan.settings.items()]
    doctor = " ".join(["stoker doctor -p", shlex.quote(plan.profile.name), *words])
    rest = f"{len(failed)} of {total} checks fail" if len(failed) > 1 else f"1 of {total} checks fails"
    return f"not started. {_sentence(failed[0])} ({rest}: {doctor}; past them: --no-doctor)"


def _sentence(check: Check) -> str:
    """Return it on one line. Names come from the tree, which may be malicious: no escapes, and bounded."""
    remedy = f" -> {clean(check.remedy, LONGEST)}" if check.remedy else ""
    return f"{clean(check.name, LONGEST)}: {clean(check.why, LONGEST)}{remedy}"
