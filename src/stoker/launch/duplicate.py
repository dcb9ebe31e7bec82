"""Refuses to run the same command in the same folder twice, and warns of a different one of the same tool there: both
builds would write into each other's files.

Unaware of how either is started.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none
from stoker.launch.refusals import DuplicateBuildError
from stoker.model.text import clean
from stoker.record.folders import build_folders, runs

LONGEST_BESIDE = 80
"""Characters of the other command in a warning."""

LONGEST = 400
"""Characters of a command that is printed for copying; of a longer one only what to add to it is said."""


LiveSpecs = Mapping[str, BuildSpec]
"""What each running build was asked to do, by its ID."""


def live_specs() -> LiveSpecs:
    """Read what every running build was asked to do."""
    found = {paths.id: load_or_none(BuildSpec, paths.spec) for paths in build_folders() if runs(paths)}
    return {build: spec for build, spec in found.items() if spec is not None}


def check_alone(words: Sequence[str], folder: str, anyway: Sequence[str], live: LiveSpecs) -> None:
    """Refuse to start `words` in `folder` a second time; the command `anyway` would. Raises DuplicateBuildError."""
    same = {build for build, spec in live.items() if (spec.cwd, spec.words) == (folder, tuple(words))}
    if not same:
        return
    from stoker.record.builds import live_builds  # it reads journals, for which nearly no build has to wait

    for build in live_builds():
        if build.id in same:
            since = time.strftime("%Y-%m-%d %H:%M", time.localtime(build.started))
            raise DuplicateBuildError(
                f"{build.id} runs the same command in the same folder since {since}; "
                f"watch it with: stoker attach {build.id}, or start it anyway with: {_copyable(anyway)}"
            )


def beside(words: Sequence[str], folder: str, live: LiveSpecs) -> tuple[str, ...]:
    """Return a warning for each live build that runs the same tool in the same build folder with other arguments: make
    and ninja don't lock it."""
    if not words or Path(words[0]).name not in _TOOLS:
        return ()
    return tuple(
        f"{build} builds in this folder too, with {clean(shlex.join(spec.words), LONGEST_BESIDE)}: "
        "both may write the same files"
        for build, spec in live.items()
        if spec.words and place(spec.words, spec.cwd) == place(words, folder)
    )


def place(words: Sequence[str], folder: str) -> tuple[str, Path]:
    """Return the tool of a command and the folder in which it builds."""
    named = [value for option, value in pairwise(words) if option in _FOLDER_OPTIONS]
    return Path(words[0]).name, Path(folder, *named[:1]).resolve()


_TOOLS = frozenset({"make", "gmake", "ninja", "ninja-build", "samu", "cmake", "meson"})
"""Programs that build in their folder; what a script of two does, nobody knows."""

_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--build"})
"""Of make and ninja, make's long one, and cmake's."""


def _copyable(command: Sequence[str]) -> str:
    """Return a command that a shell understands, on one line."""
    text = shlex.join(command)
    return text if text == clean(text, LONGEST) else "stoker run --again, and the rest as before"
