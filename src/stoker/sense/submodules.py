"""Finds missing submodules of a git repository, and whether fetching them would leave the user's own work alone.

Asks git, with nothing in the repository's settings that would run a program. Unaware of builds and logs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GIT_SECONDS = 10.0
"""For one question: PyTorch's 40 submodules, with theirs, take git two seconds, on a file server some more."""

MAX_ANSWER = 4 * 2**20
MAX_PATH = 1000

_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""The two settings by which looking at a repository may start a program of its (git-config(1))."""

_LINK = re.compile(r"160000 [0-9a-f]{40,64} \d\t(.+)", re.DOTALL)
"""A submodule's entry in `git ls-files --stage -z`: the mode of a link to a commit (gitglossary(7), "gitlink")."""

_STATUS = re.compile(r"([-+U ])[0-9a-f]{40,64} (.+?)(?: \([^()]*\))?")
"""A line of `git submodule status`: not fetched, at another commit, in conflict, or as it should be."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The repository's top folder, and the submodules directly in it that are to be fetched, by their paths there."""

    top: Path
    paths: tuple[str, ...]


def missing_submodules(folder: str, environ: Mapping[str, str] | None = None) -> Missing | None:
    """Return what `git submodule update` would fetch for the repository around `folder`; None if there is nothing.

    Excludes what the user has checked out at another commit than the repository names: it would be lost from sight.
    """
    found = top_of(folder, environ)
    if found is None:
        return None
    top = str(found)
    named = _named(top, environ)
    linked = set(_linked(top, named, environ)) if named else set[str]()
    states = _states(top, environ) if linked else []
    wanted = tuple(path for path in named if path in linked and _may_fetch(path, states))
    return Missing(found, wanted) if wanted else None


def top_of(folder: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """The top folder of the repository around `folder`."""
    top = _git(folder, ("rev-parse", "--show-toplevel"), environ).removesuffix("\n")
    return Path(top) if os.path.isabs(top) else None


def _named(top: str, environ: Mapping[str, str] | None) -> list[str]:
    """The paths in .gitmodules that are harmless words of a command."""
    words = ("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    entries = _git(top, words, environ).split("\0")
    paths = dict.fromkeys(entry.partition("\n")[2] for entry in entries)
    return [path for path in paths if is_harmless(path)]


def is_harmless(path: str) -> bool:
    """Say whether a path is below its folder, and looks like nothing but a path to a person and to git."""
    if not path or len(path) > MAX_PATH or not path.isprintable() or path.startswith(("-", "/", ":", "~")):
        return False
    return not set(path) & set("*?[]\\\"'`$") and not {"..", ".git", "", "."} & set(path.split("/"))


def _linked(top: str, paths: Sequence[str], environ: Mapping[str, str] | None) -> list[str]:
    """Those of the paths at which the repository has a submodule."""
    entries = _git(top, ("ls-files", "--stage", "-z", "--", *paths), environ).split("\0")
    return [match[1] for entry in entries if (match := _LINK.fullmatch(entry)) is not None]


def _states(top: str, environ: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """The mark and path of every submodule, those of submodules with them."""
    lines = _git(top, ("submodule", "status", "--recursive"), environ).splitlines()
    return [(match[1], match[2]) for line in lines if (match := _STATUS.fullmatch(line)) is not None]


def _may_fetch(path: str, states: Sequence[tuple[str, str]]) -> bool:
    """Whether something is missing at a path or below it, and nothing there is at a commit of a person's own."""
    marks = {mark for mark, at in states if at == path or at.startswith(f"{path}/")}
    return "-" in marks and not marks & {"+", "U"}


def _git(folder: str, words: Sequence[str], environ: Mapping[str, str] | None) -> str:
    """Return git's output, empty if it fails."""
    base = os.environ if environ is None else environ
    try:
        done = subprocess.run(
            [shutil.which("git") or "git", *_SAFE, "-C", folder, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            env={**base, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    if done.returncode or len(done.stdout) > MAX_ANSWER:
        return ""
    return done.stdout.decode("utf-8", "surrogateescape")
