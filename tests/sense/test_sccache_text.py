"""What sccache says of the fleet behind it, read; the texts are sccache 0.16's own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.sense.remote.sccache_text import MAX_COUNT, DistStatus, read_done, read_fleet

CONNECTED = '{"SchedulerStatus":["http://127.0.0.1:10600/",{"num_servers":1,"num_cpus":2,"in_progress":3}]}'


def test_the_schedulers_places_and_what_is_under_way() -> None:
    assert read_fleet(CONNECTED) == DistStatus(1, 2, 3)


@pytest.mark.parametrize(
    ("text", "fleet"),
    [
        ('{"Disabled":"disabled"}', DistStatus(obstacle="disabled", meant=False)),
        ('{"NotConnected":["http://10.0.0.1/","enqueuing"]}', DistStatus(obstacle="enqueuing")),
        ('{"NotConnected":[null,null]}', DistStatus(obstacle="the scheduler does not answer")),
        (
            '{"SchedulerStatus":[null,{"num_servers":0,"num_cpus":0,"in_progress":0}]}',
            DistStatus(obstacle="the scheduler has no server"),
        ),
    ],
)
def test_why_nothing_is_compiled_elsewhere(text: str, fleet: DistStatus) -> None:
    assert read_fleet(text) == fleet


def test_a_password_in_the_schedulers_url_goes_nowhere() -> None:
    text = CONNECTED.replace("http://", "http://me:secret@")
    assert "secret" not in repr(read_fleet(text))


def test_which_server_has_compiled_how_much() -> None:
    stats = {"stats": {"dist_compiles": {"127.0.0.1:10501": 6, "10.0.0.2:10501": 1}, "dist_errors": 4}}
    done = read_done(json.dumps(stats))
    assert done is not None
    assert (dict(done.by_server), done.errors) == ({"127.0.0.1:10501": 6, "10.0.0.2:10501": 1}, 4)


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"stats":[]}', '{"stats":{"dist_compiles":3}}', "[" * 100000])
def test_what_is_no_such_answer_is_none(text: str) -> None:
    assert read_done(text) is None
    assert read_fleet(text) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(st.sampled_from(["SchedulerStatus", "NotConnected", "Disabled"]), values, st.lists(values, max_size=2))
def test_whatever_a_scheduler_says_stays_within_bounds(name: str, value: object, pair: list[object]) -> None:
    for said in (value, pair, [None, {"num_servers": value, "num_cpus": value, "in_progress": value}]):
        fleet = read_fleet(json.dumps({name: said}))
        assert fleet is None or (fleet.obstacle.isprintable() and fleet.used >= 0 and 0 <= fleet.places <= 1_000_000)
    done = read_done(json.dumps({"stats": {"dist_compiles": {str(value): value}, "dist_errors": value}}))
    assert done is not None
    assert all(name.isprintable() and 0 <= count <= MAX_COUNT for name, count in done.by_server.items())
