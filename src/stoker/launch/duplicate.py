"""Refuses to run the same command in the same folder twice: both builds would write into each other's files.

Unaware of how either is started.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none
from stoker.launch.refusals import DuplicateBuildError
from stoker.model.text import clean
from stoker.record.folders import build_folders, runs

LONGEST = 400
"""Characters of a command that is printed for copying; of a longer one only what to add to it is said."""


def check_alone(words: Sequence[str], folder: str, anyway: Sequence[str]) -> None:
    """Refuse to start `words` in `folder` a second time; the command `anyway` would. Raises DuplicateBuildError."""
    same = {paths.id for paths in build_folders() if runs(paths) and _is_of(paths, words, folder)}
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


def _is_of(paths: BuildPaths, words: Sequence[str], folder: str) -> bool:
    spec = load_or_none(BuildSpec, paths.spec)
    return spec is not None and (spec.cwd, spec.words) == (folder, tuple(words))


def _copyable(command: Sequence[str]) -> str:
    """Return a command that a shell understands, on one line."""
    text = shlex.join(command)
    return text if text == clean(text, LONGEST) else "stoker run --again, and the rest as before"
