"""Jobs on other machines in words, as every screen has them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.remote import RemoteEngine, RemoteHost
from stoker.model.state import Job, RemoteUse
from stoker.model.update import Update
from stoker.show.plain import PlainRenderer
from stoker.show.remote_text import outcome_text, slots_text
from stoker.show.tui.pages.lines import whole_clauses

from .fakes import START, done, state

HOSTS = (RemoteHost("far", 2, compiled=3), RemoteHost("near", 4, fallbacks=2), RemoteHost("idle", 2))


def use(*hosts: RemoteHost, finished: int = 0) -> RemoteUse:
    """Hosts of which `near` has finished some jobs."""
    return RemoteUse((RemoteEngine("sccache", hosts),), {"near": finished} if finished else {})


def test_slots_are_those_that_exist_though_more_jobs_wait_for_them() -> None:
    jobs = {n: Job(n, 1, n, f"{n}.o", "cxx", START, state="running", host="far") for n in range(4)}
    assert slots_text(state(remote=use(HOSTS[0]), jobs={})) == "0 of 2 slots on 1 host"
    assert slots_text(state(remote=use(HOSTS[0]), jobs=jobs)) == "4 in use, 2 slots on 1 host"


@pytest.mark.parametrize(
    ("hosts", "finished", "text"),
    [
        ((), 0, ""),
        (HOSTS[:1], 0, "3 compiled elsewhere on 1 host"),
        (HOSTS, 4, "7 compiled elsewhere on 2 hosts, 2 fell back"),
        (HOSTS[1:], 0, "none compiled elsewhere, 2 fell back"),
    ],
)
def test_what_other_machines_did_is_said(hosts: tuple[RemoteHost, ...], finished: int, text: str) -> None:
    assert outcome_text(state(remote=use(*hosts, finished=finished))) == text


def test_what_nobody_counts_is_at_least_what_was_seen() -> None:
    seen = RemoteUse((RemoteEngine("icecream", (RemoteHost("far", 3),)),), {"far": 27})
    assert outcome_text(state(remote=seen)) == "at least 27 compiled elsewhere on 1 host"


def test_the_plain_output_ends_with_it() -> None:
    renderer = PlainRenderer()
    renderer.update(Update(state(), "live"), START)
    ended = replace(done(), remote=use(*HOSTS, finished=4))
    assert "stoker: remote: 7 compiled elsewhere on 2 hosts, 2 fell back" in renderer.update(
        Update(ended, "ended"), START + 754
    )


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (99, "12 local + 28 remote, 28 of 40 slots; far: it failed"),
        (51, "12 local + 28 remote, 28 of 40 slots"),
        (35, "12 local + 28 remote"),
        (19, "12 local"),
        (7, ""),
    ],
)
def test_what_finds_no_room_is_left_out_by_whole_clauses(width: int, text: str) -> None:
    assert whole_clauses("12 local + 28 remote, 28 of 40 slots; far: it failed", width) == text
