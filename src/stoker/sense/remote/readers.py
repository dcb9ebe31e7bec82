"""The readers of all engines that are known. Another engine begins here."""

from __future__ import annotations

from stoker.sense.remote.distcc import DistccReader
from stoker.sense.remote.icecream import IcecreamReader
from stoker.sense.remote.remote_reader import RemoteReader
from stoker.sense.remote.sccache_dist import SccacheDistReader


def all_readers() -> list[RemoteReader]:
    """A reader of each engine for one build; they read nothing before they are given jobs."""
    return [DistccReader(), IcecreamReader(), SccacheDistReader()]
