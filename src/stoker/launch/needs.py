"""What a build in this folder needs, according to its tree, the history and a profile.

Unaware of what the machine has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stoker.config.paths import UnsafeFolderError, history_path
from stoker.config.profiles.fleet_variables import secret_names
from stoker.config.profiles.profile import Profile
from stoker.doctor.need import HeaviestJob, Knobs, Need, Version, Want
from stoker.doctor.switches import switch
from stoker.launch.in_container import run_words
from stoker.record.history import History, KnownJob

ASKED = 200
"""The heaviest remembered jobs among which to search for a build folder's own."""

_COMPILERS = frozenset({"cc", "gcc", "clang", "c++", "g++", "clang++"})
"""Commands that a profile requires if its build compiles C or C++."""

_LIBRARIES = {"cudnn.h": "cudnn", "nccl.h": "nccl"}
"""Headers of optional libraries, which are searched for where CMake searches for them."""


def with_history(need: Need) -> Need:
    """Return the need with the heaviest remembered job of its build folder, among outputs that exist."""
    own = next((job for job in heaviest_known(ASKED) if os.path.isfile(os.path.join(need.build, job.output))), None)
    if own is None or (need.job is not None and need.job.bytes > own.peak):
        return need
    return replace(need, job=HeaviestJob(own.output, round(own.peak), measured=True))


def heaviest_known(most: int) -> Sequence[KnownJob]:
    """Return the heaviest remembered jobs of all folders, at most so many; none if there is no history."""
    try:
        path = history_path()
    except UnsafeFolderError:
        return ()
    if not path.exists():
        return ()
    history = History(path)
    try:
        return history.known(most).heaviest
    finally:
        history.close()


def with_profile(need: Need, profile: Profile, env: Mapping[str, str]) -> Need:
    """Return the need of a tree plus a profile's checks; `env` is the build's environment."""
    if profile.container.image:
        return _of_container(need, profile)
    checks, commands = profile.checks, _commands(profile, env)
    guess = max((prior.curve.peak for prior in profile.priors), default=0.0)
    job = need.job
    if guess and (job is None or job.bytes < guess):
        job = HeaviestJob("by the profile's priors", round(guess), measured=False)
    return replace(
        need,
        what=profile.name,
        build=os.path.normpath(os.path.join(need.source, profile.variables.get("folder") or need.build)),
        folder="must" if need.knobs or "folder" in profile.variables else "may",
        compilers="must" if need.knobs or checks.headers or _COMPILERS & set(checks.commands) else "may",
        scheduler="may",
        disk=checks.disk or need.disk,
        memory=checks.memory or need.memory,
        in_memory=profile.tmp.kind == "tmpfs",
        cores=checks.cores or need.cores,
        commands=commands,
        headers=tuple(name for name in checks.headers if name not in _LIBRARIES),
        libraries=tuple(dict.fromkeys([*need.libraries, *(_LIBRARIES[h] for h in checks.headers if h in _LIBRARIES)])),
        files=checks.files,
        modules=checks.python,
        interpreter=profile.variables.get("python", ""),
        submodules="must" if checks.submodules else need.submodules,
        cuda=_cuda(need, profile, env),
        # What the tree itself says is true for this release of it; a profile is written for many.
        cuda_version=need.cuda_version or _version(checks.cuda),
        cmake=need.cmake or _version(checks.cmake),
        cmake_tool="must" if checks.cmake else need.cmake_tool,
        gpu_or=checks.gpu_or,
        knobs=_knobs(need, profile),
        dist=profile.dist.scheduler,
        secrets=secret_names(profile),
        job=job,
    )


def _of_container(need: Need, profile: Profile) -> Need:
    """Return what a build needs from the machine if its tools are in a container."""
    checks, folder = profile.checks, need.source
    return Need(
        what=profile.name,
        source=folder,
        build=need.build,
        disk=checks.disk or need.disk,
        memory=checks.memory or need.memory,
        cores=checks.cores or need.cores,
        inodes=need.inodes,
        cuda="no",
        compilers="no",
        scheduler="no",
        folder="may",
        files=checks.files,
        submodules="must" if checks.submodules else need.submodules,
        python_headers="no",
        cmake_tool="no",
        container=(*run_words(profile.container, folder, folder, ()), "true"),
    )


def _commands(profile: Profile, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return commands that nothing else can replace: nvcc may be elsewhere, and CC and CXX name other compilers."""
    elsewhere = {"nvcc"}
    for variable, names in (("CC", ("gcc", "cc")), ("CXX", ("g++", "c++"))):
        elsewhere |= set(names) if env.get(variable) else set()
    return tuple(name for name in profile.checks.commands if name not in elsewhere)


def _cuda(need: Need, profile: Profile, env: Mapping[str, str]) -> Want:
    if "USE_CUDA" in profile.env and switch(env.get("USE_CUDA")) is False:
        return "no"
    return "must" if profile.checks.cuda or "nvcc" in profile.checks.commands else need.cuda


def _knobs(need: Need, profile: Profile) -> Knobs:
    """Return whose variables count: the tree's, otherwise those that the profile itself sets."""
    if need.knobs:
        return need.knobs
    return "pytorch" if "USE_CUDA" in profile.env else ""


def _version(text: str | None) -> Version:
    return tuple(int(part) for part in text.split(".")) if text else ()
