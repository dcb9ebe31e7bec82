"""A build waits until its launcher, its supervisor and its engine have been loaded, one after the other: what none of
them needs by then is loaded later, or never.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

AT_SUPERVISOR = """
import json, os, subprocess, sys
from stoker.cli.entry import main

def start(*words, **options):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

subprocess.Popen = start
sys.argv = ["stoker", "run", "--plain", "--", sys.executable]
main()
"""

JOURNAL_AND_STATE = {"stoker.model.events", "stoker.model.state", "stoker.model.samples", "stoker.record.builds"}

ENGINE = """
import json, sys, threading
from stoker.engine.loop import engine, later

before = sorted(sys.modules)
later.load_later()
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
print(json.dumps([before, later.MODULES, sorted(sys.modules)]))
"""


def run(code: str, folder: Path) -> str:
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_RUNTIME_DIR": str(folder)}
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def test_a_plain_command_is_launched_without_what_reads_journals_profiles_and_samples(tmp_path: Path) -> None:
    loaded = set(json.loads(run(AT_SUPERVISOR, tmp_path)))
    assert "stoker.launch.start" in loaded
    assert loaded & JOURNAL_AND_STATE == set()
    assert loaded & {"asyncio", "hashlib", "psutil", "sqlite3", "yaml", "ctypes", "stoker.config.profiles"} == set()


def test_an_engine_loads_what_it_needs_later_once_its_build_may_start(tmp_path: Path) -> None:
    before, late, after = json.loads(run(ENGINE, tmp_path))
    assert set(before) & {"psutil", "statistics", "tomllib", "stoker.engine.aftermath.notification"} == set()
    assert set(before) & {*late, "stoker.sense.remote.distcc", "stoker.model.job_tree"} == set()
    assert set(late) <= set(after), "an upgrade of the package during the build must not mix two versions"
