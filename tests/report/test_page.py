"""The page of a build: the figures of `status --json`, nothing of the build's text alive, and no network."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.test_recorded import ANY_EVENT, KILLED, MACHINE, build_of, sampled
from stoker.cli.main import main
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.remote import RemoteEngine, RemoteHost
from stoker.model.status import status_of
from stoker.record.journal_reader import read_journal
from stoker.report.arch_costs import ArchCosts
from stoker.report.charts import memory_chart
from stoker.report.critical_path import critical_path
from stoker.report.html import POLICY
from stoker.report.page import page
from stoker.report.recorded import RecordedBuild, recorded
from stoker.report.summary import brief
from support.browser import CHROMIUM, asked_of_the_network, chromium, console

HOSTILE = "</title><script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>\x1b[31m"


class Reader(HTMLParser):
    """What stands in a page: its elements, its figures, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.figures: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.elements.append((tag, values))
        if tag == "data":
            self.figures[values["id"] or ""] = values["value"] or ""


def at(status: dict[str, Any], key: str) -> object:
    value: Any = status
    for name in key.split("."):
        value = value[name]
    return value


def test_its_figures_are_those_of_status(tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    assert main(["report", str(KILLED), "-o", str(target)]) == 0
    state = reduce_all(read_journal(KILLED))
    status = json.loads(json.dumps(status_of(state, state.time)))
    figures = Reader(target.read_text()).figures
    assert {"seconds", "progress.finished", "memory.build_peak", "memory.budget", "exit_code"} <= figures.keys()
    assert {key: str(at(status, key)) for key in figures} == figures


def test_of_a_build_without_ninja_or_make_it_counts_no_jobs() -> None:
    """Setuptools compiles extensions by itself."""
    pip: list[ev.Event] = [
        ev.BuildStarted("b-1", "b", ("pip", "install", "."), "/src", "/log", "host", 2, 24 << 30, "0.1.0"),
        ev.StepStarted(1, 1, "build", ("pip",), 100),
        sampled(),
        ev.StepEnded(1, 0),
        ev.BuildEnded("done", 0, ""),
    ]
    build = recorded(ev.Record(n, 1000.0 + n, event) for n, event in enumerate(pip, 1))
    text = page(build)
    assert "not counted, not governed: no ninja or make ran" in text
    assert "jobs finished" not in text
    assert "CPU time of jobs" not in text
    figures = dict(brief(build, ArchCosts()).figures)
    assert figures["jobs"] == "not counted, not governed: no ninja or make ran"
    assert "CPU time" not in figures


def test_an_end_that_is_noticed_after_the_next_birth_is_in_the_chain() -> None:
    build = build_of(
        [
            ev.SchedulerPlanned(1, 3, "dry-run", {}, after=((), (0,))),
            ev.JobStarted(1, 1, 7, "a.o", "cxx", 1000.0),
            ev.JobStarted(2, 1, 8, "b.o", "cxx", 1000.5),
            ev.JobStarted(3, 1, 9, "lib.a", "archive", 1007.5),
            ev.JobsExited((1,)),  # 1008: half a second after the archive was begun
            ev.JobFinished(2, 1, "b.o", "cxx", 1.0, "ok", group=0),
            ev.JobFinished(1, 1, "a.o", "cxx", 1.0, "ok", group=0),
            ev.JobFinished(3, 1, "lib.a", "archive", 1.0, "ok", group=1),
        ]
    )
    assert [job.output for job in critical_path(build)] == ["a.o", "lib.a"]


def test_what_it_would_have_been_can_be_left_out(tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    for flags, there in (([], True), (["--no-paper"], False)):
        assert main(["report", str(KILLED), "-o", str(target), *flags]) == 0
        assert ("the best fixed -j by hindsight" in target.read_text()) is there


def test_it_asks_for_nothing_and_runs_nothing() -> None:
    elements = Reader(page(recorded(read_journal(KILLED)))).elements
    assert {tag for tag, _ in elements}.isdisjoint({"script", "link", "img", "iframe", "object", "form", "base"})
    assert not any(name in ("src", "href", "style") or name.startswith("on") for _, attrs in elements for name in attrs)
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}) in elements


@settings(max_examples=40)
@given(st.lists(ANY_EVENT, max_size=25), st.sampled_from([1.0, 0.0, -0.5]))
def test_no_text_of_a_build_is_alive(events: list[ev.Event], every: float) -> None:
    named: list[ev.Event] = [ev.JobStarted(9, 1, 7, HOSTILE, "cxx", 1004.0), ev.Decided(HOSTILE, HOSTILE, HOSTILE)]
    text = page(build_of([*named, *events], every))
    assert {tag for tag, _ in Reader(text).elements}.isdisjoint({"script", "img"})
    assert "\x1b" not in text
    assert "nan" not in re.findall(r'(?:x|y|width|d)="[^"]*"', text)


def test_the_chain_leads_through_who_made_way() -> None:
    build = build_of(
        [
            ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0),
            ev.JobStarted(2, 1, 8, "b.o", "cxx", 1004.0, state="on_deck"),
            ev.JobStarted(3, 1, 9, "c.o", "cxx", 1004.0),
            ev.JobsExited((3,)),
            ev.JobsExited((1,)),
            ev.JobMoved(2, "running"),
            *(ev.JobFinished(n, 1, f"{name}.o", "cxx", 1.0, "ok") for n, name in ((3, "c"), (1, "a"), (2, "b"))),
        ]
    )
    assert [job.output for job in critical_path(build)] == ["a.o", "b.o"]


def run_again() -> RecordedBuild:
    """A build whose a.o was killed for memory; the second attempt makes it and links."""
    return build_of(
        [
            ev.SchedulerPlanned(1, 3, "dry-run", {}, after=((), (0,))),  # 1004
            ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0),
            ev.JobStarted(2, 1, 8, "b.o", "cxx", 1004.0),
            ev.JobKilled("a.o", "shed", jid=1),
            ev.JobFinished(1, 1, "a.o", "cxx", 3.0, "failed", group=0),
            ev.JobFinished(2, 1, "b.o", "cxx", 5.0, "ok", group=0),  # 1009
            ev.SchedulerEnded(1),
            ev.StepStarted(1, 1, "build", ("ninja",), 200, attempt=2),  # 1011
            ev.SchedulerStarted(2, "ninja", 201, "/src/build", "1.13.2", 4),
            ev.SchedulerPlanned(2, 2, "dry-run", {}, after=((), (0,))),
            ev.JobStarted(3, 2, 9, "a.o", "cxx", 1013.0),
            ev.JobFinished(3, 2, "a.o", "cxx", 1.0, "ok", group=0),
            ev.JobStarted(4, 2, 10, "app", "link", 1015.5),
            ev.JobFinished(4, 2, "app", "link", 1.0, "ok", group=1),
            ev.StepEnded(1, 0),  # 1018
            ev.BuildEnded("done", 0, ""),
        ]
    )


def test_the_chain_goes_on_before_what_was_made_again() -> None:
    assert [job.output for job in critical_path(run_again())] == ["b.o", "a.o", "app"]


def test_each_attempt_took_its_own_time_and_what_was_killed_is_counted() -> None:
    text = page(run_again())
    cells = [
        re.findall(r">([^<>]+)<", row) for row in re.findall(r"<tr>(?:(?!</tr>).)*attempt.*?</tr>", text, re.DOTALL)
    ]
    assert cells == [["build", "attempt 1", "0:09"], ["build", "attempt 2", "0:07", "0"]]
    assert re.search(r"killed\D*>1<", text)


def test_a_page_of_thousands_of_jobs_is_bounded() -> None:
    many = [ev.JobFinished(None, 1, f"{n}.o", "cxx", 0.5, "ok") for n in range(9000)]
    begun = [ev.JobStarted(n, 1, n, f"s{n}.o", "cxx", 1000.0 + n) for n in range(1, 3000)]
    ended = [ev.JobFinished(n, 1, f"s{n}.o", "cxx", 1.0, "ok") for n in range(1, 3000)]
    seen = [event for pair in zip(begun, ended, strict=True) for event in pair]
    assert len(page(build_of([*many, *seen]))) < 4_000_000


@pytest.mark.long
@pytest.mark.skipif(not CHROMIUM, reason="wants chromium")
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_a_browser_opens_it_without_a_word_and_asks_nobody(tmp_path: Path, scheme: int) -> None:
    target, picture = tmp_path / "r.html", tmp_path / "r.png"
    assert main(["report", str(KILLED), "-o", str(target)]) == 0
    scheme_flag = f"--blink-settings=preferredColorScheme={scheme}"
    done = chromium(tmp_path, target, scheme_flag, "--window-size=1200,2400", f"--screenshot={picture}")
    assert console(done) == []
    assert asked_of_the_network(tmp_path) == []
    assert picture.stat().st_size > 20_000
    target.write_text("<img src='http://example.invalid/a.png'><script>no.such()</script>")
    done = chromium(tmp_path, target, f"--screenshot={picture}")
    assert console(done)  # these two would notice
    assert "http://example.invalid/a.png" in asked_of_the_network(tmp_path)


def test_a_promise_beyond_the_budget_does_not_set_the_scale() -> None:
    """A link of which nothing is known runs alone at the end, and much is promised to it."""
    used = replace(sampled(), machine=replace(MACHINE, memory_used=10 << 30), promised=11 << 30)
    build = build_of([used, used, replace(used, promised=900 << 30)])
    assert "GiB" in memory_chart(build)
    assert "TiB" not in memory_chart(build)
    labels = [float(size) for size in re.findall(r">(\d+(?:\.\d+)?) GiB<", memory_chart(build))]
    assert max(labels) <= 1.3 * 24


def test_it_says_what_other_machines_compiled() -> None:
    host = RemoteHost("far.example.org", 8, errors=2, fallbacks=3, why_unused="it failed")
    text = page(
        build_of(
            [
                ev.RemoteSeen((RemoteEngine("distcc", (host,)),)),
                *(ev.JobFinished(None, 1, f"{n}.o", "cxx", 1.0, "ok", host=host.name) for n in range(41)),
            ]
        )
    )
    row = re.search(r"<tr>(?:(?!</tr>).)*far\.example\.org.*?</tr>", text, re.DOTALL)
    assert row is not None
    assert re.findall(r">(\w[\w. ]*)<", row[0]) == ["far.example.org", "distcc", "8", "41", "2", "3", "it failed"]
