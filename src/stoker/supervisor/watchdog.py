"""Replaces a killed supervisor, as far as that is possible: `supervisor.py FOLDER --watchdog PID`.

Restarts the engine (PID, which started the watchdog; 0 if no engine was left to do so) when it dies, and maintains the
level meanwhile, until the build has ended. It is not the build's parent, so it learns no exit status and ends nothing.

Files in FOLDER: reads spec.json and supervisor.json.
"""

import os
import signal
import time

from stoker.act.tree import descendants, that_name
from stoker.contract.process import key_of, lives
from stoker.contract.spec_file import load_spec
from stoker.contract.strict_json import load
from stoker.contract.supervisor_files import SupervisorRecord
from stoker.supervisor.engine_runner import EngineRunner

POLL_SECONDS = 1.0
"""How often the watchdog looks whether the build and the engine live; nobody sends it a signal."""


class Watchdog:
    """One build without a supervisor."""

    def __init__(self, folder: str, engine_pid: int) -> None:
        self.folder = folder
        self.build = load(SupervisorRecord, os.path.join(folder, "supervisor.json")).build
        self.engine = EngineRunner(folder, load_spec(folder).engine, self.tree)
        self.engine.adopt(engine_pid)

    def run(self) -> None:
        """Run until the build and the engine's last events are over. Of two watchdogs the one started first stays."""
        if self.has_elder():
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while self.build_lives():
            time.sleep(min(POLL_SECONDS, self.engine.patience()))
            if self.engine.reap() is not None:
                self.engine.ended()
            self.engine.tick()
        self.engine.set_all_going()
        self.engine.await_last_words()

    def has_elder(self) -> bool:
        """Say whether there is a watchdog that was started before this one."""
        watchdogs = [pid for pid, words in that_name(os.fsencode(self.folder)).items() if b"--watchdog" in words]
        return min((start, pid) for pid, start in map(key_of, [*watchdogs, os.getpid()]))[1] != os.getpid()

    def build_lives(self) -> bool:
        """Say whether the command that the supervisor started still exists."""
        return lives(self.build)

    def tree(self) -> list[int]:
        """Return the command and all its descendants; the engine is elsewhere."""
        return [self.build[0], *descendants(self.build[0])] if self.build_lives() else []
