"""Tools inside jobs get the spare slots and no more; ninja 1.13 is a real client of the pool."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stoker.act.jobserver_fifo import JobserverFifo, make_jobserver_fifo
from support.program import PYPI_NINJA, write_ninja


def test_what_is_taken_is_lent_until_it_is_given_back(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pool")
    pool = JobserverFifo(tmp_path / "pool")
    pool.offer(3)
    client = os.open(tmp_path / "pool", os.O_RDWR | os.O_NONBLOCK)
    assert os.read(client, 2) == b"++"
    assert pool.taken == 2
    pool.offer(0)
    with pytest.raises(BlockingIOError):
        os.read(client, 1)
    os.write(client, b"++")
    assert pool.taken == 0
    pool.offer(1)
    assert os.read(client, 9) == b"+"
    os.close(client)
    pool.close()


def test_tokens_that_were_out_when_an_engine_died_come_back_to_the_next(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pool")
    old = JobserverFifo(tmp_path / "pool")
    old.offer(2)
    client = os.open(tmp_path / "pool", os.O_RDWR | os.O_NONBLOCK)
    os.read(client, 1)
    old.close()
    new = JobserverFifo(tmp_path / "pool")
    os.write(client, b"+")
    assert new.taken == 0
    new.offer(0)
    with pytest.raises(BlockingIOError):
        os.read(client, 1)
    os.close(client)
    new.close()


@pytest.mark.parametrize(("spare", "most"), [(0, 1), (2, 3)])
def test_a_ninja_inside_a_job_runs_one_job_and_the_spare_ones(tmp_path: Path, spare: int, most: int) -> None:
    count = "n=$(ls -d run.* | wc -l); echo $n >> counts"
    edges = [(f"o{n}", f"mkdir run.{n}; sleep 0.2; {count}; rmdir run.{n}; touch o{n}") for n in range(8)]
    folder = write_ninja(tmp_path / "inner", edges)
    os.mkfifo(tmp_path / "pool")
    pool = JobserverFifo(tmp_path / "pool")
    pool.offer(spare)
    environment = {**os.environ, "MAKEFLAGS": f" -j9 --jobserver-auth=fifo:{tmp_path / 'pool'}"}
    subprocess.run([PYPI_NINJA, "-C", str(folder)], env=environment, check=True, capture_output=True)
    assert max(int(n) for n in (folder / "counts").read_text().split()) == most
    assert pool.taken == 0
    pool.close()


def _fake_make(folder: Path, version: str) -> dict[str, str]:
    folder.mkdir()
    (folder / "make").write_text(f"#!/bin/sh\necho 'GNU Make {version}'\n")
    (folder / "make").chmod(0o755)
    return {"PATH": str(folder)}


def test_a_make_that_would_die_of_a_fifo_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", _fake_make(tmp_path / "old", "4.3")["PATH"])
    assert make_jobserver_fifo(tmp_path / "a", 16, {}) == {}
    monkeypatch.setenv("PATH", _fake_make(tmp_path / "new", "4.4.1")["PATH"])
    assert make_jobserver_fifo(tmp_path / "b", 16, {"MAKEFLAGS": "-j4"}) == {}
    flags = make_jobserver_fifo(tmp_path / "b", 16, {})
    assert flags == {"MAKEFLAGS": f" -j16 --jobserver-auth=fifo:{tmp_path / 'b'}"}


@pytest.mark.parametrize("name", ["my home", "a\tb", "c$d", "e\\f"])
def test_a_folder_that_makeflags_cannot_name_gets_no_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PATH", _fake_make(tmp_path / "new", "4.4.1")["PATH"])
    (tmp_path / name).mkdir()
    assert make_jobserver_fifo(tmp_path / name / "jobserver", 16, {}) == {}
    assert list((tmp_path / name).iterdir()) == []
