"""A profile's steps as commands of podman or docker, with the folder that is built at the same path in the container.

Unaware of what is built, and of whether the container engine works here.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.config.profiles.profile import BuildContainer


def run_words(container: BuildContainer, folder: str, cwd: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the words before a command that runs in its own container, in `cwd` below `folder`.

    `names` are variables whose values are passed on from the step's environment.
    """
    words = [container.engine, "run", "--rm", "--ipc=host", "-v", f"{folder}:{folder}", "-w", cwd]
    if container.gpus:
        words += ["--gpus", container.gpus]
    if container.memory:
        words += [f"--memory={container.memory}"]
    if container.user:
        words += ["--user", container.user]
    words += [word for place in container.tmpfs for word in ("--tmpfs", place)]
    words += [word for volume in container.volumes for word in ("-v", volume)]
    words += [word for name in names if name not in container.env for word in ("-e", name)]
    words += [word for name, value in container.env.items() for word in ("-e", f"{name}={value}")]
    return (*words, *container.options, container.image)
