"""The verification screen: the verdict at a glance, and all about the picked row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.report import (
    DeviceReport,
    FileReport,
    HeldArch,
    Problem,
    Report,
    RequestedArch,
    TorchFacts,
)
from stoker.model.state import BuildState
from stoker.show.tui.screens.dashboard_screen import DashboardScreen, EndScreen
from stoker.show.tui.screens.verification_screen import VerificationScreen

from . import builds
from .apps import settle, shown
from .builds import GIB, HOSTILE, MIB, FakeSource
from .pictures import check_golden, page_of, text_of
from .test_golden import SIZES
from .test_hostile import assert_harmless

H200 = DeviceReport(
    "NVIDIA H200", "9.0", "native", "machine code for 812 of 812 modules", 141 * GIB, "580.95.05", "13.0"
)
L4 = DeviceReport(
    "NVIDIA L4", "8.9", "ptx-jit",
    "812 compiled from PTX by the driver at the first start, which is slow once", 24 * GIB, "580.95.05", "13.0",
)  # fmt: skip
T4 = DeviceReport(
    "Tesla T4", "7.5", "no", "no code for sm_75: libtorch_cuda.so and 1 more, with sm_80, sm_90, compute_90",
    16 * GIB, "580.95.05", "13.0",
)  # fmt: skip


def held(arch: str, size: float, count: int = 12) -> HeldArch:
    return HeldArch("ptx" if arch.startswith("c") else "cubin", arch, count, int(size * MIB), 4 * count)


BIG = FileReport(
    "/src/pytorch/build/lib/libtorch_cuda.so", 930 * MIB, archs=
    (held("sm_80", 310.2, 700), held("sm_90", 340, 700), held("compute_90", 41.5, 700), held("sm_90a", 3, 2)),
    verdicts=("native", "native", "ptx-jit", "no"),
)  # fmt: skip
LINALG = FileReport(
    "/src/pytorch/build/lib/libtorch_cuda_linalg.so", 22 * MIB, archs=(held("sm_80", 4), held("sm_90", 5)),
    verdicts=("native", "native", "partly", "no"),
)  # fmt: skip
REMEDY = "build with 7.5 in TORCH_CUDA_ARCH_LIST"
MIXED = Report(
    ok=False,
    files=(BIG, LINALG),
    requested=(
        RequestedArch("sm_80", "present", 314 * MIB),
        RequestedArch("sm_90", "present", 345 * MIB),
        RequestedArch("compute_90", "present", 41 * MIB),
        RequestedArch("sm_100", "missing"),
        RequestedArch("sm_90a", "extra", 3 * MIB),
    ),
    devices=(H200, H200, L4, T4),
    problems=(
        Problem("error", "", "sm_100 was asked for and is in no file", "look for a target that ignores the list"),
        Problem("error", BIG.path, "will not run on Tesla T4 (7.5): it holds sm_80, sm_90, compute_90", REMEDY),
        Problem("error", LINALG.path, "will not run on Tesla T4 (7.5): it holds sm_80, sm_90", REMEDY),
        Problem("warning", LINALG.path, "3 of 33 modules have no code for NVIDIA L4 (8.9)", "build with 8.9"),
    ),
    torch=TorchFacts("2.9.1", "13.0", ("sm_80", "sm_90", "sm_100")),
    seconds=0.4,
)
FINE = replace(
    MIXED, ok=True, files=(replace(BIG, verdicts=("native",)),), requested=(), devices=(H200,), problems=(), torch=None
)
NO_GPU = replace(FINE, devices=(), problems=(Problem("info", "", "no GPU to judge for: no NVIDIA driver answers"),))


def ended(found: Report | None) -> BuildState:
    story = builds.running(0)
    if found is not None:
        story.add(3735, ev.Verified(found))
    return story.add(3740, ev.SchedulerEnded(1), ev.BuildEnded("done", 0, "")).state


SCREENS: dict[str, tuple[Callable[[], BuildState], tuple[str, ...]]] = {
    "verification": (lambda: ended(MIXED), ("v", "down")),
    "verification-file": (lambda: ended(MIXED), ("v", *("down",) * 13)),
    "verification-no-gpu": (lambda: ended(NO_GPU), ("v",)),
    "verification-early": (lambda: builds.running(12).state, ("v",)),
    "end-verified": (lambda: ended(MIXED), ()),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_screen(name: str, size: tuple[int, int]) -> None:
    state, keys = SCREENS[name]
    async with shown(FakeSource(state()), *keys, size=size) as (app, _pilot):
        check_golden(f"{name}-{size[0]}x{size[1]}", page_of(app))


async def test_what_runs_in_part_is_told_at_the_end_and_on_its_own_screen() -> None:
    part = replace(L4, verdict="part", why="machine code for 30 of 33 modules; 3 have no code for sm_89")
    found = replace(FINE, verdict="part", devices=(H200, part))
    async with shown(FakeSource(ended(found)), size=(120, 40)) as (app, pilot):
        assert "runs in part on NVIDIA L4 (8.9); runs natively on NVIDIA H200 (9.0)" in text_of(app)
        await pilot.press("v", "down")
        await settle(pilot)
        assert "runs in part: machine code for 30 of 33 modules" in " ".join(text_of(app).split())


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (20, 5), (40, 10), (200, 60)])
@pytest.mark.parametrize("name", SCREENS)
async def test_any_size_will_do(name: str, size: tuple[int, int]) -> None:
    state, keys = SCREENS[name]
    async with shown(FakeSource(state()), *keys, size=size, ascii_only=size[0] == 40) as (app, _pilot):
        assert app.is_running
        assert all(len(line) <= size[0] for line in text_of(app).splitlines())
        assert text_of(app).isascii() or size[0] != 40


@pytest.mark.parametrize(("state", "before"), [(lambda: ended(MIXED), EndScreen), (builds.running, DashboardScreen)])
async def test_the_key_opens_and_closes(state: Callable[[], object], before: type) -> None:
    made = state()
    source = FakeSource(made if isinstance(made, BuildState) else builds.running(3).state)
    async with shown(source, "v") as (app, pilot):
        assert isinstance(app.screen, VerificationScreen)
        await pilot.press("v")
        await settle(pilot)
        assert isinstance(app.screen, before)


async def test_every_row_tells_all_about_itself() -> None:
    async with shown(FakeSource(ended(MIXED)), "v", size=(120, 40)) as (app, pilot):
        seen = ""
        for _ in range(20):
            seen += text_of(app)
            await pilot.press("down")
            await settle(pilot)
        for told in (
            "2 of them, 141 GiB of memory, driver 580.95.05, up to CUDA 13.0",
            T4.why,
            "asked for, but in no file",
            "/src/pytorch/build/lib/libtorch_cuda.so: 310 MiB in 700 pieces",
            "NVIDIA L4 (8.9): runs in part: some of its kernels have no code for it",
            "sm_90a: 3.0 MiB in 2 pieces, 8 kernels",
            f"remedy   {REMEDY}",
            "says that it was built for it",
        ):
            assert told in seen
        await pilot.press(*("up",) * 30)
        await settle(pilot)
        assert "2 of them" in text_of(app), "the first row is picked again"


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (lambda: ended(None), "no file that ninja or make linked holds CUDA device code"),
        (lambda: builds.failed().state, "the build did not end well"),
        (lambda: builds.done().state, "decisions and notices (d) say why"),
        (lambda: builds.running(2).state, "Nothing is verified yet"),
    ],
)
async def test_without_a_report_it_says_why_and_how_to_get_one(state: Callable[[], BuildState], told: str) -> None:
    async with shown(FakeSource(state()), "v", size=(120, 40)) as (app, _pilot):
        assert told in text_of(app)
        assert "stoker verify PATH" in text_of(app)


def hostile() -> Report:
    return Report(
        ok=False,
        files=tuple(FileReport(t, 1, archs=(HeldArch("cubin", t, 1, 1),), verdicts=("no",)) for t in HOSTILE),
        requested=tuple(RequestedArch(t, "missing") for t in HOSTILE),
        devices=tuple(DeviceReport(t, t, "no", t, 1, t, t) for t in HOSTILE),
        problems=tuple(Problem("error", t, t, t) for t in HOSTILE),
        torch=TorchFacts(HOSTILE[2], HOSTILE[1], HOSTILE),
    )


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_hostile_names_do_nothing(size: tuple[int, int]) -> None:
    async with shown(FakeSource(ended(hostile())), size=size) as (app, pilot):
        assert_harmless(text_of(app))
        await pilot.press("v")
        for _ in range(4 * len(HOSTILE) + 1):
            await pilot.press("down")
            await settle(pilot)
            assert_harmless(text_of(app))
        assert isinstance(app.screen, VerificationScreen)
        assert all(len(line) <= size[0] for line in text_of(app).splitlines())


async def test_a_report_of_thousands_of_rows_is_walked_through_at_once() -> None:
    many = replace(MIXED, files=tuple(replace(BIG, path=f"/b/lib{i}.so") for i in range(200)))
    async with shown(FakeSource(ended(many)), "v", *("pagedown",) * 25) as (app, _pilot):
        assert "lib199.so" in text_of(app)
