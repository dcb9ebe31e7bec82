"""Messages of either side are validated field by field; anything may arrive."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model import events as ev
from stoker.model.codec import encode, encode_record
from stoker.model.state import BuildState
from stoker.record.jsonlines import dump_line, parse_line
from stoker.serve.protocol import (
    Bye,
    ClientHello,
    Command,
    EventMessage,
    ProtocolError,
    Reply,
    ServerHello,
    event_frame,
    parse_command,
    parse_hello,
    parse_server_hello,
    parse_server_message,
    to_json,
)

RECORD = ev.Record(7, 1.0, ev.Noticed("info", "x"))


def test_every_message_comes_back_as_it_was_sent() -> None:
    hello = ClientHello(2, 12, read_only=True)
    assert parse_hello(to_json(hello)) == hello
    command = Command(3, "stop", {"force": True})
    assert parse_command(to_json(command)) == command
    welcome = ServerHello(2, "b-1", "0.1.0", 9, BuildState(id="b-1", seq=9))
    assert parse_server_hello(to_json(welcome)) == welcome
    for message in (Reply(3, ok=False, error="no"), Bye("over")):
        assert parse_server_message(to_json(message)) == message
    frame = event_frame(dump_line(encode_record(RECORD)))
    assert parse_server_message(parse_line(frame)) == EventMessage(RECORD)


@pytest.mark.parametrize(
    "change",
    [{"type": "command"}, {"protocol": "1"}, {"protocol": True}, {"resume": "x"}, {"resume": 1.5}, {"read_only": 1}],
)
def test_a_hello_that_is_none_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        parse_hello({**to_json(ClientHello(2, None, read_only=False)), **change})


def test_another_protocol_is_named() -> None:
    with pytest.raises(ProtocolError, match="speaks protocol 2, not 3"):
        parse_hello({"type": "hello", "protocol": 3})
    with pytest.raises(ProtocolError, match="speaks protocol 3, not 2"):
        parse_server_hello({"type": "hello", "protocol": 3, "seq": 1})


def test_a_newer_engines_messages_and_events_are_passed_over() -> None:
    assert parse_server_message({"type": "weather"}) is None
    record = {**encode_record(RECORD), "type": "teleported"}
    assert parse_server_message({"type": "event", "record": record}) is None


def test_a_bye_in_place_of_a_hello_gives_the_engines_reason() -> None:
    with pytest.raises(ProtocolError, match=r"^full$"):
        parse_server_hello({"type": "bye", "reason": "full"})


def test_a_snapshot_of_the_wrong_shape_is_refused() -> None:
    state = {**encode(BuildState()), "jobs": [1]}
    with pytest.raises(ProtocolError, match="state cannot be read"):
        parse_server_hello({"type": "hello", "protocol": 2, "seq": 1, "snapshot": state})


KEYS = ["type", "protocol", "resume", "read_only", "n", "verb", "args", "seq", "snapshot", "record", "ok", "error"]
VALUES: st.SearchStrategy[Any] = (
    st.sampled_from(["hello", "command", "event", "reply", "bye"])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.just({})
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_any_object_is_a_message_or_refused(data: dict[str, Any]) -> None:
    for parse in (parse_hello, parse_command, parse_server_hello, parse_server_message):
        with contextlib.suppress(ProtocolError):
            parse(data)
