"""What processes hand to each other is read strictly: it comes back as it was written, or with one line on why not."""

from __future__ import annotations

import json
import os
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.contract import strict_json
from stoker.contract.gate_file import Gate, gate_line, read_gate, write_gate
from stoker.contract.retry_files import FailedAttempt, Verdict
from stoker.contract.spec_file import BuildSpec, StepSpec, load_spec
from stoker.contract.strict_json import ContractError, dump, load, load_or_none, parse
from stoker.contract.supervisor_files import ExitRecord, Run, SupervisorRecord

KINDS = (BuildSpec, SupervisorRecord, ExitRecord, FailedAttempt, Verdict, Gate)
STEP = StepSpec("heavy", ("ninja", "-j9"), "/src", ("ninja",), {"CC": "clang"}, level=2)
SPEC = BuildSpec("torch", "/src", ("ninja",), steps=(STEP,), engine=("python", "-m", "x"), since=1.5, memory=2**40)

NAMES = sorted({name for kind in KINDS for name in kind._fields})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "value",
    [
        SPEC,
        SupervisorRecord(7, 70, 8, 80, 1.0, ((5, 50), (6, 60)), (Run(1, 1, 8, 1.0, 0, 137),), 1, 2, 9, 2.0, 40),
        ExitRecord(137, 5.0, signal=9, step=2, stopped=True),
        FailedAttempt(1, None, 2),
        Verdict(2, again=True),
        Gate(3, ((1, 2),), ((3, 4),), (), ((3, 4, 5, 6),)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_written_comes_back(value: Any) -> None:
    assert parse(type(value), dump(value), "it") == value


def test_file_names_that_are_no_text_come_back() -> None:
    odd = b"/\xff\xfe".decode("utf-8", "surrogateescape")
    assert parse(BuildSpec, dump(SPEC._replace(cwd=odd)), "it").cwd == odd


def test_what_a_newer_stoker_adds_is_passed_over_and_what_an_older_one_lacks_has_its_default() -> None:
    older = {"name": "x", "cwd": "/", "command": ["x"], "of the future": [1]}
    assert parse(BuildSpec, json.dumps(older).encode(), "it") == BuildSpec("x", "/", ("x",))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": 5}, "spec.json: name is not text"),
        ({"first": True}, "spec.json: first is not a whole number"),
        ({"memory": 2**63}, "spec.json: memory is not a whole number"),
        ({"since": "5"}, "spec.json: since is not a number"),
        ({"since": 1e300}, "spec.json: since is not a number"),
        ({"command": "ninja"}, "spec.json: command is not a list"),
        ({"steps": [{**STEP._asdict(), "cwd": None}]}, "spec.json: steps[0]: cwd is not text"),
        ({"steps": [{"name": "x"}]}, "spec.json: steps[0] lacks command"),
        ({"ramdisk": []}, "spec.json: ramdisk is not an object"),
        ({"first": 2}, "spec.json: first is the number of no step"),
        ({"first": 0}, "spec.json: first is the number of no step"),
        ({"engine": []}, "spec.json: a command is empty"),
    ],
)
def test_a_fault_is_named_in_one_line(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({**json.loads(dump(SPEC)), **change}))
    with pytest.raises(ContractError) as caught:
        load_spec(tmp_path)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"name": ' + b"1" * 5000 + b"}"]
)
def test_what_is_no_object_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(ContractError, match=r"^it is not (JSON|an object)$"):
        parse(BuildSpec, data, "it")


@given(kind=st.sampled_from(KINDS), value=VALUES)
def test_whatever_is_in_a_file_it_is_a_contract_or_a_complaint(kind: type[Any], value: object) -> None:
    try:
        read = parse(kind, json.dumps(value).encode(), "it")
    except ContractError:
        return
    assert parse(kind, dump(read), "it") == read


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_waited_for_by_nobody(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "exit.json")
    with pytest.raises(OSError):  # noqa: PT011  (a link and a folder have errors of their own)
        load(ExitRecord, tmp_path / "exit.json")
    assert load_or_none(ExitRecord, tmp_path / "exit.json") is None


def test_a_file_without_a_bound_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exit.json").write_bytes(dump(ExitRecord(0, 5.0)))
    monkeypatch.setattr(strict_json, "MAX_BYTES", 10)
    with pytest.raises(OSError, match="too large"):
        load(ExitRecord, tmp_path / "exit.json")


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"crc32": "00000000", "level": 1}', b"\0" * 100])
def test_a_damaged_gate_says_nothing(tmp_path: Path, damage: bytes) -> None:
    write_gate(tmp_path, gate_line(Gate(1, (), (), ())))
    assert read_gate(tmp_path) == Gate(1, (), (), ())
    (tmp_path / "gate.json").write_bytes(damage)
    assert read_gate(tmp_path) is None
