"""Judges whether the container that a build is to run in can be started, by what its engine said. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import ContainerTrial
from stoker.doctor.need import Need

CONF = "/etc/containers/containers.conf.d"
"""Where podman takes settings from files of their own as well (containers.conf(5))."""

MOST_FILES, MOST_PROCESSES = 1_048_576, 4_194_304
"""What podman asks for unless its settings say less: more than the kernel's own bounds is of no use to anybody."""


class _Obstacle(NamedTuple):
    """Words of an engine's complaint, all of which it holds; what that means, and the cure."""

    words: tuple[str, ...]
    why: str
    remedy: str


_OBSTACLES = (
    _Obstacle(
        ("hybrid mode not supported",),
        "crun refuses control groups of both versions; runc takes them",
        f"apt-get install runc && mkdir -p {CONF} && printf '[engine]\\nruntime = \"runc\"\\n' > {CONF}/runc.conf",
    ),
    _Obstacle(
        ("rlimit", "not permitted"),
        "the engine asks for higher limits than this user may have (ulimit -Hn: {files})",
        f"mkdir -p {CONF} && "
        'printf \'[containers]\\ndefault_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]\\n\' '
        f"> {CONF}/limits.conf",
    ),
    _Obstacle(("Cannot connect to the Docker daemon",), "docker's daemon does not run", "systemctl start docker"),
    _Obstacle(
        ("permission denied", "docker"),
        "docker's daemon does not let this user in",
        "sudo usermod -aG docker $USER  # and log in again; or engine: podman",
    ),
    _Obstacle(
        ("could not select device driver",),
        "docker cannot hand GPUs on without NVIDIA's container toolkit",
        "apt-get install nvidia-container-toolkit && nvidia-ctk runtime configure && systemctl restart docker",
    ),
    _Obstacle(
        ("unresolvable CDI devices",),
        "podman does not know the GPUs",
        "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml  # and options: [--device=nvidia.com/gpu=all]",
    ),
    _Obstacle(("no space left on device",), "the disk of the images is full", "{engine} system prune"),
    _Obstacle(("newuidmap",), "this user has no range of IDs of its own", "usermod --add-subuids 100000-165535 $USER"),
)

_ABSENT = ("image not known", "No such image", "Unable to find image", "does not exist in local storage")
_STARTED = ("executable file", "not found")
"""The image has no `true`: all but that has worked."""


def judge_container(trial: ContainerTrial | None, need: Need) -> Iterator[Check]:
    """Judge a trial; yields nothing for a build without a container."""
    if trial is None:
        return
    name, image = f"container ({trial.engine})", quote(trial.image)
    if not trial.path:
        yield fail(name, f"{trial.engine} is not on PATH", f"apt-get install {_package(trial.engine)}")
    elif not trial.problem or all(word in trial.said for word in _STARTED):
        yield ok(name, f"{trial.image} starts, in {trial.seconds:g} s")
    elif any(words in trial.said for words in _ABSENT):
        why = f"{trial.image} is not here; it is fetched when {need.what} begins"
        yield warn(name, why, f"{trial.engine} pull {image}")
    else:
        yield _stopped(name, trial)


def _stopped(name: str, trial: ContainerTrial) -> Check:
    said = trial.said.lower()
    known = next((o for o in _OBSTACLES if all(word.lower() in said for word in o.words)), None)
    if known is None:
        return (warn if trial.late else fail)(name, f"no container of {trial.image} starts: {trial.problem}", "")
    files, processes = (_within(*pair) for pair in zip(trial.limits, (MOST_FILES, MOST_PROCESSES), strict=True))
    figures = {"files": str(files), "processes": str(processes), "engine": trial.engine}
    why, remedy = known.why, known.remedy
    for key, value in figures.items():
        why, remedy = why.replace(f"{{{key}}}", value), remedy.replace(f"{{{key}}}", value)
    return fail(name, f"no container starts: {why}", remedy)


def _within(limit: int, most: int) -> int:
    """Return a limit that can be asked for; -1 is without end (getrlimit(2))."""
    return most if limit < 0 else min(limit, most)


def _package(engine: str) -> str:
    return {"docker": "docker.io"}.get(engine, f"--no-install-recommends {engine} runc")
