"""Missing submodules in real git repositories: what may be fetched, and what a person's own work keeps from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.sense.submodules import Missing, is_harmless, missing_submodules
from support.gitrepo import commit, git, repository, with_submodules


def test_what_was_never_fetched_is_missing_by_its_path_below_the_top(tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "third_party/gloo", "third_party/with space")
    (clone / "deep" / "er").mkdir(parents=True)
    wanted = Missing(clone, ("third_party/gloo", "third_party/with space"))
    assert missing_submodules(str(clone)) == missing_submodules(str(clone / "deep" / "er")) == wanted


def test_nothing_is_missing_where_all_is_fetched_and_where_there_is_no_repository(tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "gloo")
    git(clone, "submodule", "update", "--init")
    assert missing_submodules(str(clone)) is None
    (tmp_path / "plain").mkdir()
    assert missing_submodules(str(tmp_path / "plain")) is None
    assert missing_submodules(str(tmp_path / "gone")) is None


def test_a_submodule_at_a_commit_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "mine", "other")
    git(clone, "submodule", "update", "--init", "mine")
    commit(clone / "mine", "own.txt")
    assert missing_submodules(str(clone)) == Missing(clone, ("other",))


def test_what_misses_below_a_submodule_is_fetched_with_it(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", "inner.txt")
    middle = repository(tmp_path / "middle", "middle.txt")
    git(middle, "submodule", "add", "-q", str(inner), "libuv")
    commit(middle, "more.txt")
    outer = repository(tmp_path / "outer", "outer.txt")
    git(outer, "submodule", "add", "-q", str(middle), "tensorpipe")
    commit(outer, "more.txt")
    git(tmp_path, "clone", "-q", str(outer), "clone")
    clone = tmp_path / "clone"
    git(clone, "submodule", "update", "--init", "tensorpipe")
    assert missing_submodules(str(clone)) == Missing(clone, ("tensorpipe",))
    commit(clone / "tensorpipe", "own.txt")
    assert missing_submodules(str(clone)) is None


def test_a_path_that_only_gitmodules_names_is_none(tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "gloo")
    with (clone / ".gitmodules").open("a") as file:
        file.write(
            '[submodule "x"]\n\tpath = ../../etc\n\turl = /\n[submodule "y"]\n\tpath = --upload-pack=sh\n\turl = /\n'
        )
        file.write('[submodule "z"]\n\tpath = nowhere\n\turl = /\n')
    assert missing_submodules(str(clone)) == Missing(clone, ("gloo",))


def test_looking_runs_nothing_of_the_repository(tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "gloo")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(clone, "config", "core.fsmonitor", str(trap))
    for hook in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        os.symlink(trap, clone / ".git" / "hooks" / hook)
    assert missing_submodules(str(clone)) is not None
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("path", ["third_party/gloo", "a b", "ünïcode", ".hidden/x"])
def test_paths_that_may_stand_in_a_command(path: str) -> None:
    assert is_harmless(path)


@pytest.mark.parametrize(
    "path",
    ["", "-x", "--exec=sh", "/etc", "../up", "a/../../b", "a/..", ".git/hooks", "a/.git", "a//b", "a\nb", "a\x1b[2Jb",
     ":(top)x", "~root", "a*", "$(id)", "a`id`", "a'b", "x" * 2000, "\udc80"],
)  # fmt: skip
def test_paths_that_may_not(path: str) -> None:
    assert not is_harmless(path)
