"""The terminal through which the bench watches programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

ASKS = r"""
import os, time, tty
tty.setraw(0)
for piece in (b"\x1b[6", b"n"):
    os.write(1, piece)
    time.sleep(0.3)
os.write(1, b"answered" if os.read(0, 100).startswith(b"\x1b[") else b"no")
time.sleep(60)
"""

WATCHES = """
import sys, time
from bench.link_pty import Pty
with Pty([sys.executable, "-c", sys.argv[1]], (80, 24), rate=2**20) as pty:
    deadline = time.monotonic() + 20
    while not pty.top_line.strip() and time.monotonic() < deadline:
        pty.read()
        time.sleep(0.01)
    print(pty.top_line.strip())
"""


def test_a_question_that_arrives_in_two_reads_is_answered() -> None:
    """Unanswered, a screen waits for seconds before its next frame, and the link would seem slow."""
    argv = [sys.executable, "-c", WATCHES, ASKS]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "answered\n", done.stderr
