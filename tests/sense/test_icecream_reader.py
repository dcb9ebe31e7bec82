"""Which jobs icecream has compiled elsewhere: a scheduler on a real connection, and clients in a process table by hand;
tests/e2e/test_icecream.py has the real ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.model.remote import NO_HOST, NO_HOST_YET, RemoteHost
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.remote import icecream
from stoker.sense.remote.icecream import IcecreamReader
from stoker.sense.remote.icecream_scheduler import SchedulerAddress
from stoker.sense.remote.remote_reader import RemoteLook

HOSTS = """\
 far (10.77.0.2:10245) [x86_64] speed=63.75 jobs=2/3 load=111
   11 COMP sub:near on:far w/src/f1.cpp
   12 COMP sub:other on:far w/src/f1.cpp
 near (127.0.0.1:10245) [x86_64] speed=0.00 jobs=1/1 load=1000
   13 COMP sub:near on:near w/src/f2.cpp
"""


class Scheduler:
    """A text port with an answer of the test's own."""

    def __init__(self) -> None:
        self.answer = HOSTS
        self.place = SchedulerAddress("127.0.0.1", 0)
        self.asked = 0
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def run(self, port: int = 0) -> AsyncIterator[Scheduler]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.place = SchedulerAddress("127.0.0.1", int(server.sockets[0].getsockname()[1]) - 1)
        async with server:
            yield self
            for writer in self._writers:
                writer.close()
            await asyncio.gather(*(w.wait_closed() for w in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        writer.write(b"200-ICECC 1.4\n200 Use 'help'\n")
        while await reader.readline() == b"listcs\n":
            self.asked += 1
            writer.write(self.answer.encode() + b"200 done\n")
        writer.close()


class Clients:
    """Jobs, each a shell with a client below it, as /proc would show them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uses: list[JobUse] = []

    def add(self, pid: int, file: str, folder: str = "/w") -> tuple[int, int]:
        place = self.root / str(pid)
        (place / "task" / str(pid)).mkdir(parents=True)
        (place / "cmdline").write_bytes(f"icecc\0g++\0-O2\0-c\0{file}\0-o\0{file}.o\0".encode())
        (place / "cwd").symlink_to(folder)
        self.set_children(pid, "")
        job = JobProcess(pid - 1, 1, (1, 1), 0.0, ("sh", "-c", "icecc g++"), f"{file}.o", "cxx", "icecream")
        key = (pid, 1)
        self.uses.append(
            JobUse(job, 0, 0, 0.0, 0.0, "icecc", "running", sends="icecream", launchers=(key,), works_here=False)
        )
        return key

    def set_children(self, pid: int, children: str) -> None:
        (self.root / str(pid) / "task" / str(pid) / "children").write_text(children)


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    monkeypatch.setattr(icecream, "WAITING_SECONDS", 3600.0)
    return Clients(tmp_path)


async def settled(reader: IcecreamReader, clients: Clients, condition: Callable[[RemoteLook], object]) -> RemoteLook:
    """Look until the look is as it should be."""
    for _ in range(500):
        look = reader.look(clients.uses, time.time())
        if condition(look):
            return look
        await asyncio.sleep(0.01)
    raise AssertionError(look)


async def with_reader(
    clients: Clients, use: Callable[[IcecreamReader, Scheduler], Awaitable[None]], scheduler: Scheduler
) -> None:
    reader = IcecreamReader(clients.root, lambda env: scheduler.place)
    try:
        await use(reader, scheduler)
    finally:
        reader.close()
        await asyncio.sleep(0.01)


async def test_a_client_waits_for_the_host_that_the_scheduler_names_and_here_is_not_elsewhere(clients: Clients) -> None:
    one, two = clients.add(21, "src/f1.cpp"), clients.add(31, "/w/src/f2.cpp")
    clients.add(41, "src/unlisted.cpp")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        assert reader.look(clients.uses, time.time()) == RemoteLook(None), "nothing is known before it answers"
        look = await settled(reader, clients, lambda look: look.engine)
        assert look.waits == {one: "far"}
        assert look.here == {two}
        assert look.engine is not None
        assert look.engine.hosts == (RemoteHost("far", 3, taken=1),), "the other job is another machine's"
        assert look.engine.slots == 2
        assert reader.glance((one, two), time.time()) == {one: "far"}
        clients.set_children(21, "99 ")
        assert reader.glance((one,), time.time()) == {}, "it preprocesses, or compiles here after all"

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def test_hosts_that_come_and_go_change_the_slots(clients: Clients) -> None:
    clients.add(21, "src/f1.cpp")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        await settled(reader, clients, lambda look: look.engine and look.engine.slots == 2)
        scheduler.answer = HOSTS + " new (10.77.0.3:10245) [x86_64] speed=0.00 jobs=0/8 load=5\n"
        await settled(reader, clients, lambda look: look.engine and look.engine.slots == 10)
        scheduler.answer = scheduler.answer.replace("load=111", "load=1000")
        look = await settled(reader, clients, lambda look: look.engine and look.engine.slots == 8)
        assert look.engine is not None
        assert look.engine.hosts[0].why_unused == "too busy with its own work"
        scheduler.answer = ""
        look = await settled(reader, clients, lambda look: look.engine and not look.engine.slots)
        assert look.engine is not None
        assert look.engine.note == "icecream's scheduler knows no other machine"

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def test_a_scheduler_that_goes_away_leaves_no_slot_and_says_so_until_it_is_back(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icecream, "LOST_SECONDS", 0.05)
    one = clients.add(21, "src/f1.cpp")
    scheduler = Scheduler()
    reader = IcecreamReader(clients.root, lambda env: scheduler.place)
    async with scheduler.run():
        await settled(reader, clients, lambda look: look.waits == {one: "far"})
    look = await settled(reader, clients, lambda look: look.engine and look.engine.note)
    assert look.engine is not None
    assert look.engine.note == f"scheduler lost: icecream's scheduler at {scheduler.place} does not answer"
    assert {(h.lost, h.why_unused) for h in look.engine.hosts} == {(True, "the scheduler is lost")}
    assert (look.engine.slots, look.waits) == (0, {})
    async with scheduler.run(scheduler.place.port + 1):
        await settled(reader, clients, lambda look: look.waits == {one: "far"})
        reader.close()


async def test_where_no_scheduler_is_known_the_remedy_is(clients: Clients) -> None:
    clients.add(21, "src/f1.cpp")
    reader = IcecreamReader(clients.root, lambda env: None)
    look = reader.look(clients.uses, time.time())
    assert look.engine is not None
    assert "USE_SCHEDULER" in look.engine.note


async def test_the_environment_of_a_job_names_the_scheduler(clients: Clients) -> None:
    clients.add(21, "src/f1.cpp")
    (clients.root / "20").mkdir()
    (clients.root / "20" / "environ").write_bytes(b"HOME=/root\0USE_SCHEDULER=build1\0TOKEN=secret\0")
    asked: list[dict[str, str]] = []
    reader = IcecreamReader(clients.root, lambda env: asked.append(dict(env)))
    reader.look(clients.uses, time.time())
    assert asked == [{"USE_SCHEDULER": "build1"}]


async def test_a_client_that_preprocesses_is_local(clients: Clients) -> None:
    one = clients.add(21, "src/f1.cpp")
    clients.set_children(21, "99 ")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        scheduler.answer = HOSTS.replace("11 COMP", "11 WAIT")
        look = await settled(reader, clients, lambda look: look.engine)
        assert look.waits == {}
        assert look.engine is not None
        assert look.engine.hosts == (RemoteHost("far", 3, taken=1),), "but it has its place there"
        scheduler.answer = HOSTS
        await settled(reader, clients, lambda look: look.waits == {one: "far"})

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


@pytest.mark.parametrize("host", ["", "far", "near"])
async def test_a_client_that_waits_for_its_first_host_is_neither_here_nor_there(
    clients: Clients, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """No host is free, it sends the compiler there, or this machine's own place is taken."""
    monkeypatch.setattr(icecream, "WAITING_SECONDS", 0.0)
    one = clients.add(21, "src/f7.cpp")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        scheduler.answer = HOSTS + (f"   12 WAIT sub:near on:{host} w/src/f7.cpp\n" if host else "")
        await settled(reader, clients, lambda look: look.waits == {one: NO_HOST_YET})
        clients.set_children(21, "99 ")
        assert reader.look(clients.uses, time.time()).waits == {}, "it preprocesses, or compiles here"
        clients.set_children(21, "")
        clients.uses[0] = replace(clients.uses[0], state="frozen")
        assert reader.look(clients.uses, time.time()).waits == {}, "stopped at its birth, it has asked nobody"

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def test_two_clients_of_one_name_are_each_one_job_of_the_schedulers(clients: Clients) -> None:
    both = {clients.add(21, "src/f1.cpp", "/a/w"), clients.add(31, "src/f1.cpp", "/b/w")}

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        look = await settled(reader, clients, lambda look: look.engine)
        assert len(look.waits) == 1
        assert set(look.waits) < both

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def test_a_client_whose_host_is_gone_has_none_until_it_gets_another_or_compiles_here(clients: Clients) -> None:
    one = clients.add(21, "src/f1.cpp")
    gone = HOSTS[HOSTS.index(" near") :]

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        await settled(reader, clients, lambda look: look.waits == {one: "far"})
        scheduler.answer = gone
        await settled(reader, clients, lambda look: look.waits == {one: NO_HOST})
        scheduler.answer = HOSTS.replace("   11 COMP sub:near on:far w/src/f1.cpp\n", "")
        await settled(reader, clients, lambda look: look.engine and look.engine.slots)
        assert reader.look(clients.uses, time.time()).waits == {one: NO_HOST}, "that it is back does not help this job"
        clients.set_children(21, "99 ")
        assert reader.look(clients.uses, time.time()).waits == {}
        clients.set_children(21, "")
        scheduler.answer = HOSTS
        await settled(reader, clients, lambda look: look.waits == {one: "far"})

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def test_one_that_has_just_been_done_has_lost_no_host(clients: Clients) -> None:
    """The scheduler lists it no longer, and its client has still to end."""
    one = clients.add(21, "src/f1.cpp")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        await settled(reader, clients, lambda look: look.waits == {one: "far"})
        scheduler.answer = HOSTS.replace("   11 COMP sub:near on:far w/src/f1.cpp\n", "")
        await settled(reader, clients, lambda look: look.waits == {})

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


SHORT = ("/bin/sh", "-c", "icecc g++ -O2 -c ../src/short.cpp -o short.o")


async def test_what_is_done_between_two_looks_was_where_the_scheduler_had_it(clients: Clients) -> None:
    clients.add(21, "src/f1.cpp")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        await settled(reader, clients, lambda look: look.engine)
        short, here = "14 WAIT sub:near on:far w/src/short.cpp", "15 COMP sub:near on:near w/here.cpp"
        scheduler.answer = f"{HOSTS}   {short}\n   {here}\n"
        await told(reader, scheduler)
        scheduler.answer = HOSTS
        await told(reader, scheduler)
        assert reader.compiled_by(("icecc", "g++", "-c", "here.cpp"), "/w") == ""
        assert reader.compiled_by(("icecc", "g++", "-c", "never.cpp"), "/w") == ""
        assert reader.compiled_by(SHORT, "/w/build") == "far"
        assert reader.compiled_by(SHORT, "/w/build") == "", "once"

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def test_what_a_lost_host_had_been_given_was_not_done_there(clients: Clients) -> None:
    clients.add(21, "src/f1.cpp")

    async def use(reader: IcecreamReader, scheduler: Scheduler) -> None:
        await settled(reader, clients, lambda look: look.engine)
        scheduler.answer = HOSTS + "   14 WAIT sub:near on:far w/src/short.cpp\n"
        await told(reader, scheduler)
        scheduler.answer = HOSTS[HOSTS.index(" near") :]
        await told(reader, scheduler)
        assert reader.compiled_by(SHORT, "/w/build") == ""

    async with Scheduler().run() as scheduler:
        await with_reader(clients, use, scheduler)


async def told(reader: IcecreamReader, scheduler: Scheduler) -> None:
    """Wait, without a look, until the reader has asked twice again."""
    before = scheduler.asked
    for _ in range(500):
        if scheduler.asked >= before + 2:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not ask between looks")
