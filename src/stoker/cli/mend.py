"""What any command does first for the builds that it looks at: those that nobody minds any more are given a guard.

Unaware of how.
"""

from __future__ import annotations

import sys

from stoker.act.heal import heal
from stoker.config.paths import BuildPaths, builds_dir
from stoker.model.text import clean
from stoker.record.builds import list_builds


def mend(paths: BuildPaths) -> None:
    """Heal one build, and say so on stderr where there was need."""
    if done := heal(paths):
        print(f"stoker: {clean(done)}", file=sys.stderr)


def mend_all() -> None:
    """Heal every build of which it is not known how it ended."""
    for build in list_builds():
        if build.exit_code is None:
            mend(BuildPaths(builds_dir() / build.id))
