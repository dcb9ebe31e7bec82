"""Whether somebody listens, by real sockets on loopback."""

from __future__ import annotations

import socket
import time

import pytest

from stoker.sense.remote import reach_question
from stoker.sense.remote.reach_question import ReachQuestion


def answer(question: ReachQuestion, address: str) -> bool:
    """The next answer; a question takes two looks at least."""
    while (found := question.look(address)) is None:
        time.sleep(0.01)
    return found


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_it_is_seen_when_a_listener_goes_and_comes_back(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"no {host} here")
        listener.listen()
        port = listener.getsockname()[1]
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        question = ReachQuestion(0.0)
        assert answer(question, address)
    assert not answer(question, address)
    with socket.create_server((host, port), family=family):
        assert answer(question, address)
    question.close()


@pytest.mark.parametrize("address", ["", "server", "build1:10501", "127.0.0.1:", "127.0.0.1:port", "127.0.0.1:99999"])
def test_what_is_no_address_is_not_asked_for(address: str) -> None:
    question = ReachQuestion(0.0)
    assert [question.look(address) for _ in range(3)] == [None, None, None]


def test_one_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener whose queue is full lets others wait."""
    monkeypatch.setattr(reach_question, "LATE_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) for _ in range(8)]
        for one in waiting:
            one.connect_ex(address)
        assert not answer(ReachQuestion(0.0), f"{address[0]}:{address[1]}")
        for one in waiting:
            one.close()
