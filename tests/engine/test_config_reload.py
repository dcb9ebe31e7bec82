"""A person's files changed under a running build: what counts from then on, who did it, and what a fault costs."""

from __future__ import annotations

import asyncio
import getpass
import math
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec, Origin, StepSpec
from stoker.decide.policy.thresholds import Amount, Thresholds
from stoker.engine.reload import config_reload as following_module
from stoker.engine.reload.choices_file import NAME
from stoker.engine.reload.config_reload import ConfigReload
from stoker.engine.steps import Steps
from stoker.model import events as ev

GIB = 2**30
PATIENCE = 30.0
WHO = getpass.getuser()

PROFILE = """\
memory: 4 GiB
variables: {heavy_level: "2"}
steps:
  heavy: {command: ninja heavy, level: "${heavy_level}", retries: 1}
  rest: {command: ninja}
priors:
  kernels: {output: "*.cu.o", points: {0: 1 GiB, 60: 5 GiB}}
"""


class Build:
    """The engine's side of a build by a profile, without the engine."""

    def __init__(
        self, root: Path, profile: Path | None, *, by_hand: bool = False, memory: int | None = 4 * GIB
    ) -> None:
        self.root = root
        self.root.mkdir(exist_ok=True)
        steps = (StepSpec("heavy", ("x",), "/", level=2, retries=1), StepSpec("rest", ("x",), "/"))
        origin = Origin("p", str(profile), memory_by_hand=by_hand) if profile is not None else None
        self.spec = BuildSpec("b", "/", ("x",), steps=steps, memory=memory, profile=origin)
        self.rings = 0
        self.told: list[ev.Event] = []
        self.following = self.engine()

    def engine(self) -> ConfigReload:
        """A new engine begins, or takes over."""
        self.following = ConfigReload(BuildPaths(self.root), self.spec, Steps(self.spec))
        return self.following

    def start(self) -> None:
        self.following.start(self._ring)

    def _ring(self) -> None:
        self.rings += 1

    def look(self, *, level_by_hand: bool = False) -> list[ev.Event]:
        """What is new, also kept in `told`."""
        news = self.following.news(lambda: "3 run, 5 on deck", level_by_hand=level_by_hand)
        self.told += news
        return news

    def decided(self) -> list[str]:
        return [f"{e.who}: {e.what}" for e in self.told if isinstance(e, ev.Decided)]

    def noticed(self) -> list[str]:
        return [f"{e.severity}: {e.text}" for e in self.told if isinstance(e, ev.Noticed)]

    async def until(self, condition: Callable[[], object], *, level_by_hand: bool = False) -> None:
        """Wait for what the condition says; the engine looks whenever it is rung for."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, (self.decided(), self.noticed())
            await asyncio.sleep(0.02)
            self.look(level_by_hand=level_by_hand)


def replace(path: Path, text: str) -> None:
    """As careful editors write: another file, renamed into its place."""
    new = path.with_name(f".{path.name}.swp")
    new.write_text(text)
    new.replace(path)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's folder of settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(following_module, "LEAST_SECONDS", 0.0)
    folder = tmp_path / "config" / "stoker"
    (folder / "profiles").mkdir(parents=True)
    return folder


@pytest.fixture
def profile(config: Path) -> Path:
    path = config / "profiles" / "mine.yaml"
    path.write_text(PROFILE)
    return path


@pytest.fixture
async def build(tmp_path: Path, profile: Path) -> AsyncIterator[Build]:
    build = Build(tmp_path / "b", profile)
    build.start()
    yield build
    build.following.close()


async def test_the_files_count_as_they_are_when_a_build_begins(build: Build) -> None:
    following = build.following
    assert (following.memory, following.limit(1), following.limit(2)) == (4 * GIB, 2.0, math.inf)
    assert (following.retries(1), following.retries(2)) == (1, 5)
    assert following.priors.of("a.cu.o", "nvcc").curve.peak == 5 * GIB
    assert following.thresholds == Thresholds()
    assert build.look() == []


async def test_an_edited_profile_counts_at_once_and_says_who_what_from_and_to(build: Build, profile: Path) -> None:
    replace(profile, PROFILE.replace("4 GiB", "6 GiB").replace('"2"', '"3"').replace("retries: 1", "retries: 4"))
    await build.until(build.decided)
    assert build.decided() == [
        f"{WHO}: memory 4.0 GiB → 6.0 GiB",
        f"{WHO}: level of heavy 2 → 3",
        f"{WHO}: retries of heavy 1 → 4",
    ]
    assert isinstance(build.told[0], ev.Decided)
    assert build.told[0].why == f"{profile} was edited; 3 run, 5 on deck"
    following = build.following
    assert (following.memory, following.limit(1), following.retries(1)) == (6 * GIB, 3.0, 4)
    await build.until(lambda: build.rings)  # the test itself may have looked before the watch did


async def test_a_key_that_is_taken_out_means_what_it_means_at_the_start(build: Build, profile: Path) -> None:
    replace(profile, "level: 7\n" + PROFILE.replace("memory: 4 GiB\n", "").replace(', level: "${heavy_level}"', ""))
    await build.until(build.decided)
    assert build.decided() == [
        f"{WHO}: memory 4.0 GiB → all there is",
        f"{WHO}: level of heavy 2 → 7",
        f"{WHO}: level of rest automatic → 7",
    ]
    assert build.following.memory is None


async def test_a_file_that_the_profile_extends_counts_too_and_so_does_one_that_comes_before_it(
    build: Build, profile: Path
) -> None:
    base = profile.with_name("base.yaml")
    base.write_text("memory: 5 GiB\nlevel: 1\n")
    replace(profile, "extends: base\n" + PROFILE.replace("memory: 4 GiB\n", ""))
    await build.until(lambda: f"{WHO}: memory 4.0 GiB → 5.0 GiB" in build.decided())
    replace(base, "memory: 7 GiB\nlevel: 1\n")
    await build.until(lambda: f"{WHO}: memory 5.0 GiB → 7.0 GiB" in build.decided())
    told = next(e for e in build.told if isinstance(e, ev.Decided) and "7.0 GiB" in e.what)
    assert told.why.startswith(f"{base} was edited")


BROKEN = {
    ":1: 'memory' is a size like 12 GiB": PROFILE.replace("4 GiB", "much"),
    ":5: not valid YAML": PROFILE.replace("retries: 1}", "retries: 1"),
    ": a profile needs steps": "",
    "and 1 more": PROFILE.replace("4 GiB", "much").replace("retries: 1", "retries: 9"),
    ":1: no profile 'nothing-like-it'": "extends: nothing-like-it\n",
}


async def test_a_broken_profile_is_one_warning_with_its_line_and_changes_nothing(build: Build, profile: Path) -> None:
    for count, (fault, text) in enumerate(BROKEN.items(), 1):
        replace(profile, text)
        await build.until(lambda: len(build.noticed()) == count)  # noqa: B023
        assert build.noticed()[-1].startswith(f"warning: {profile}")
        assert fault in build.noticed()[-1]
        assert build.noticed()[-1].endswith("; the old values stay")
    assert build.following.memory == 4 * GIB
    replace(profile, PROFILE.replace("4 GiB", "8 GiB"))
    await build.until(build.decided)
    assert build.decided() == [f"{WHO}: memory 4.0 GiB → 8.0 GiB"]
    assert len(build.noticed()) == len(BROKEN)


async def test_a_mended_file_without_a_change_says_so(build: Build, profile: Path) -> None:
    replace(profile, PROFILE.replace("memory", "memmory"))
    await build.until(build.noticed)
    replace(profile, PROFILE)
    await build.until(lambda: len(build.noticed()) == 2)
    assert build.noticed()[1] == f"info: {profile} has no errors any more; nothing has changed"
    assert build.decided() == []


async def test_commands_and_environment_do_not_change_under_a_build(build: Build, profile: Path) -> None:
    replace(profile, PROFILE.replace("ninja heavy", "ninja light"))
    await build.until(build.noticed)
    assert build.noticed() == [f"info: {profile}: commands and environment count from the next build on"]
    assert build.decided() == []


async def test_settings_and_priors_of_a_person_are_followed_from_nothing_and_back(build: Build, config: Path) -> None:
    replace(config / "settings.yaml", "reserve: 8%\nfloor: 1 GiB\nlevel: 3\npressure: off\ntheme: light\n")
    await build.until(build.decided)
    assert build.decided() == [
        f"{WHO}: reserve automatic → 8 %",
        f"{WHO}: floor automatic → 1.0 GiB",
        f"{WHO}: automatic level as many as cores → at most 3",
        f"{WHO}: pressure 20 % → off",
    ]
    assert build.following.thresholds == Thresholds(Amount(share=0.08), Amount(size=GIB), 3, None)
    replace(config / "priors.yaml", 'mine: {output: "x*", points: {0: 1 GiB, 9: 2 GiB}}\n')
    await build.until(lambda: len(build.decided()) == 5)
    assert build.decided()[-1] == f"{WHO}: class mine none → 2.0 GiB"
    assert build.following.priors.of("xyz", "cxx").name == "mine"
    replace(config / "settings.yaml", "theme: light\n")
    await build.until(lambda: build.following.thresholds == Thresholds())
    assert f"{WHO}: pressure off → 20 %" in build.decided()


async def test_a_file_that_vanishes_keeps_its_values_until_it_comes_back(build: Build, config: Path) -> None:
    settings = config / "settings.yaml"
    replace(settings, "reserve: 8%\n")
    await build.until(build.decided)
    settings.unlink()
    await build.until(build.noticed)
    assert build.noticed() == [f"warning: {settings}: is gone; the old values stay"]
    assert build.following.thresholds.reserve == Amount(share=0.08)
    replace(settings, "reserve: 9%\n")
    await build.until(lambda: len(build.decided()) == 2)
    assert build.decided()[-1] == f"{WHO}: reserve 8 % → 9 %"


async def test_a_folder_that_is_made_anew_is_watched_again(build: Build, config: Path, profile: Path) -> None:
    away = config.with_name("away")
    os.rename(config, away)
    await build.until(build.noticed)
    os.rename(away, config)
    replace(profile, PROFILE.replace("4 GiB", "5 GiB"))
    await build.until(build.decided)
    replace(profile, PROFILE.replace("4 GiB", "6 GiB"))
    await build.until(lambda: f"{WHO}: memory 5.0 GiB → 6.0 GiB" in build.decided())


async def test_a_successor_goes_on_with_what_was_accepted_and_tells_what_has_changed_since(
    build: Build, profile: Path, config: Path
) -> None:
    replace(profile, PROFILE.replace("4 GiB", "6 GiB"))
    replace(config / "settings.yaml", "reserve: 8%\npressure: 35\n")
    replace(
        config / "priors.yaml", 'mine: {tool: cxx, output: "x*", spread: 0.5, points: {0: 1 GiB, 9: 2 GiB cc1plus}}\n'
    )
    await build.until(lambda: len(build.decided()) == 4)
    kept = build.following.choices
    build.following.close()
    build.told.clear()

    replace(profile, PROFILE.replace("memory", "memmory"))
    replace(config / "settings.yaml", "reserve: 8%\npressure: 50\n")
    successor = build.engine()
    assert successor.choices == kept
    assert successor.memory == 6 * GIB
    assert successor.priors.of("xyz", "cxx").name == "mine"
    build.start()
    await build.until(lambda: build.decided() and build.noticed())
    assert build.decided() == [f"{WHO}: pressure 35 % → 50 %"]
    assert "unknown key 'memmory'" in build.noticed()[0]
    assert successor.memory == 6 * GIB


@pytest.mark.parametrize("spoilt", [b"", b"{}", b"[]", b'{"memory": 1', b'{"memory": null, "steps": {"heavy": 3}}'])
async def test_a_spoilt_record_of_choices_costs_the_successor_nothing(
    tmp_path: Path, profile: Path, spoilt: bytes
) -> None:
    build = Build(tmp_path / "b", profile)
    (build.root / NAME).write_bytes(spoilt)
    assert build.engine().memory == 4 * GIB


async def test_words_of_a_person_go_before_the_file_and_the_decision_says_so(tmp_path: Path, profile: Path) -> None:
    build = Build(tmp_path / "b", profile, by_hand=True, memory=3 * GIB)
    build.start()
    replace(profile, PROFILE.replace("4 GiB", "6 GiB").replace('"2"', '"1"'))
    await build.until(build.decided, level_by_hand=True)
    build.following.close()
    assert build.following.memory == 3 * GIB
    whys = [e.why for e in build.told if isinstance(e, ev.Decided)]
    assert whys[0].endswith("; --memory takes precedence")
    assert whys[1].endswith("; the level that was set by hand takes precedence")


async def test_a_hostile_file_is_bounded_and_harmless(build: Build, profile: Path, config: Path) -> None:
    os.mkfifo(config / "priors.yaml")
    await build.until(build.noticed)
    assert "this is not a regular file; the old values stay" in build.noticed()[0]
    replace(profile, PROFILE + "#" * 300_000)
    await build.until(lambda: len(build.noticed()) == 2)
    assert "is larger than 256 KiB" in build.noticed()[1]
    classes = "".join(f'  "c{n}\\e]0;x\\a": {{points: {{0: 1 GiB, 9: 2 GiB}}}}\n' for n in range(40))
    replace(profile, PROFILE + classes)
    await build.until(build.decided)
    assert len(build.decided()) == 9
    assert build.decided()[-1] == f"{WHO}: 32 more classes"
    assert all(text.isprintable() for text in build.decided())


async def test_without_a_profile_settings_are_followed_all_the_same(tmp_path: Path, config: Path) -> None:
    build = Build(tmp_path / "b", None, memory=None)
    build.start()
    replace(config / "settings.yaml", "level: 2\n")
    await build.until(build.decided)
    build.following.close()
    assert build.following.thresholds.level == 2
    assert (build.following.memory, build.following.limit(2)) == (None, math.inf)
