"""What a profile's compiler cache is given, and what of a person's stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stoker.config.profiles.launchers import LAUNCHERS, Setup, launcher_setup
from stoker.config.profiles.profile import Cache, Profile
from support import caches

MIB, GIB = 2**20, 2**30


def profile(cache: Cache, size: int | None = 700 * MIB) -> Profile:
    return Profile("mine", Path("mine.yaml"), cache=cache, cache_size=size)


def cache_setup(profile: Profile, environ: dict[str, str]) -> Setup:
    return launcher_setup(profile, environ, environ["HOME"])


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Surroundings in which nobody has set anything; both caches are on PATH."""
    (tmp_path / "bin").mkdir()
    for name in ("ccache", "sccache"):
        (tmp_path / "bin" / name).symlink_to(caches.program(name))
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}


def test_where_nobody_has_chosen_a_size_it_gets_the_profiles(environ: dict[str, str]) -> None:
    found = cache_setup(profile("auto"), environ)
    assert found.tool == "ccache"
    assert found.variables == {**dict.fromkeys(LAUNCHERS, "ccache"), "CCACHE_MAXSIZE": "700Mi"}
    found = cache_setup(profile("sccache"), environ)
    assert found.variables == {**dict.fromkeys(LAUNCHERS, "sccache"), "SCCACHE_CACHE_SIZE": "700M"}
    assert found.notes == ()


def test_without_a_size_in_the_profile_none_is_set(environ: dict[str, str]) -> None:
    assert cache_setup(profile("ccache", None), environ).variables == dict.fromkeys(LAUNCHERS, "ccache")


@pytest.mark.parametrize(
    ("cache", "variable"),
    [("ccache", "CCACHE_MAXSIZE"), ("sccache", "SCCACHE_CACHE_SIZE"), ("sccache", "SCCACHE_CONF")],
)
def test_a_persons_variable_counts(environ: dict[str, str], cache: Cache, variable: str) -> None:
    found = cache_setup(profile(cache), {**environ, variable: "3G"})
    assert found.variables == dict.fromkeys(LAUNCHERS, cache)


def test_a_persons_configuration_counts(environ: dict[str, str], tmp_path: Path) -> None:
    for cache, text in (("ccache", "max_size = 3G\n"), ("sccache", "")):
        folder = tmp_path / ".config" / cache
        folder.mkdir(parents=True)
        (folder / ("ccache.conf" if cache == "ccache" else "config")).write_text(text)
    assert "CCACHE_MAXSIZE" not in (cache_setup(profile("ccache"), environ).variables or {})
    assert "SCCACHE_CACHE_SIZE" not in (cache_setup(profile("sccache"), environ).variables or {})


@pytest.mark.parametrize("cache", ["ccache", "sccache"])
def test_a_size_for_which_there_is_no_room_is_not_set_but_reported(environ: dict[str, str], cache: Cache) -> None:
    free = shutil.disk_usage(environ["HOME"]).free
    found = cache_setup(profile(cache, free), environ)
    assert found.variables == dict.fromkeys(LAUNCHERS, cache)
    assert len(found.notes) == 1
    assert "no room for" in found.notes[0]


def test_a_persons_launchers_stay_and_with_all_three_no_cache_was_set_up(environ: dict[str, str]) -> None:
    mine = {LAUNCHERS[0]: "distcc"}
    found = cache_setup(profile("ccache", None), {**environ, **mine})
    assert (found.tool, found.variables) == ("ccache", dict.fromkeys(LAUNCHERS[1:], "ccache"))
    assert cache_setup(profile("ccache", None), {**environ, **dict.fromkeys(LAUNCHERS, "distcc")}).tool == ""


def test_no_cache_on_path_is_reported(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    assert cache_setup(profile("auto"), nowhere).notes == ("neither ccache nor sccache is on PATH: nothing is cached",)
    assert cache_setup(profile("sccache"), nowhere).notes == ("sccache is not on PATH: nothing is cached",)
    assert cache_setup(profile("none"), nowhere).notes == ()
