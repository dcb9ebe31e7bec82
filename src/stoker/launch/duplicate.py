"""Refuses to run the same command in the same folder twice: both builds would write into each other's files.

Unaware of how either is started.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from stoker.config.paths import build_paths
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none
from stoker.launch.refusals import DuplicateBuildError
from stoker.record.builds import live_builds


def check_alone(words: Sequence[str], folder: str) -> None:
    """Refuse to start `words` in `folder` a second time. Raises DuplicateBuildError."""
    for build in live_builds():
        spec = load_or_none(BuildSpec, build_paths(build.id).spec)
        if spec is not None and (spec.cwd, spec.words) == (folder, tuple(words)):
            since = time.strftime("%Y-%m-%d %H:%M", time.localtime(build.started))
            raise DuplicateBuildError(
                f"{build.id} runs the same command in the same folder since {since}; "
                f"watch it with: stoker attach {build.id}, or start it anyway with: stoker run --again"
            )
