"""Stands in for a keeper that was killed, as far as that can be done. Stdlib only; `keeper.py FOLDER --guard PID`.

Restarts the engine (PID, which started the guard; 0 where there was none left to do so) when it dies, and keeps the
level meanwhile, until the build has ended. It is not the build's parent, so it learns no exit status and ends nothing.

Files in FOLDER: reads spec.json and keeper.json.
"""

import json
import os
import signal
import time

from stoker.act.minder import Minder
from stoker.act.tree import descendants, start_ticks, that_name

POLL_SECONDS = 1.0
"""How often the guard looks whether the build and the engine live; nobody sends it a signal."""


class Guard:
    """One build without a keeper."""

    def __init__(self, folder: str, engine_pid: int) -> None:
        self.folder = folder
        with open(os.path.join(folder, "spec.json"), encoding="utf-8", errors="surrogateescape") as file:
            spec = json.load(file)
        with open(os.path.join(folder, "keeper.json"), "rb") as file:
            keeper = json.load(file)
        self.build_pid = int(keeper["build_pid"])
        self.build_start = int(keeper["build_start"])
        self.minder = Minder(folder, spec["engine"], self.tree)
        self.minder.adopt(engine_pid)

    def run(self) -> None:
        """Until the build and the engine's last words are over. Of two guards the one called first stays."""
        if self.has_elder():
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while self.build_lives():
            time.sleep(min(POLL_SECONDS, self.minder.patience()))
            if self.minder.reap() is not None:
                self.minder.ended()
            self.minder.look()
        self.minder.set_all_going()
        self.minder.await_last_words()

    def has_elder(self) -> bool:
        """Whether there is a guard that was called before this one."""
        guards = [pid for pid, words in that_name(os.fsencode(self.folder)).items() if b"--guard" in words]
        return min((start_ticks(pid) or 0, pid) for pid in [*guards, os.getpid()])[1] != os.getpid()

    def build_lives(self) -> bool:
        """Whether the command that the keeper started is still there."""
        return start_ticks(self.build_pid) == self.build_start

    def tree(self) -> list[int]:
        """The command and all below it; the engine is elsewhere."""
        return [self.build_pid, *descendants(self.build_pid)] if self.build_lives() else []
