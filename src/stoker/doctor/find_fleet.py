"""Probes machines that compile for others, and shared caches: for each no more than a sign of life.

distcc's hosts compile a line, since nothing less shows that they would. Unaware of what the answers mean.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stoker.doctor.ask_program import LateError, Later, ask
from stoker.doctor.facts import Surroundings
from stoker.doctor.find_cache import sccache_runs
from stoker.doctor.find_tools import CXX_NAMES, which
from stoker.doctor.fleet_facts import DistccHost, DistccTrial, Fleet, SchedulerAnswer
from stoker.sense.caches.endpoints import CachePlace, endpoints
from stoker.sense.caches.probe import Answered, probe
from stoker.sense.caches.sccache_config import read_config

PATIENCE = 2.0
"""Seconds for each: who needs longer to say that it is there is of no use to a compilation of five."""

MAX_HOSTS = 16
"""Of distcc that are asked: all at once, and each compilation is preprocessed here."""

MAX_ANSWER = 256 * 1024
STATUS = "/api/v1/scheduler/status"
"""Where sccache-dist's scheduler says how it is, to anybody (sccache, src/dist/http.rs)."""

ICECREAM_PORT = 8765
"""Where icecream's scheduler listens; the next port takes words of people (icecc-scheduler(1))."""

_MACHINE = re.compile(r"\bjobs=\d+/(\d{1,5})\b", re.ASCII)
_IDENT = re.compile(rb"(?:GCC: \(|clang version |Debian clang|Ubuntu clang)[\x20-\x7e]{1,120}")
"""What a compiler leaves of itself in an object's .comment."""

_SOURCE = b"int stoker_asks(int x) { return x + 1; }\n"


def find_fleet(here: Surroundings) -> Fleet:
    """Return what answers of that which this build would use. Raises LateError if a name server hangs."""
    env, seconds = here.env, min(PATIENCE, here.patience)
    places = endpoints(env, _ccache_storage(here))
    shared = [(place, Later(partial(probe, place, seconds))) for place in places]
    url = here.need.dist or _own_scheduler(env)
    dist = Later(lambda: ask_dist(url, seconds)) if url else None
    icecream = env.get("ICECC_SCHEDULER", "")
    ice = Later(lambda: ask_icecream(icecream, seconds)) if icecream else None
    distcc = _distcc(here, seconds) if env.get("DISTCC_HOSTS") else None
    return Fleet(
        shared=tuple((place, _answer(place, asked, seconds)) for place, asked in shared),
        server=bool(places) and sccache_runs(env),
        dist=dist.result(2 * seconds) if dist is not None else None,
        icecream=ice.result(2 * seconds) if ice is not None else None,
        icecc=which(("icecc",), env),
        distcc=distcc,
        unset=tuple(name for name in here.need.secrets if not env.get(name)),
    )


def _answer(place: CachePlace, asked: Later[Answered], seconds: float) -> Answered:
    try:
        return asked.result(2 * seconds)
    except LateError:
        return Answered(2 * seconds, f"the name {place.host} is not resolved")


def _ccache_storage(here: Surroundings) -> str:
    """Return what ccache's own configuration says; empty where the environment or nothing does."""
    program = which(("ccache",), here.env)
    if not program or here.env.get("CCACHE_REMOTE_STORAGE"):
        return ""
    answer = ask([program, "--get-config", "remote_storage"], here.env, here.patience)
    return "" if answer.problem else answer.text.strip()


def _own_scheduler(env: Mapping[str, str]) -> str:
    """Return the scheduler in a person's own configuration of sccache."""
    dist = read_config(env)[1].get("dist")
    url = dist.get("scheduler_url") if isinstance(dist, dict) else None
    return url if isinstance(url, str) else ""


def ask_dist(url: str, seconds: float) -> SchedulerAnswer:
    """Ask sccache-dist's scheduler for its figures."""
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        with closing(kind(parts.hostname or "", parts.port, timeout=seconds)) as connection:
            connection.request("GET", STATUS, headers={"Accept": "application/json"})
            reply = connection.getresponse()
            said = reply.read(MAX_ANSWER)
        return _dist_figures(url, reply.status, said)
    except (OSError, ValueError, http.client.HTTPException) as err:
        return SchedulerAnswer(url, problem=_problem(err, seconds))


def _dist_figures(url: str, status: int, said: bytes) -> SchedulerAnswer:
    try:
        data: Any = json.loads(said)
        return SchedulerAnswer(url, int(data["num_servers"]), int(data["num_cpus"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return SchedulerAnswer(url, problem=f"what answers there (HTTP {status}) is no scheduler of sccache-dist")


def ask_icecream(place: str, seconds: float) -> SchedulerAnswer:
    """Ask icecream's scheduler, at its port for people, who is there."""
    host, _, port = place.partition(":")
    words = int(port) + 1 if port.isascii() and port.isdecimal() else ICECREAM_PORT + 1
    deadline = time.monotonic() + seconds
    try:
        with socket.create_connection((host, words), seconds) as connection:
            connection.sendall(b"listcs\nquit\n")
            said = _until_closed(connection, deadline)
    except (OSError, ValueError, OverflowError) as err:
        return SchedulerAnswer(place, problem=_problem(err, seconds))
    text = said.decode("ascii", "replace")
    if "ICECC" not in text[:200]:
        return SchedulerAnswer(place, problem=f"what answers at port {words} is no scheduler of icecream")
    slots = [int(number) for number in _MACHINE.findall(text)]
    return SchedulerAnswer(place, len(slots), sum(slots))


def _until_closed(connection: socket.socket, deadline: float) -> bytes:
    said = b""
    while len(said) < MAX_ANSWER:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        data = connection.recv(65536)
        if not data:
            break
        said += data
    return said


def _problem(err: Exception, seconds: float) -> str:
    if isinstance(err, TimeoutError):
        return f"no answer in {seconds:g} s"
    return (getattr(err, "strerror", None) or str(err) or type(err).__name__).lower()


def _distcc(here: Surroundings, seconds: float) -> DistccTrial:
    """Have each host compile a line, all at once."""
    path = which(("distcc",), here.env)
    if not path:
        return DistccTrial("")
    listed = ask([path, "--show-hosts"], here.env, seconds)
    if listed.problem:
        return DistccTrial(path, problem=listed.problem)
    lines = (line.strip() for line in listed.text.splitlines())
    names = [line for line in lines if line and not line.startswith("distcc[")]  # what it complains about
    far = list(dict.fromkeys(name for name in names if not _is_local(name)))
    compiler = os.path.basename(which(CXX_NAMES, here.env)) or CXX_NAMES[0]
    with tempfile.TemporaryDirectory(prefix="stoker-doctor-") as folder:
        own = Later(lambda: _compiled([compiler], "own", folder, here.env, seconds))
        trials = [
            (name, Later(partial(_trial, path, compiler, name, f"host{n}", folder, here.env, seconds)))
            for n, name in enumerate(far[:MAX_HOSTS])
        ]
        hosts = tuple(trial.result(3 * seconds) for _, trial in trials)
        return DistccTrial(path, hosts, max(0, len(far) - MAX_HOSTS), own.result(3 * seconds)[1])


def _is_local(host: str) -> bool:
    return re.match(r"localhost(?:/\d+)?$", host) is not None


def _trial(
    path: str, compiler: str, host: str, name: str, folder: str, env: Mapping[str, str], seconds: float
) -> DistccHost:
    began = time.monotonic()
    # Nothing is to be compiled here instead, and a host that was slow a minute ago must be asked anyway.
    own = {"DISTCC_HOSTS": host, "DISTCC_FALLBACK": "0", "DISTCC_BACKOFF_PERIOD": "0", "DISTCC_IO_TIMEOUT": "2"}
    problem, ident = _compiled([path, compiler], name, folder, {**env, **own}, seconds)
    return DistccHost(host, round(time.monotonic() - began, 2), problem, ident)


def _compiled(words: Sequence[str], name: str, folder: str, env: Mapping[str, str], seconds: float) -> tuple[str, str]:
    """Return what was wrong, and how the compiler calls itself in the object."""
    source, target = Path(folder, f"{name}.cpp"), Path(folder, f"{name}.o")
    source.write_bytes(_SOURCE)
    answer = ask([*words, "-c", str(source), "-o", str(target)], env, seconds)
    if answer.problem:
        return next(_errors(answer.text), answer.problem), ""
    try:
        found = _IDENT.search(target.read_bytes())
    except OSError:
        return "it writes no object", ""
    return "", found[0].decode("ascii") if found else ""


def _errors(text: str) -> Iterator[str]:
    """Yield what distcc complains about, without its own name and number in front."""
    for line in text.splitlines():
        if match := re.match(r"distcc\[\d+\] (?:\(\w+\) )?(?:ERROR|CRITICAL!?|Warning)[:!]? *(.{1,200})", line):
            yield match[1].strip()
