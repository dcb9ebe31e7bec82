"""A build of a normal user: what it may not do costs it nothing, and what it may do is done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.burn import burns, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.procs import below
from support.program import PYPI_NINJA, until
from support.somebody import UNPRIVILEGED, own

pytestmark = pytest.mark.timeout(600)

LIMIT = 500 * MIB


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Grouped]:
    """Somebody's own stoker in a group that is not theirs: where root runs this, somebody else's."""
    with MemoryGroup(LIMIT) as group:
        if os.getuid() != 0:
            made = Grouped(tmp_path, group)
            for path in (group.folder, *group.folder.iterdir()):
                path.chmod(path.stat().st_mode & ~0o222 | (0o200 if path.name == "cgroup.procs" else 0))
            yield made
        else:
            home = Path(tempfile.mkdtemp(prefix="somebody-"))
            made = Grouped(home, group)
            made.prefix = UNPRIVILEGED
            made.env["HOME"] = str(home)
            own(home)
            own(made.runtime)
            yield made
        made.end_all()
        if made.root != tmp_path:
            shutil.rmtree(made.root)
        shutil.rmtree(made.runtime, ignore_errors=True)


def theirs(folder: Path) -> Path:
    """The folder, given to whoever builds in it."""
    return own(folder) if os.getuid() == 0 else folder


def at_work(stoker: Grouped) -> set[int]:
    """The scores of all processes of jobs that are not held."""
    return scores([process.pid for job in stoker.going() for process in job])


def scores(pids: list[int]) -> set[int]:
    return {int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in pids}


def test_a_build_in_a_group_that_one_may_not_change_is_governed_by_its_limit(stoker: Grouped) -> None:
    folder = theirs(write_burns(stoker.root / "p", burns(6, 0.3, mib=80)))
    status = stoker.built(PYPI_NINJA, "-C", str(folder), "-j8")
    assert (status["state"], status["exit_code"], stoker.group.kills) == ("done", 0, 0), status
    assert status["memory"]["budget"] == LIMIT
    assert not (stoker.folder(status["id"]) / "engine.log").read_text()


@pytest.mark.parametrize("inherited", [0, 700])
def test_jobs_are_offered_to_the_kernel_and_the_supervisor_is_not(stoker: Grouped, inherited: int) -> None:
    """Nobody but root may lower a score again, and what a service manager has raised stays raised."""
    folder = theirs(write_burns(stoker.root / "p", burns(4, 600)))
    stoker.prefix = ["sh", "-c", f'echo {inherited} > /proc/self/oom_score_adj && exec "$@"', "sh", *stoker.prefix]
    build = stoker.detach(PYPI_NINJA, "-C", str(folder), jobs=2)
    until(lambda: stoker.going() and stoker.held(), "jobs at work and held ones")
    until(lambda: at_work(stoker) == {max(500, inherited)}, "their scores")
    supervisor = stoker.supervisor(build)
    own = [supervisor["supervisor_pid"], stoker.engine_pid(build), *(p.pid for p in stoker.ninjas())]
    assert scores(own) == {inherited}
    assert stoker.run("pause", "--now", build).returncode == 0
    until(lambda: not stoker.going(), "frozen jobs")
    assert stoker.run("stop", "--force", build).returncode == 0
    assert stoker.over(build)["state"] == "stopped"
    assert not below([supervisor["supervisor_pid"]])


def test_the_doctor_tells_a_normal_user_the_limit_and_who_dies_at_it(stoker: Grouped) -> None:
    oom_group = stoker.group.folder / "memory.oom.group"
    oom_group.chmod(0o644)
    oom_group.write_text("1")
    command = stoker.group.wrap(stoker.argv("doctor", "--json"))
    result = subprocess.run(command, cwd=stoker.root, env=stoker.env, capture_output=True, check=False)
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["memory limit"]["status"] == "warn", checks
    assert checks["memory limit"]["why"].startswith("500 MiB for ")
    assert str(stoker.group.folder) in checks["memory.oom.group"]["why"], checks
