"""The doctor's results: checks with a verdict, the reason in numbers, and a command as the remedy. Pure values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]

OF_THE_TREE = ("file ", "submodules")
"""How the names of those checks begin that are about whether the sources are there."""

_GRAVEST_FIRST: dict[Status, int] = {"fail": 0, "warn": 1, "ok": 2}


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer. `fail` means that no build can succeed; `remedy` is a command, empty if ok."""

    name: str
    status: Status
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """All checks of one examination, gravest first, and what kind of build they were made for."""

    what: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """True when nothing fails."""
        return all(check.status != "fail" for check in self.checks)

    def count(self, status: Status) -> int:
        """Return how many checks ended so."""
        return sum(check.status == status for check in self.checks)


def examination(what: str, checks: Iterable[Check]) -> Examination:
    """Order the checks as a person wants to read them: where the folder is wrong, all else follows from that."""

    def place(check: Check) -> tuple[int, bool]:
        return _GRAVEST_FIRST[check.status], not check.name.startswith(OF_THE_TREE)

    return Examination(what, tuple(sorted(checks, key=place)))


def ok(name: str, why: str) -> Check:
    """Return a check that asks for nothing."""
    return Check(name, "ok", why)


def warn(name: str, why: str, remedy: str = "") -> Check:
    """Return a check: the build can succeed, but not as well, or not certainly."""
    return Check(name, "warn", why, remedy)


def fail(name: str, why: str, remedy: str = "") -> Check:
    """Return a check: the build cannot succeed."""
    return Check(name, "fail", why, remedy)


def to_json(examined: Examination) -> dict[str, object]:
    """Return the output of `stoker doctor --json`. A contract: keys may be added, never renamed."""
    return {
        "ok": examined.ok,
        "what": examined.what,
        "checks": [
            {"name": check.name, "status": check.status, "why": check.why, "remedy": check.remedy}
            for check in examined.checks
        ],
    }
