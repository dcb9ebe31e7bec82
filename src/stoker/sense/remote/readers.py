"""Creates the readers of all known engines.

To support another engine, start here; then add it to `RemoteKind` (model/remote.py), `LAUNCHERS`
(sense/commands/remote_launchers.py) and `REMEDIES` (engine/jobs/remote_watch.py).
"""

from __future__ import annotations

from stoker.sense.remote.distcc import DistccReader
from stoker.sense.remote.icecream import IcecreamReader
from stoker.sense.remote.remote_reader import RemoteReader
from stoker.sense.remote.sccache_dist import SccacheDistReader


def all_readers() -> list[RemoteReader]:
    """Return a reader of each engine for one build; they read nothing until they are given jobs."""
    return [DistccReader(), IcecreamReader(), SccacheDistReader()]
