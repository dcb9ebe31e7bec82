"""The processes of a real job, asked of a real engine as the box about it asks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stoker.model.codec import decode
from stoker.model.job_tree import ProcessTree
from stoker.model.update import CommandRefused
from stoker.serve.connection import EngineClient
from support.program import Stoker, until, write_ninja


async def ask(socket: Path, jid: int) -> ProcessTree:
    client = await EngineClient.connect(socket, read_only=True)
    async with client:
        return decode(ProcessTree, await client.command("processes", {"jid": jid}))


@pytest.mark.long
def test_a_viewer_that_only_looks_hears_what_each_process_of_a_job_does(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "p", [("held", "sh -c 'sleep 601; :'; sleep 1")])
    build = stoker.detach("ninja", "-C", str(folder), jobs=1)
    started = until(lambda: next((e for e in stoker.events(build) if e["type"] == "job_started"), None), "a job")

    def tree() -> ProcessTree:
        return asyncio.run(ask(stoker.socket(build), started["jid"]))

    found: ProcessTree = until(lambda: t if len((t := tree()).rows) >= 3 else None, "all its processes")
    assert found.rows[0].pid == started["pid"]
    assert ("sleep", "601") in {(row.name, row.task) for row in found.rows}
    assert stoker.run("pause", "--now", build).returncode == 0
    until(lambda: {row.doing for row in tree().rows} == {"stopped"}, "its freeze")
    with pytest.raises(CommandRefused, match="that job has ended"):
        asyncio.run(ask(stoker.socket(build), 999))
