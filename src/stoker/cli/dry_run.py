"""What `stoker run --dry-run` prints: the commands of a build as they would be started, where and with what."""

from __future__ import annotations

import shlex

from stoker.contract.spec_file import BuildSpec, StepSpec
from stoker.launch.request import BuildRequest
from stoker.model.text import clean
from stoker.model.units import format_bytes


def dry_run_lines(request: BuildRequest) -> list[str]:
    """Return a paragraph for each step that would run, after what holds for all of them."""
    spec = request.spec
    level = "automatic" if spec.jobs is None else f"{spec.jobs} jobs"
    memory = "all there is" if spec.memory is None else format_bytes(spec.memory)
    lines = [
        f"build    {clean(spec.name)}",
        f"level    {level}; schedulers may start {request.window} at once",
        f"memory   {memory}",
        *([f"notify   {clean(spec.notify)}"] if spec.notify else []),
        *(f"warning  {clean(notice)}" for notice in spec.notices),
    ]
    steps = spec.steps or (StepSpec(spec.name, spec.command, spec.cwd),)
    for number, step in enumerate(steps, 1):
        lines += _step_lines(request, spec, step, number, len(steps))
    return lines


def _step_lines(request: BuildRequest, spec: BuildSpec, step: StepSpec, number: int, count: int) -> list[str]:
    done = "  (done already)" if number < spec.first else ""
    environment = {**request.environment, **step.environment}
    return [
        "",
        f"step {number} of {count}: {clean(step.name)}{done}",
        f"  in {clean(step.cwd)}",
        *(f"  {clean(name)}={clean(shlex.quote(value))}" for name, value in sorted(environment.items())),
        f"  {clean(shlex.join(step.command))}",
    ]
