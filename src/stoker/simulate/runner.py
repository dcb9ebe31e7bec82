"""Runs one simulation from the first job to the last, and returns its result. Knows no file and no screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stoker.simulate.drivers import Driver, Fixed, KillAndRestart, LoadLimited, PressureLimited, Stoker, reserve_of
from stoker.simulate.oracle import Prediction, oracle
from stoker.simulate.simulated_machine import Machine, lower_bound
from stoker.simulate.trace import TraceJob

POLICY_NAMES = "stoker, fixed:N, longest:N, load:N, kill-and-restart and psi"


class UnknownPolicyError(ValueError):
    """There is no policy of this name; the message lists them."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one policy on one build, in seconds and bytes.

    `kills` counts jobs killed because memory ran out, by the kernel or by the policy; `restarts` schedulers that were
    killed. `lost_seconds` is CPU time whose work was thrown away. `idle` is how long the machine as a whole was idle:
    the makespan minus all CPU time spent per core. `given_up` counts jobs larger than the machine, `shed` the kills
    that were the policy's own.
    """

    policy: str
    makespan: float
    peak: float
    kills: int
    lost_seconds: float
    idle: float
    bound: float
    ratio: float
    restarts: int = 0
    given_up: int = 0
    frozen: int = 0
    shed: int = 0
    asked: int = 0


def simulate(
    jobs: Iterable[TraceJob],
    cores: int,
    ram: float,
    policy: str = "stoker",
    prediction: Prediction = "noisy",
    seed: int = 1,
    *,
    others: float = 0.0,
    level: int | None = None,
    far: Callable[[float], None] = lambda _: None,
) -> Result:
    """Run the whole build under a policy; raises UnknownPolicyError. `others` is the other work on the machine, in
    cores; `level` the maximum number of jobs at once under stoker, None for its own choice; `far` is called with the
    progress, from 0 to 1."""
    jobs = tuple(jobs)
    driver = driver_of(policy, prediction, seed, level)
    machine = Machine(jobs, cores, ram, others, longest_first=policy.startswith(LONGEST))
    while not machine.over:
        machine.advance(driver.tick(machine))
        far(machine.tally.finished / len(jobs))
    tally = machine.tally
    spent = sum(j.cpu for j in jobs) + tally.lost
    bound = lower_bound(jobs, cores, ram - reserve_of(ram))
    return Result(
        policy,
        machine.now,
        tally.peak,
        tally.kills,
        tally.lost,
        max(0.0, machine.now - spent / cores),
        bound,
        machine.now / bound,
        tally.restarts,
        len(tally.given_up),
        driver.counts["freeze"] if isinstance(driver, Stoker) else 0,
        driver.counts["shed"] if isinstance(driver, Stoker) else 0,
        driver.asked if isinstance(driver, Stoker) else 0,
    )


def driver_of(policy: str, prediction: Prediction = "noisy", seed: int = 1, level: int | None = None) -> Driver:
    """Return the driver of that name: stoker, fixed:N, longest:N, load:N, kill-and-restart or psi."""
    if policy == "stoker":
        return Stoker(oracle(prediction, seed), level)
    if policy == "kill-and-restart":
        return KillAndRestart()
    if policy == "psi":
        return PressureLimited()
    kind, _, number = policy.partition(":")
    if kind in _BY_NUMBER and number.isdecimal() and int(number) > 0:
        return _BY_NUMBER[kind](int(number))
    raise UnknownPolicyError(f"no policy {policy!r}; there are {POLICY_NAMES}")


LONGEST = "longest"
"""Ninja from 1.12 on: `fixed`, with the longest chain of edges first. It assumes that all edges take equally long."""

_BY_NUMBER: dict[str, Callable[[int], Driver]] = {"fixed": Fixed, LONGEST: Fixed, "load": LoadLimited}


FIXED_LEVELS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
"""Levels that a user might try by hand."""


def best_fixed(jobs: Iterable[TraceJob], cores: int, ram: float, others: float = 0.0) -> Result | None:
    """Return the fastest `-j N`, up to the number of cores, that kills no job: the best choice in hindsight."""
    jobs = tuple(jobs)
    levels = [n for n in FIXED_LEVELS if n < cores] + [cores]
    results = [simulate(jobs, cores, ram, f"fixed:{n}", others=others) for n in levels]
    return min((r for r in results if r.kills == 0), key=lambda r: r.makespan, default=None)
