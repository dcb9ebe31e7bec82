"""The messages between engine and viewers, and their validation. docs/protocol.md describes them.

Unaware of sockets and of what commands do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from stoker.model.codec import CodecError, decode, decode_record, encode
from stoker.model.events import Record
from stoker.model.state import BuildState

PROTOCOL_VERSION = 2
"""Increased only when an older side would misread a newer one."""

_EVENT_HEAD = b'{"type":"event","record":'


class ProtocolError(Exception):
    """A message that violates the protocol; the message is one line for the user."""


class NotLetInError(ProtocolError):
    """The engine is there and answers, but accepts no more viewers."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """The first message of a viewer. `resume` is the last record that it knows, if any."""

    protocol: int
    resume: int | None
    read_only: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `n` comes back in the reply."""

    n: int
    verb: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServerHello:
    """The first message of an engine. Without a snapshot the records after `resume` follow."""

    protocol: int
    id: str
    version: str
    seq: int
    snapshot: BuildState | None


@dataclass(frozen=True, slots=True)
class EventMessage:
    """A record, as the journal has it."""

    record: Record


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a command; `error` says in one line why it was refused, `value` is the result of a query."""

    n: int
    ok: bool
    error: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Bye:
    """The engine closes this connection."""

    reason: str


def event_frame(line: bytes) -> bytes:
    """Return the frame around a journal line, without encoding it again."""
    return _EVENT_HEAD + line[:-1] + b"}\n"


def to_json(message: ClientHello | Command | ServerHello | Reply | Bye) -> dict[str, Any]:
    """Return the JSON object of a message, every field written out."""
    match message:
        case ClientHello(protocol, resume, read_only):
            return {"type": "hello", "protocol": protocol, "resume": resume, "read_only": read_only}
        case Command(n, verb, args):
            return {"type": "command", "n": n, "verb": verb, "args": dict(args)}
        case ServerHello(protocol, build_id, version, seq, snapshot):
            state = None if snapshot is None else encode(snapshot)
            head = {"type": "hello", "protocol": protocol, "id": build_id, "version": version}
            return {**head, "seq": seq, "snapshot": state}
        case Reply(n, ok, error, value):
            head = {"type": "reply", "n": n, "ok": ok, "error": error}
            return head if value is None else {**head, "value": encode(value)}
        case Bye(reason):
            return {"type": "bye", "reason": reason}


def parse_hello(data: Mapping[str, Any]) -> ClientHello:
    """Return a viewer's first message; raises ProtocolError."""
    protocol, resume, read_only = data.get("protocol"), data.get("resume"), data.get("read_only", False)
    if data.get("type") != "hello" or not _is_int(protocol):
        raise ProtocolError("the first message is a hello")
    if protocol != PROTOCOL_VERSION:
        raise ProtocolError(f"this engine speaks protocol {PROTOCOL_VERSION}, not {protocol}; use its own stoker")
    if not (resume is None or _is_int(resume)) or not isinstance(read_only, bool):
        raise ProtocolError("a hello has resume (a number or null) and read_only (true or false)")
    return ClientHello(protocol, resume, read_only)


def parse_command(data: Mapping[str, Any]) -> Command:
    """Return a viewer's later message; raises ProtocolError."""
    n, verb, args = data.get("n"), data.get("verb"), data.get("args", {})
    if data.get("type") != "command" or not _is_int(n) or not isinstance(verb, str) or not isinstance(args, dict):
        raise ProtocolError("a command has n, verb and args")
    return Command(n, verb, args)


def parse_server_hello(data: Mapping[str, Any]) -> ServerHello:
    """Return an engine's first message; raises ProtocolError, and NotLetInError if it said bye instead."""
    if data.get("type") == "bye":
        raise NotLetInError(str(data.get("reason", "the engine closed the connection")))
    protocol, seq, snapshot = data.get("protocol"), data.get("seq"), data.get("snapshot")
    if data.get("type") != "hello" or not _is_int(protocol) or not _is_int(seq):
        raise ProtocolError("what answers is not an engine")
    if protocol != PROTOCOL_VERSION:
        raise ProtocolError(f"the engine speaks protocol {protocol}, not {PROTOCOL_VERSION}; use its own stoker")
    try:
        state = None if snapshot is None else decode(BuildState, snapshot, "snapshot")
    except CodecError as err:
        raise ProtocolError(f"the engine's state cannot be read: {err}") from err
    return ServerHello(protocol, str(data.get("id", "")), str(data.get("version", "")), seq, state)


def parse_server_message(data: Mapping[str, Any]) -> EventMessage | Reply | Bye | None:
    """Return an engine's later message; None for one that a newer engine may send. Raises ProtocolError."""
    kind = data.get("type")
    if kind == "event":
        try:
            return EventMessage(decode_record(data.get("record")))
        except CodecError:
            # An event of a newer engine, most likely; the journal's reader skips it too.
            return None
    if kind == "reply":
        n, ok = data.get("n"), data.get("ok")
        if not _is_int(n) or not isinstance(ok, bool):
            raise ProtocolError("a reply has n and ok")
        return Reply(n, ok, str(data.get("error", "")), data.get("value"))
    return Bye(str(data.get("reason", ""))) if kind == "bye" else None


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
