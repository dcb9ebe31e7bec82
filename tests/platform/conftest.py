"""What runs under a kernel of its own is collected only there (support.room)."""

from __future__ import annotations

import os

import pytest

from support.room import INSIDE

collect_ignore = [] if os.environ.get(INSIDE) else ["room"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests each room ran: `1 passed` alone does not tell."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid}: {name}: {value}")
