"""The first events of a build, from what `launch/` wrote down. Unaware of the journal and of processes."""

from __future__ import annotations

import os
import socket

from stoker import __version__
from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.model.events import BuildStarted, Decided, Event


def beginning_of(paths: BuildPaths, spec: BuildSpec) -> BuildStarted:
    """Return the first event of a journal."""
    return BuildStarted(
        paths.id,
        spec.name,
        spec.words,
        spec.cwd,
        str(paths.output),
        socket.gethostname(),
        os.cpu_count() or 1,
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        __version__,
    )


def decided_before(spec: BuildSpec) -> list[Event]:
    """Return what a person decided before anything ran: to resume an earlier build, and how."""
    return [Decided(*spec.decided)] if spec.decided is not None else []
