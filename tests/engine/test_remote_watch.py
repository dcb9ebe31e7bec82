"""What is said of other machines that compile for a build, by readers that answer as a test wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stoker.contract.process import Key
from stoker.engine.jobs.remote_watch import RemoteWatch
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.remote import UNNAMED, RemoteEngine, RemoteHost, RemoteKind
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.remote.remote_reader import RemoteLook


class Reader:
    """Knows the hosts that it was given."""

    def __init__(self, kind: RemoteKind) -> None:
        self.kind: RemoteKind = kind
        self.hosts: tuple[RemoteHost, ...] = ()

    def adopt(self, known: RemoteEngine, _at: float, /) -> None:
        self.hosts = known.hosts

    def look(self, jobs: Sequence[JobUse], now: float) -> RemoteLook:
        return RemoteLook(RemoteEngine(self.kind, self.hosts))

    def glance(self, launchers: Sequence[Key], now: float) -> dict[Key, str]:
        return {}

    def compiled_by(self, argv: Sequence[str], folder: str, /) -> str:
        return ""

    async def finish(self) -> RemoteEngine | None:
        return None

    def close(self) -> None:
        pass


def news(watch: RemoteWatch, kind: RemoteKind, now: float) -> list[ev.Event]:
    """What a look at a build of one job makes known."""
    job = JobProcess(9, 1, (8, 1), 0.0, ("distcc",), "a.o", "cxx")
    watch.look([JobUse(job, 0, 0, 0.0, 0.0, kind, "running", sends=kind, launchers=((9, 1),))], now)
    return watch.news(now)


def notices(events: list[ev.Event]) -> list[str]:
    return [e.text for e in events if isinstance(e, ev.Noticed)]


def test_a_lost_host_is_named_once_with_its_remedy_and_an_error_alone_is_no_loss() -> None:
    reader = Reader("sccache")
    watch = RemoteWatch(lambda: [reader])
    host = RemoteHost("far:10501", 2, errors=1)
    reader.hosts = (host,)
    assert notices(news(watch, "sccache", 10.0)) == []
    reader.hosts = (replace(host, errors=3, why_unused="the scheduler has no server", lost=True),)
    (said,) = notices(news(watch, "sccache", 20.0))
    assert said == "lost host far:10501: the scheduler has no server. Look whether `sccache-dist server` runs there"
    reader.hosts = (replace(reader.hosts[0], errors=4),)
    assert notices(news(watch, "sccache", 30.0)) == []


def test_what_a_server_did_before_its_name_was_known_stays_its_own() -> None:
    reader = Reader("sccache")
    watch = RemoteWatch(lambda: [reader])
    reader.hosts = (RemoteHost(UNNAMED, 2),)
    events = news(watch, "sccache", 10.0)
    watch.fell_back(UNNAMED)
    events.append(ev.JobFinished(None, 1, "a.o", "cxx", 9, "ok", host=UNNAMED))
    reader.hosts = (RemoteHost("far:10501", 2, compiled=1),)
    events += news(watch, "sccache", 20.0)
    state = reduce_all(ev.Record(n, float(n), event) for n, event in enumerate(events, 1))
    assert state.remote.finished == {"far:10501": 1}
    assert [(h.name, h.fallbacks) for h in state.remote.engines[0].hosts] == [("far:10501", 1)]


def test_what_sccache_counts_as_done_here_in_the_end_is_counted_though_nobody_saw_it_leave() -> None:
    reader = Reader("sccache")
    watch = RemoteWatch(lambda: [reader])
    reader.hosts = (RemoteHost("far:10501", 2, errors=7, compiled=3),)
    (seen,) = news(watch, "sccache", 10.0)
    assert isinstance(seen, ev.RemoteSeen)
    assert [h.fallbacks for h in seen.engines[0].hosts] == [7]


def test_an_engine_that_takes_over_goes_on_from_what_was_announced() -> None:
    lost = RemoteHost("far", 2, errors=3, fallbacks=4, why_unused="it failed", lost=True)
    before = (RemoteEngine("distcc", (lost, RemoteHost("near", 8, fallbacks=1))),)
    reader = Reader("distcc")
    watch = RemoteWatch(lambda: [reader], before, 9.0)
    assert watch.slots == 8, "known before the first answer"
    assert watch.news(10.0) == []
    assert news(watch, "distcc", 20.0) == [], "nothing is lost anew"
    watch.fell_back("near")
    (seen,) = news(watch, "distcc", 30.0)
    assert isinstance(seen, ev.RemoteSeen)
    assert [(h.name, h.errors, h.fallbacks) for h in seen.engines[0].hosts] == [("far", 3, 4), ("near", 0, 2)]
