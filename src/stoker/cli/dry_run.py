"""What `stoker run --dry-run` prints: the commands of a build as they would be started, where and with what."""

from __future__ import annotations

import shlex

from stoker.contract.spec_file import StepSpec
from stoker.launch.missing_input import missing_input
from stoker.launch.request import BuildRequest
from stoker.launch.window import prepared
from stoker.model.text import clean
from stoker.model.units import format_bytes


def dry_run_lines(request: BuildRequest) -> list[str]:
    """Return a paragraph for each step that would run, after what holds for all of them."""
    spec = request.spec
    level = "automatic" if spec.jobs is None else f"{spec.jobs} jobs"
    memory = "all there is" if spec.memory is None else format_bytes(spec.memory)
    steps = spec.all_steps()
    widths = [_width(request, step) for step in steps]
    alike = widths[0] if len(set(widths)) == 1 else None
    lines = [
        f"build    {clean(spec.name)}",
        f"level    {level}{_width_text('; ', alike)}",
        f"memory   {memory}",
        *([f"notify   {clean(spec.notify)}"] if spec.notify else []),
        *([f"note     {clean(spec.note)}"] if spec.note else []),
        *(f"warning  {clean(notice)}" for notice in _warnings(request, steps)),
    ]
    for number, (step, width) in enumerate(zip(steps, widths, strict=True), 1):
        own = width if alike is None else None
        lines += _step_lines(request, step, own, f"step {number} of {len(steps)}", done=number < spec.first)
    return lines


def _warnings(request: BuildRequest, steps: tuple[StepSpec, ...]) -> list[str]:
    """Return the build's notices, and why its first step would fail at once; that one may make what the others need."""
    first = steps[max(0, request.spec.first - 1)]
    missing = missing_input(first.words or first.command, first.cwd)
    return [*request.spec.notices, *([f"this would fail: {missing}"] if missing else [])]


def _width(request: BuildRequest, step: StepSpec) -> int | None:
    """Return how many jobs a scheduler of this step may start at once."""
    environ = {**request.base, **_environment(request, step)}
    return prepared(step.words or step.command, request.window, request.spec.jobs, environ).width


def _width_text(before: str, width: int | None) -> str:
    return f"{before}a ninja or make may start {width} at once" if width is not None else ""


def _environment(request: BuildRequest, step: StepSpec) -> dict[str, str]:
    return {**request.environment, **step.environment}


def _step_lines(request: BuildRequest, step: StepSpec, width: int | None, title: str, *, done: bool) -> list[str]:
    environment = sorted(_environment(request, step).items())
    return [
        "",
        f"{title}: {clean(step.name)}{'  (done already)' if done else ''}",
        *([_width_text("  ", width)] if width is not None else []),
        f"  in {clean(step.cwd)}",
        *(f"  {clean(name)}={clean(shlex.quote(value))}" for name, value in environment),
        f"  {clean(shlex.join(step.command))}",
    ]
