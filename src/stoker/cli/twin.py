"""The build that runs the same command in the same folder already: two would write into each other's files.

Unaware of how either is started.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from stoker.cli.errors import CliError
from stoker.config.paths import build_paths
from stoker.record.builds import live_builds, read_object


def check_alone(words: Sequence[str], folder: str, status: int) -> None:
    """Refuse to start `words` in `folder` a second time. Raises CliError with `status`."""
    for build in live_builds():
        spec = read_object(build_paths(build.id).spec)
        if spec.get("cwd") == folder and spec.get("words") == list(words):
            since = time.strftime("%Y-%m-%d %H:%M", time.localtime(build.started))
            raise CliError(
                f"{build.id} runs the same command in the same folder since {since}; "
                f"look at it with: stoker attach {build.id}, or start it all the same with: stoker run --again",
                status,
            )
