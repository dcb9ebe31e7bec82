"""Judges machines that compile for others, and caches that many share. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import Surroundings
from stoker.doctor.fleet_facts import DistccTrial, Fleet, SchedulerAnswer
from stoker.doctor.install import install
from stoker.sense.caches.endpoints import CachePlace
from stoker.sense.caches.probe import Answered, cost

SLOW = 0.5
"""Seconds for a sign of life, which takes a few ms on a network of one's own."""


def judge_fleet(fleet: Fleet, here: Surroundings) -> Iterator[Check]:
    """Judge what the build uses of it; yields nothing for what it does not use."""
    for name in fleet.unset:
        yield fail(name, "it is not set, and the profile names it for a secret", f"read -rs {name} && export {name}")
    for place, answered in fleet.shared:
        yield _shared(place, answered, runs=fleet.server)
    if fleet.dist is not None:
        yield _scheduler("sccache-dist", fleet.dist, "systemctl start sccache-dist-scheduler")
    if fleet.icecream is not None:
        yield _scheduler("icecream", fleet.icecream, "systemctl start icecc-scheduler")
        if not fleet.icecc:
            yield warn("icecc", "it is not on PATH: all is compiled here", install("icecc", here.manager))
    if fleet.distcc is not None:
        yield from _distcc(fleet.distcc, here)


def _shared(place: CachePlace, answered: Answered, *, runs: bool) -> Check:
    """`runs`: sccache's server does already; without its cache none starts."""
    name, took = f"shared cache {place.name}", f"{1000 * answered.seconds:.0f} ms"
    if answered.problem:
        away = f"unset {place.origin}" if place.origin.isupper() else f"take it out of {place.origin}"
        remedy = f"{away}  # or start it again"
        if place.tool == "sccache" and not runs:
            return fail(name, f"{answered.problem}; sccache's server does not start, and no compilation works", remedy)
        return warn(name, f"{answered.problem}; {cost(place, answered)}", remedy)
    if answered.seconds > SLOW:
        return warn(name, f"it takes {took} for an answer; each compilation waits for several", f"unset {place.origin}")
    return ok(name, f"it answers in {took} ({place.tool})")


def _scheduler(name: str, answer: SchedulerAnswer, start: str) -> Check:
    if answer.problem:
        return warn(name, f"{answer.place}: {answer.problem}; all is compiled here", f"{start}  # on that machine")
    if not answer.machines:
        return warn(name, f"{answer.place} answers, and no machine has come to it; all is compiled here", start)
    machines = f"{answer.machines} machine{'' if answer.machines == 1 else 's'}"
    return ok(name, f"{answer.place}: {machines}, {answer.slots} jobs at once")


def _distcc(trial: DistccTrial, here: Surroundings) -> Iterator[Check]:
    if not trial.path:
        yield warn("distcc", "it is not on PATH: all is compiled here", install("distcc", here.manager))
        return
    if trial.problem:
        yield warn("distcc", f"its hosts cannot be listed: {trial.problem}", f"{quote(trial.path)} --show-hosts")
        return
    for host in trial.hosts:
        name, show = f"distcc host {host.name}", f"DISTCC_HOSTS={quote(host.name)} DISTCC_VERBOSE=1 distcc g++ -c x.cpp"
        if host.problem:
            yield warn(name, f"it compiles nothing: {host.problem}", show)
        elif host.compiler != trial.compiler:
            why = f"it compiles with {host.compiler or 'an unknown compiler'}, and here is {trial.compiler}"
            yield warn(name, f"{why}: objects of two compilers are linked", "install the same compiler there")
        else:
            yield ok(name, f"it compiles a line in {host.seconds:g} s with {host.compiler}")
    if trial.left_out:
        yield ok("distcc", f"{trial.left_out} further hosts were not asked")
    if not trial.hosts:
        yield warn("distcc", "DISTCC_HOSTS names no other machine", "export DISTCC_HOSTS='build1/16 localhost/2'")
