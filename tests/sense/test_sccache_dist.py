"""Where sccache-dist has jobs compiled, by processes as they were recorded of a real one; tests/e2e has the real one.

Recorded with sccache 0.16 on two CPUs: `sccache-fallback` are six C++ jobs of which the only server took three, so that
three were compiled here; `sccache-nvcc` are two C++ jobs and a CUDA one for two architectures, all compiled there.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.model.remote import NO_HOST, NO_HOST_YET, RemoteEngine, RemoteHost
from stoker.sense.proc import jobs as jobs_module
from stoker.sense.proc.jobs import JobTracker, JobUse
from stoker.sense.proc.schedulers import SchedulerFinder
from stoker.sense.remote import sccache_dist
from stoker.sense.remote.reach_question import ReachQuestion
from stoker.sense.remote.remote_reader import RemoteLook
from stoker.sense.remote.sccache_dist import SccacheDistReader
from support.recorded_processes import Recording

STATUS = '{"SchedulerStatus":["http://127.0.0.1:10600/",{"num_servers":1,"num_cpus":2,"in_progress":3}]}'
DISABLED = '{"Disabled":"disabled"}'


def stats(errors: int = 0, **compiles: int) -> str:
    """What was compiled by each server."""
    return json.dumps({"stats": {"dist_compiles": compiles, "dist_errors": errors}})


class Answers:
    """In the place of a program that is asked: what it answers, once for each question."""

    def __init__(self) -> None:
        self.status = STATUS
        self.stats = stats(server=3)
        self.asked = 0

    def look(self, command: Sequence[str], env: Mapping[str, str]) -> str | None:
        self.asked += 1
        return self.status if "--dist-status" in command else self.stats

    async def again(self, command: Sequence[str], env: Mapping[str, str]) -> str | None:
        return self.look(command, env)

    def close(self) -> None:
        pass


class Replay:
    """A recorded build, look after look: what the tracker and the reader make of it."""

    def __init__(self, name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recording = Recording(name, root)
        self.answers = Answers()
        monkeypatch.setattr(sccache_dist, "BackgroundQuestion", lambda every: self.answers)
        monkeypatch.setattr(sccache_dist, "start_wall", self.recording.started)
        monkeypatch.setattr(jobs_module, "start_wall", lambda ticks, now, _=0.0: self.recording.started(ticks, now))
        self.reader = SccacheDistReader(root)
        self.tracker = JobTracker(root)
        self.finder = SchedulerFinder(root)
        self.history: list[tuple[float, dict[str, JobUse], RemoteLook]] = []

    def looks(self) -> Iterator[tuple[float, list[JobUse]]]:
        """The time, and the jobs."""
        for at, processes in self.recording.looks():
            report = self.tracker.update(processes, self.finder.find(processes), at)
            if uses := [use for use in report.running if use.sends == "sccache"]:
                yield at, uses

    def run(self) -> None:
        for at, uses in self.looks():
            self.history.append((at, {use.job.output: use for use in uses}, self.reader.look(uses, at)))

    def course(self, output: str) -> list[str]:
        """What became of a job, one word for each change."""
        words: list[str] = []
        for _, uses, look in self.history:
            use = uses.get(output)
            word = "" if use is None else _word(use, look)
            if word and words[-1:] != [word]:
                words.append(word)
        return words


def _word(use: JobUse, look: RemoteLook) -> str:
    if use.works_here:
        return "prepares" if use.prepares else "compiles here"
    return "elsewhere" if any(key in look.waits for key in use.launchers) else "begins"


def replay(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    made = Replay(name, tmp_path / "proc", monkeypatch)
    made.run()
    return made


def test_a_job_is_elsewhere_once_its_preprocessing_is_over_and_falls_back_as_the_servers_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = replay("sccache-fallback", tmp_path, monkeypatch)
    courses = {name: build.course(f"{name}.o") for name in ("f0", "f1", "f2", "f3", "f4", "f5")}
    for name in ("f0", "f1", "f5"):
        assert courses[name][-1] == "elsewhere", name
        assert "compiles here" not in courses[name]
    for name in ("f2", "f3", "f4"):
        assert courses[name][-2:] in (["elsewhere", "compiles here"], ["compiles here", "begins"]), name
        assert "elsewhere" in courses[name]
    assert all("prepares" in course for course in courses.values())
    here = [sum(use.works_here and not use.prepares for use in uses.values()) for _, uses, _ in build.history]
    assert max(here) == 2, "as many as its server has CPUs, whatever the level"


def test_all_passes_of_nvcc_are_elsewhere_and_only_preprocessing_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = replay("sccache-nvcc", tmp_path, monkeypatch)
    course = build.course("kernel.o")
    assert "compiles here" not in course
    assert course.count("prepares") >= 2, "each architecture is preprocessed for itself"
    assert course.count("elsewhere") >= 2
    assert build.course("f0.o")[-1] == "elsewhere"


def test_the_only_server_is_the_host_of_all_that_wait_and_has_the_schedulers_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Replay("sccache-fallback", tmp_path / "proc", monkeypatch)
    hosts = []
    for at, uses in build.looks():
        look = build.reader.look(uses, at)
        build.answers.stats = stats(errors=5, **{"10.0.0.2:10501": 7})
        if look.engine is not None:
            hosts = list(look.engine.hosts)
            assert set(look.waits.values()) <= {"sccache-dist", "10.0.0.2:10501", NO_HOST}
            assert hosts[0].taken == max(0, 3 - sum(host != NO_HOST for host in look.waits.values()))
    known = RemoteHost("10.0.0.2:10501", 2, hosts[0].taken, errors=5, compiled=7, total=7, total_errors=5)
    assert hosts == [known]


@pytest.mark.parametrize(
    ("status", "note"),
    [
        ('{"NotConnected":["http://10.0.0.1/","enqueuing"]}', "sccache-dist: enqueuing"),
        ("", "sccache-dist: this machine's server does not answer"),
    ],
)
def test_while_no_scheduler_answers_nobody_is_elsewhere_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, note: str
) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    looks = (use for _, use in zip(range(10), build.looks(), strict=False))
    *_, (at, uses) = looks
    assert build.reader.look(uses, at).engine is not None
    build.answers.status = status
    look = build.reader.look(uses, at + 60)
    assert look.engine is not None
    assert (look.engine.slots, look.engine.note, dict(look.waits)) == (0, note, {})


def test_where_nobody_has_set_it_up_it_is_asked_once_and_is_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    build.answers.status = DISABLED
    build.run()
    assert build.answers.asked == 2, "for the scheduler, and for what was counted before"
    assert all(look == RemoteLook() for _, _, look in build.history)


async def test_what_was_compiled_last_is_asked_for_when_the_build_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    assert await build.reader.finish() is None, "nobody was asked before"
    build.run()
    build.answers.stats = stats(server=11)
    engine = await build.reader.finish()
    assert engine is not None
    assert engine.hosts[0].compiled == 8, "three were before this build"


def test_the_only_server_is_lost_once_nothing_but_failures_comes_of_it_and_back_with_its_next_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    build.answers.status = STATUS.replace('"in_progress":3', '"in_progress":0')
    at, uses = next(build.looks())
    build.reader.look(uses, at)
    seen = []
    for answer in (stats(server=5), stats(2, server=5), stats(3, server=5), stats(3, server=5), stats(3, server=6)):
        build.answers.stats = answer
        engine = build.reader.look(uses, at).engine
        assert engine is not None
        (host,) = engine.hosts
        seen.append((host.lost, host.why_unused, engine.slots > 0))
    why = "its last 3 compilations failed; sccache does them here until it answers"
    well, lost = (False, "", True), (True, why, False)
    assert seen == [well, well, lost, lost, well]


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (STATUS.replace('"num_servers":1', '"num_servers":0'), "the scheduler has no server"),
        ('{"NotConnected":["http://10.0.0.1/","enqueuing"]}', "enqueuing"),
    ],
)
async def test_a_lost_server_stays_in_the_list_with_what_it_compiled_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, why: str
) -> None:
    build = replay("sccache-nvcc", tmp_path, monkeypatch)
    build.answers.stats = stats(server=8)
    at, uses = next(Replay("sccache-nvcc", tmp_path / "again", monkeypatch).looks())
    build.reader.look(uses, at)
    build.answers.status = status
    look = build.reader.look(uses, at)
    for engine in (look.engine, await build.reader.finish()):
        assert engine is not None
        assert [(h.name, h.compiled, h.lost, h.why_unused) for h in engine.hosts] == [("server", 5, True, why)]


def test_of_several_servers_the_scheduler_no_longer_has_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    build.answers.status = STATUS.replace('"num_servers":1', '"num_servers":3')
    at, uses = next(build.looks())
    build.reader.look(uses, at)
    build.answers.status = STATUS.replace('"num_servers":1', '"num_servers":2')
    engine = build.reader.look(uses, at).engine
    assert engine is not None
    assert "2 servers of 3, 1 lost" in engine.note


def test_one_that_was_held_at_its_birth_is_not_elsewhere_the_moment_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    at, uses = next((at, uses) for at, uses in build.looks() if any(use.launchers for use in uses))
    goes_on = [replace(use, state="running", hosted=(), works_here=False) for use in uses]
    clients = [key for use in uses for key in use.launchers]
    build.reader.look([replace(use, state="frozen") for use in goes_on], at + 30)
    assert build.reader.glance(clients, at + 30.05) == {}, "its preprocessing has not begun"
    assert build.reader.look(goes_on, at + 31).waits == {}
    assert build.reader.look(goes_on, at + 32).waits.keys() == set(clients)


def test_while_the_only_server_is_lost_nobody_is_taken_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = replay("sccache-nvcc", tmp_path, monkeypatch)
    build.answers.status = STATUS.replace('"in_progress":3', '"in_progress":0')
    at, uses = next(Replay("sccache-nvcc", tmp_path / "again", monkeypatch).looks())
    waiting = [replace(use, hosted=(), works_here=False) for use in uses]
    found = []
    for errors in range(4):
        build.answers.stats = stats(errors, server=5)
        found.append(bool(build.reader.look(waiting, at + 60 + errors).waits))
    assert found == [True, True, False, False], "two answers with nothing but failures"


def waiting_with(jobs_there: int) -> str:
    return STATUS.replace('"in_progress":3', f'"in_progress":{jobs_there}')


def test_clients_are_nowhere_until_the_scheduler_has_had_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler is packed and sent first, which takes many seconds."""
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    build.answers.status, build.answers.stats = waiting_with(0), stats()
    found = set()
    for at, uses in build.looks():
        look = build.reader.look(uses, at)
        found |= set(look.waits.values())
        if look.waits:
            assert look.engine is not None
            assert look.engine.hosts[0].taken == 0
    assert found == {NO_HOST_YET}
    build.answers.status = waiting_with(2)
    waiting = [replace(use, hosted=(), works_here=False) for use in uses]
    assert set(build.reader.look(waiting, at + 60).waits.values()) <= {"sccache-dist", NO_HOST}


def test_no_more_clients_are_elsewhere_than_the_scheduler_has_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others were refused, and wait until this machine's own server compiles them."""
    build = Replay("sccache-fallback", tmp_path / "proc", monkeypatch)
    at, uses = max(build.looks(), key=lambda look: sum(bool(use.launchers) for use in look[1]))
    waiting = [replace(use, hosted=(), works_here=False) for use in uses if use.launchers]
    found = []
    for later, jobs_there in ((10, 3), (20, 3), (30, 1), (40, 1)):
        build.answers.status = waiting_with(jobs_there)
        look = build.reader.look(waiting, at + later)
        found.append((sum(host != NO_HOST for host in look.waits.values()), set(look.waits)))
    assert len(waiting) == 6
    assert [there for there, _ in found] == [3, 3, 1, 1]
    assert all(len(clients) == 6 for _, clients in found)


def test_a_reader_that_takes_over_counts_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    build.reader.adopt(RemoteEngine("sccache", (RemoteHost("server", 2, errors=4, compiled=9),)), 0.0)
    at, uses = next(build.looks())
    counted = []
    for answer in (stats(4, server=12), stats(5, server=14)):
        build.answers.stats = answer
        engine = build.reader.look(uses, at).engine
        assert engine is not None
        counted.append([(host.name, host.compiled, host.errors) for host in engine.hosts])
    assert counted == [[("server", 9, 4)], [("server", 11, 5)]]


@pytest.mark.parametrize(
    ("first", "then", "compiled"),
    [
        (stats(6, server=15), stats(7, server=17), [(12, 5), (14, 6)]),
        (stats(0, server=2), stats(1, server=4), [(11, 4), (13, 5)]),
    ],
    ids=["three while no engine ran", "the server was restarted"],
)
def test_what_was_compiled_between_two_readers_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, then: str, compiled: list[tuple[int, int]]
) -> None:
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    known = RemoteHost("server", 2, errors=4, compiled=9, total=12, total_errors=5)
    build.reader.adopt(RemoteEngine("sccache", (known,)), 0.0)
    at, uses = next(build.looks())
    counted = []
    for answer in (first, then):
        build.answers.stats = answer
        engine = build.reader.look(uses, at).engine
        assert engine is not None
        counted.append((engine.hosts[0].compiled, engine.hosts[0].errors))
    assert counted == compiled


def test_a_server_that_refuses_more_than_it_has_places_for_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so again and again, and what it compiles meanwhile may take minutes."""
    monkeypatch.setattr(sccache_dist, "ReachQuestion", lambda every: ReachQuestion(0.0))
    build = Replay("sccache-nvcc", tmp_path / "proc", monkeypatch)
    at, uses = next(build.looks())
    build.reader.look(uses, at)
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = f"127.0.0.1:{server.getsockname()[1]}"
        for errors in range(6):
            build.answers.stats = stats(errors, server=3, **{name: 2})
            assert not is_lost(build.reader, uses, at), errors
    build.answers.stats = stats(7, server=3, **{name: 2})
    assert [is_lost(build.reader, uses, at) for _ in range(4)][-1], "nobody listens there any more"
    build.reader.close()


def is_lost(reader: SccacheDistReader, uses: Sequence[JobUse], at: float) -> bool:
    engine = reader.look(uses, at).engine
    assert engine is not None
    return engine.hosts[0].lost
