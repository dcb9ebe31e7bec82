"""What is read of distcc's clients, by files as distcc 3.4 wrote them and by such as it never would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.contract.process import Key, key_of
from stoker.model.remote import NO_HOST, RemoteEngine, RemoteHost
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.remote.distcc import COMPILE, STATE, ClientState, DistccReader, client_state, parse_hosts, parse_state
from stoker.sense.remote.exchange import in_exchange

Until = Callable[[Callable[[], object]], None]

CPP, SEND, DONE = 3, 4, 7
RECORDED = (
    "2801000000000000" + "0048494400000000" + "8161000000000000" + b"f3.cpp".hex() + "00" * 122 + b"127.0.0.1".hex()
    + "00" * 119 + "01000000" + "05000000" + "00" * 8
)  # fmt: skip
"""A client that waits for 127.0.0.1, slot 1, as it lay in state/binstate_24961."""


def state(pid: int, phase: int = COMPILE, host: bytes = b"far", size: int = 296, magic: int = 0x44494800) -> bytes:
    return STATE.pack(size, magic, pid, b"f.cpp", host, 0, phase)


def test_a_recorded_file_says_what_the_client_did() -> None:
    assert parse_state(bytes.fromhex(RECORDED), 24961) == ClientState(COMPILE, "127.0.0.1")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        state(1)[:-1],
        state(1) + b"\0",
        state(2),
        state(1, magic=0x44494801),
        state(1, size=295),
        bytes(296),
        b"\xff" * 296,
    ],
)
def test_what_is_of_another_form_says_nothing(data: bytes) -> None:
    assert parse_state(data, 1) is None


def test_a_hosts_name_is_harmless() -> None:
    found = parse_state(state(1, host=b"\x1b]0;mine\x07" + b"x" * 100), 1)
    assert found is not None
    assert "\x1b" not in found.host
    assert "\x07" not in found.host


class Client:
    """A process that waits, and the file that it would have written."""

    def __init__(self, folder: Path, hosts: str = "far/8 near:3633/2,lzo localhost/4", *, talks: bool = False) -> None:
        env = {**os.environ, "DISTCC_DIR": str(folder), "DISTCC_HOSTS": hosts}
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import socket; s = {talks} and socket.socket(); input()"],
            stdin=subprocess.PIPE,
            env=env,
        )
        self.key: Key = key_of(self.process.pid)
        self.file = folder / "state" / f"binstate_{self.process.pid}"
        self.file.parent.mkdir(exist_ok=True)
        until_exec(self.process.pid)

    def use(self, scheduler: Key = (1, 1)) -> JobUse:
        job = JobProcess(*self.key, scheduler, time.time(), ("distcc", "g++"), "f.o", "cxx", "distcc")
        return JobUse(job, 0, 0, 0.0, 0.0, "distcc", "running", sends="distcc", launchers=(self.key,), works_here=False)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def until_exec(pid: int) -> None:
    while b"input()" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.01)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    client = Client(tmp_path)
    yield client
    client.end()


def test_a_client_waits_for_a_host_while_that_compiles(client: Client) -> None:
    reader = DistccReader()
    cases: list[tuple[bytes, dict[Key, str]]] = [
        (state(client.key[0], CPP, b"localhost"), {}),
        (state(client.key[0], SEND), {}),  # the preprocessor that it waits for next works here
        (state(client.key[0]), {client.key: "far"}),
        (state(client.key[0], DONE), {}),
        (b"", {}),
    ]
    for data, waits in cases:
        client.file.write_bytes(data)
        assert reader.look([client.use()], time.time()).waits == waits
        assert reader.glance([client.key], time.time()) == waits
    reader.close()


def test_one_that_compiles_here_by_its_hosts_file_is_known(client: Client) -> None:
    reader = DistccReader()
    client.file.write_bytes(state(client.key[0], COMPILE, b"localhost"))
    look = reader.look([client.use()], time.time())
    assert not look.waits
    assert look.here == {client.key}
    reader.close()


def _linked(client: Client) -> None:
    other = client.file.with_name("other")
    other.write_bytes(state(client.key[0]))
    client.file.symlink_to(other)


def _stale(client: Client) -> None:
    client.file.write_bytes(state(client.key[0]))
    os.utime(client.file, (1, 1))


def _endless(client: Client) -> None:
    client.file.write_bytes(state(client.key[0]) * 1000)


HOSTILE: list[Callable[[Client], None]] = [
    _linked,
    _stale,
    lambda c: os.mkfifo(c.file),
    lambda c: c.file.mkdir(),
    _endless,
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=["link", "of a client before", "fifo", "folder", "endless"])
def test_what_is_no_clients_file_is_not_believed(client: Client, hostile: Callable[[Client], None]) -> None:
    hostile(client)
    assert client_state(str(client.file.parent.parent), client.key, time.time()) is None


def test_a_file_of_another_user_is_not_believed(client: Client) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    client.file.write_bytes(state(client.key[0]))
    os.chown(client.file, 1234, 1234)
    assert client_state(str(client.file.parent.parent), client.key, time.time()) is None


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("127.0.0.1:3633/8\n", [("127.0.0.1", 8)]),
        ("far\nnear/2,lzo,cpp\nme@ssh-host/3:~/bin/distccd\nlocalhost/4\n", [("far", 4), ("near", 2), ("ssh-host", 3)]),
        ("[::1]:3632/5\n", [("::1", 5)]),
        ("far:1/2\nfar:2/3\n", [("far", 5)]),
        ("--randomize\n\nwhat is this\n\x1b[31mfar/3\n", []),
        (f"far/{'9' * 5000}\n", [("far", 4096)]),
    ],
)
def test_hosts_and_their_slots(text: str, hosts: list[tuple[str, int]]) -> None:
    assert parse_hosts(text) == tuple(RemoteHost(name, slots) for name, slots in hosts)


@pytest.mark.parametrize(
    "hosts",
    [
        "far/8 near:3633/2,lzo localhost/4",
        "@far me@near/16 @other/5,lzo",
        "me@far/8:/usr/bin/distccd @near:distccd/3 me@other/2:~/bin/distccd,lzo",
        "[::1]:3632/5 [fe80::1%eth0]/3",
        "--localslots=3 --localslots_cpp=9 --randomize far/4 near",
        "far/4,lzo,cpp near/2,cpp,lzo",
        "far/3 # a remark",
    ],
)
def test_as_many_slots_are_counted_as_distcc_counts(hosts: str, tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("distcc")
    env = {**os.environ, "DISTCC_DIR": str(tmp_path), "DISTCC_HOSTS": hosts}
    shown, number = (subprocess.check_output(["distcc", word], env=env, text=True) for word in ("--show-hosts", "-j"))
    here = 4 if "localhost/4" in hosts else 0
    assert sum(host.slots for host in parse_hosts(shown)) + here == int(number)


@pytest.mark.parametrize(
    ("hosts", "says"),
    [("+zeroconf", "zeroconf has found none"), ("far/0", "distcc --show-hosts"), ("localhost", "no other machine")],
)
def test_why_no_host_is_known(tmp_path: Path, hosts: str, says: str, needs: Callable[..., None], until: Until) -> None:
    needs("distcc")
    client = Client(tmp_path, hosts)
    reader = DistccReader()
    try:
        until(lambda: reader.look([client.use()], time.time()).engine)
        engine = reader.look([client.use()], time.time()).engine
        assert engine is not None
        assert says in engine.note
    finally:
        reader.close()
        client.end()


def test_no_more_hosts_than_one_can_show() -> None:
    assert len(parse_hosts("\n".join(f"h{n}/1" for n in range(5000)))) == 1000


def test_the_program_itself_says_which_hosts_there_are(
    client: Client, needs: Callable[..., None], until: Callable[[Callable[[], object]], None]
) -> None:
    needs("distcc")
    reader = DistccReader()
    until(lambda: reader.look([client.use()], time.time()).engine)
    engine = reader.look([client.use()], time.time()).engine
    assert engine is not None
    assert [(h.name, h.slots) for h in engine.hosts] == [("far", 8), ("near", 2)]
    assert engine.slots == 10
    reader.close()


def test_a_host_that_failed_is_not_counted_and_says_why(
    client: Client, needs: Callable[..., None], until: Callable[[Callable[[], object]], None]
) -> None:
    needs("distcc")
    reader = DistccReader()
    until(lambda: reader.look([client.use()], time.time()).engine)
    locks = client.file.parents[1] / "lock"
    locks.mkdir(exist_ok=True)
    (locks / "backoff_tcp_far_3632_0").write_bytes(b"\0")
    later = time.time() + 1
    os.utime(locks / "backoff_tcp_far_3632_0", (later, later))
    engine = reader.look([client.use()], later + 5).engine
    assert engine is not None
    far, near = engine.hosts
    assert (far.errors, far.why_unused) == (1, "it failed; distcc leaves it alone for 60 s")
    assert (near.errors, near.why_unused, engine.slots) == (0, "", 2)
    again = reader.look([client.use()], later + 61).engine
    assert again is not None
    assert [h.why_unused for h in again.hosts] == ["", ""]
    reader.close()


def test_a_reader_that_takes_over_counts_on(
    client: Client, needs: Callable[..., None], until: Callable[[Callable[[], object]], None]
) -> None:
    """It counts what has failed while no engine was at work, and nothing twice."""
    needs("distcc")
    locks = client.file.parents[1] / "lock"
    locks.mkdir(exist_ok=True)
    for name, ago in (("far_3632", 60), ("near_3633", 5)):
        failure = locks / f"backoff_tcp_{name}_0"
        failure.write_bytes(b"\0")
        os.utime(failure, (time.time() - ago, time.time() - ago))
    reader = DistccReader()
    reader.adopt(RemoteEngine("distcc", (RemoteHost("far", 8, errors=4),)), time.time() - 30)
    until(lambda: reader.look([client.use()], time.time()).engine)
    engine = reader.look([client.use()], time.time()).engine
    assert engine is not None
    assert [(host.name, host.errors) for host in engine.hosts] == [("far", 4), ("near", 1)]
    reader.close()


def test_a_client_that_has_lost_its_host_waits_for_none(
    client: Client, needs: Callable[..., None], until: Callable[[Callable[[], object]], None]
) -> None:
    """It writes nothing of that itself: its file goes on to name the host."""
    needs("distcc")
    reader = DistccReader()
    client.file.write_bytes(state(client.key[0]))
    until(lambda: reader.look([client.use()], time.time()).engine)
    assert reader.look([client.use()], time.time()).waits == {client.key: "far"}
    failure = client.file.parents[1] / "lock" / "backoff_tcp_far_3632_0"
    failure.parent.mkdir(exist_ok=True)
    failure.write_bytes(b"\0")
    assert reader.look([client.use()], time.time()).waits == {client.key: NO_HOST}
    assert reader.glance([client.key], time.time()) == {client.key: NO_HOST}
    reader.close()


def test_one_that_goes_on_with_a_host_that_failed_others_is_still_there(
    tmp_path: Path, needs: Callable[..., None], until: Callable[[Callable[[], object]], None]
) -> None:
    needs("distcc")
    client = Client(tmp_path, talks=True)
    until(lambda: in_exchange(client.key[0]))
    reader = DistccReader()
    client.file.write_bytes(state(client.key[0]))
    until(lambda: reader.look([client.use()], time.time()).engine)
    failure = tmp_path / "lock" / "backoff_tcp_far_3632_0"
    failure.parent.mkdir(exist_ok=True)
    failure.write_bytes(b"\0")
    assert reader.look([client.use()], time.time()).waits == {client.key: "far"}
    reader.close()
    client.end()
