"""The processes in the box about a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.job_tree import ProcessRow, ProcessTree

from . import builds
from .apps import settle, shown
from .builds import MIB, FakeSource
from .pictures import text_of

ROWS = (
    ProcessRow(5000, 0, "sh", "nvcc fmha.cu", 2 * MIB, 0.01, "waiting"),
    ProcessRow(5001, 1, "nvcc", "sm_90a fmha.cu", 9 * MIB, 0.2, "waiting"),
    ProcessRow(5002, 2, "cicc", "compute_90a fmha.cu", 3300 * MIB, 61.0, "running"),
    ProcessRow(5003, 2, "ptxas", "sm_80 fmha.cubin", 310 * MIB, 4.0, "stopped"),
)


def with_tree(tree: ProcessTree) -> FakeSource:
    source = FakeSource(builds.governed().state, log=builds.output_log(50))
    source.tree = tree
    return source


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_each_process_with_what_it_works_on_and_what_it_uses(size: tuple[int, int]) -> None:
    async with shown(with_tree(ProcessTree(100.0, ROWS)), "down", "enter", size=size) as (app, pilot):
        await pilot.press("pagedown", "pagedown")
        await settle(pilot)
        text = " ".join(text_of(app).split())
        assert "processes 4" in text
        assert "cicc compute_90a fmha.cu 3.2 GiB" in text
        assert "5003 stopped" in text
        assert "F freeze" in text


async def test_what_a_job_holds_is_what_its_processes_hold() -> None:
    """The job's own figure is of the second before: it stood below that of its only process of any size."""
    tree = ProcessTree(100.0, (ProcessRow(4000, 0, "cicc", "", 3 * 1024 * MIB),))
    async with shown(with_tree(tree), "down", "enter", size=(120, 40)) as (app, _pilot):
        assert "memory       3.0 GiB, at most 3.0 GiB so far" in text_of(app)
        assert "205 MiB" not in text_of(app).partition("memory       ")[2].partition("cpu")[0]


async def test_how_busy_a_process_is_follows_from_two_answers() -> None:
    source = with_tree(ProcessTree(100.0, ROWS))
    async with shown(source, "down", "enter", size=(120, 40)) as (app, pilot):
        later = tuple(replace(row, cpu=row.cpu + (1.5 if row.name == "cicc" else 0)) for row in ROWS)
        source.tree = ProcessTree(102.0, later)
        await pilot.pause(1.2)
        app.tick()
        await settle(pilot)
        assert "75 %" in text_of(app)


async def test_names_of_a_build_cannot_draw_and_a_crowd_can_be_scrolled() -> None:
    rows = tuple(ProcessRow(i, i, f"\x1b[2J{i}", builds.HOSTILE[i % len(builds.HOSTILE)]) for i in range(40))
    async with shown(with_tree(ProcessTree(1.0, rows, 7)), "down", "enter") as (app, pilot):
        assert "\x1b" not in text_of(app)
        assert "up and down for more" in text_of(app)
        for _ in range(8):
            await pilot.press("pagedown")
        await settle(pilot)
        text = text_of(app)
        assert "+7 more" in text
        assert "F freeze" in text


async def test_without_an_answer_the_box_says_why() -> None:
    source = FakeSource(builds.governed().state, log=builds.output_log(50))
    async with shown(source, "down", "enter", size=(120, 40)) as (app, _pilot):
        assert "processes: no engine answers now" in text_of(app)


async def test_a_process_that_holds_next_to_nothing_shows_no_figure_that_looks_like_an_error() -> None:
    rows = (ProcessRow(5000, 0, "g++", "", 12 * 1024, 0.0, "stopped"), *ROWS[1:2])
    async with shown(with_tree(ProcessTree(1.0, rows)), "down", "enter", size=(120, 40)) as (app, _pilot):
        text = " ".join(text_of(app).split())
        assert "< 1 MiB" in text
        assert "KiB" not in text.partition("processes 2")[2]
