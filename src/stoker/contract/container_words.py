"""The arguments of `podman run` and `docker run`, and the label by which a build finds its containers again.

Unaware of processes, and of what runs in a container.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

LABEL = "stoker.build"

ENGINES = ("podman", "docker")
VERBS = frozenset(("run", "create", "exec", "start", "build", "attach", "pull", "compose"))
MAKE = ("run", "create")
"""Verbs that make a container. `container run` is the longer form of `run`."""

HANDED_ON = ("CMAKE_BUILD_PARALLEL_LEVEL", "MAX_JOBS", "NINJAFLAGS")
"""Variables that set the width of schedulers in there; one that is not set is not passed on."""


class ContainerCommand(NamedTuple):
    """A command that makes a container: the engine's program, the container's label, and whether it has `--rm`."""

    engine: str
    label: str
    remove: bool


def is_engine(word: str) -> bool:
    """Say whether this is podman or docker."""
    return os.path.basename(word) in ENGINES


def _behind_verb(words: Sequence[str]) -> int:
    """Return the index after `run` or `create`; 0 if the words create no container."""
    if not words or not is_engine(words[0]):
        return 0
    verb = next((n for n, word in enumerate(words) if n and word in VERBS), 0)
    return verb + 1 if verb and words[verb] in MAKE else 0


def labelled(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command with a label of its own for its container, and with the variables that make schedulers wide.

    They come before the user's own options, which win. Other commands stay unchanged.
    """
    place = _behind_verb(words)
    if not place:
        return tuple(words)
    added = ["--label", f"{LABEL}={os.urandom(8).hex()}", *(w for name in HANDED_ON for w in ("-e", name))]
    return (*words[:place], *added, *words[place:])


def container_command(words: Sequence[str]) -> ContainerCommand | None:
    """Return the container of a command that was `labelled`; None for any other."""
    place = _behind_verb(words)
    if not place or len(words) < place + 2 or words[place] != "--label":
        return None
    remove = next((word for word in words[place:] if word.partition("=")[0] == "--rm"), "--rm=false")
    return ContainerCommand(words[0], words[place + 1], remove in ("--rm", "--rm=true"))
