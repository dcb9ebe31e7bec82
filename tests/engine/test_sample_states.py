"""The state that a sample gives for a job: its own, unless the processes were read before the last decision."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stoker.engine.jobs.managed_job import Life
from stoker.engine.loop.build_loop import BuildLoop

SCANNED = 100.0


def sampled_state(life: Life, since: float, shown: str) -> str:
    """What a sample says of a job that has been in `life` since then, whose processes were in state `shown` when they
    were read at SCANNED."""
    job: Any = SimpleNamespace(jid=1, life=life, since=since, host="", counts=True)
    use: Any = SimpleNamespace(
        job=SimpleNamespace(key=(1, 1)), key=(1, 1), rss=0, cpu_percent=0.0, phase="sh", phase_pid=1, state=shown
    )
    loop: Any = BuildLoop.__new__(BuildLoop)
    loop._jobs = SimpleNamespace(by_key=lambda _key: job)
    loop._scanned = SCANNED
    (sample,) = loop._job_samples(SimpleNamespace(running=[use]))
    return str(sample.state)


@pytest.mark.parametrize(
    ("life", "since", "shown", "said"),
    [
        pytest.param(Life.RUNNING, SCANNED + 0.01, "frozen", "running", id="released after its processes were read"),
        pytest.param(Life.RUNNING, SCANNED - 1.0, "frozen", "frozen", id="somebody else has stopped it"),
        pytest.param(Life.FROZEN, SCANNED + 0.01, "frozen", "frozen", id="frozen by a decision"),
        pytest.param(Life.RUNNING, SCANNED - 1.0, "running", "running", id="it runs"),
    ],
)
def test_a_job_that_was_just_released_is_not_called_frozen(life: Life, since: float, shown: str, said: str) -> None:
    assert sampled_state(life, since, shown) == said
