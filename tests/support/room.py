"""A room with cgroup v2 for tests: pytest inside a user-mode Linux, as root or as a normal user with a delegated group.

Knows which tests are about memory and accounts, and nothing of what they test.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.uml import boot, missing

INSIDE = "STOKER_TESTS_IN_A_ROOM"
"""In the environment of what runs inside."""

PATIENCE = "STOKER_TESTS_PATIENCE"
"""Seconds that tests wait for what should happen (support.program), where it takes longer than elsewhere."""

PROJECT = Path(__file__).resolve().parents[2]

ROOM = ("tests/platform/room",)
MEMORY = (
    "tests/e2e/test_govern.py::test_what_dies_of_memory_under_plain_ninja_gets_through_untouched",
    "tests/e2e/test_govern.py::test_a_compiler_that_is_killed_from_outside_runs_again_alone",
    "tests/e2e/test_precheck.py::test_in_a_small_control_group_it_is_not_started",
    "tests/engine/test_recovery.py",
    "tests/doctor/test_machine.py::test_a_control_group_smaller_than_the_heaviest_remembered_job_fails",
    "tests/doctor/test_machine.py::test_without_a_known_job_a_small_group_is_a_warning",
)
ALL_OF_MEMORY = (
    "tests/e2e/test_govern.py::test_what_dies_of_memory_under_plain_ninja_gets_through_untouched",
    "tests/e2e/test_govern.py::test_what_the_first_build_taught_serves_the_second",
    "tests/e2e/test_govern.py::test_a_limit_that_sinks_while_the_build_runs_is_kept",
    "tests/e2e/test_govern.py::test_a_compiler_that_is_killed_from_outside_runs_again_alone",
    "tests/e2e/test_govern.py::test_a_compiler_that_is_killed_every_time_ends_the_build_with_the_truth",
    "tests/e2e/test_deaths.py",
    "tests/e2e/test_waits.py",
    "tests/e2e/test_ramdisk.py::test_what_dies_of_its_files_in_memory_under_plain_ninja_gets_through",
    "tests/e2e/test_precheck.py::test_in_a_small_control_group_it_is_not_started",
)
"""Every end-to-end test about memory: a quarter of an hour and more, so not among those of CI. Not the real errors of
test_govern: their first job waits for a second one, and one CPU may let only one run."""

KERNEL_LOG = ("tests/sense/test_oom.py",)
"""What only root may read, where the kernel's log is restricted."""

USER = "builder"
SECONDS = 900.0


def run_inside(
    user: str,
    tests: tuple[str, ...],
    results: Path,
    record: Callable[[str, object], None],
    seconds: float = SECONDS,
) -> None:
    """Run those tests in a room of their own as `user` ("" is root) and fail if one of them does."""
    if why := missing():
        pytest.skip(why)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--color=no",
        "-m",
        "not platform and not soak",
        *tests,
    ]
    ended = boot(
        command,
        results,
        user=user,
        readable=(PROJECT, Path(sys.prefix), Path(sys.base_prefix)),
        environment={
            INSIDE: "1",
            PATIENCE: "300",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": "/dev/shm/hypothesis",
            "PATH": os.environ["PATH"],
        },
        seconds=seconds,
    )
    summary = re.findall(r"^.*\b(?:passed|failed|error).* in [\d.]+s.*$", ended.console, re.MULTILINE)
    record("inside", summary[-1] if summary else "no end")
    assert ended.status == 0, ended.console
