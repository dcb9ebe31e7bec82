"""Parses what icecream's scheduler says on its text port: its hosts, their places, and which job is where. Pure.

The text comes from another machine and contains file names: it is bounded, and cleaned before it is shown. Does not
know how the scheduler is asked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from stoker.model.text import clean

DONE = b"200 done"
"""The last line of an answer."""

MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of one answer that are read: 2,000 hosts with four jobs each take 1.5 MiB where paths are long."""

MAX_LINE = 16 * 1024
"""Bytes of one line: a file name is at most 4 KiB, and some flags stand before it."""

MAX_HOSTS = 2048
MAX_JOBS = 16384
"""Limits for one answer; more are dropped."""

MAX_PLACES = 4096
"""Maximum number of places accepted for one host."""

NAME_LIMIT = 64
"""Characters of a host's name that are kept."""

BUSY_LOAD = 1000
"""From this load on, a host gets no job, however many places it has (scheduler.cpp)."""

_HOST = re.compile(
    r" (?P<name>[^\n]{1,255}) \((?P<address>[^\s()]{1,255}):\d{1,5}\) \[[^\]\n]{0,255}\]"
    r" speed=[^\s]{1,32} jobs=(?P<used>-?\d{1,9})/(?P<places>-?\d{1,9}) load=(?P<load>\d{1,10})"
    r"(?P<installing> busy installing since -?\d{1,19} s)?",
    re.ASCII,
)
_JOB = re.compile(
    r" {1,3}(?P<id>\d{1,10}) (?P<state>PEND|WAIT|COMP) sub:(?P<client>[^\n]{1,255}?) on:(?P<host>[^\n]{1,255}?) "
    r"(?P<file>.+)",
    re.ASCII,
)


class IcecreamHost(NamedTuple):
    """A host as listed by the scheduler. `obstacle`: why it gets no job now, empty if it may."""

    name: str
    address: str
    places: int
    used: int
    obstacle: str = ""


class IcecreamJob(NamedTuple):
    """Any client's job that was given to a host. `file` is the end of its source's path. `compiles`: the host has
    begun; otherwise its client connects, sends the compiler, or waits for a place there."""

    client: str
    host: str
    file: str
    compiles: bool


class Listing(NamedTuple):
    """The answer to one `listcs`."""

    hosts: tuple[IcecreamHost, ...] = ()
    jobs: tuple[IcecreamJob, ...] = ()


def read_listing(answer: bytes) -> Listing:
    """Return the hosts, and the jobs that each was given; other lines are ignored."""
    hosts: list[IcecreamHost] = []
    jobs: list[IcecreamJob] = []
    for line in answer[:MAX_ANSWER].decode("utf-8", "replace").split("\n"):
        if len(line) > MAX_LINE:
            continue
        if (host := _HOST.fullmatch(line)) is not None and len(hosts) < MAX_HOSTS:
            hosts.append(_host(host))
        elif (job := _JOB.fullmatch(line)) is not None and len(jobs) < MAX_JOBS:
            jobs.append(IcecreamJob(_name(job["client"]), _name(job["host"]), job["file"], job["state"] == "COMP"))
    return Listing(tuple(hosts), tuple(jobs))


def _host(match: re.Match[str]) -> IcecreamHost:
    places, used = int(match["places"]), int(match["used"])
    if places < 0:  # a daemon that has to answer first (scheduler.cpp, prune_servers)
        obstacle = "does not answer the scheduler"
    elif places == 0:
        obstacle = "takes no jobs"
    elif int(match["load"]) >= BUSY_LOAD:
        obstacle = "too busy with its own work"
    elif match["installing"]:
        obstacle = "receives the compiler"
    else:
        obstacle = ""
    return IcecreamHost(
        _name(match["name"]), match["address"], min(abs(places), MAX_PLACES), min(max(0, used), MAX_PLACES), obstacle
    )


def _name(text: str) -> str:
    return clean(text, NAME_LIMIT)
