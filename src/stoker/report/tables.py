"""The jobs of a recorded build as rows, for spreadsheets and programs. Pure; unaware of files.

Times are seconds since the build's start, sizes bytes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

from stoker.model.text import clean
from stoker.report.job_records import JobRecord
from stoker.report.recorded import RecordedBuild

FORMULA = ("=", "+", "-", "@")
"""How a cell begins that a spreadsheet would calculate (OWASP, CSV injection): a file's name is from a build."""


def job_row(build: RecordedBuild, job: JobRecord) -> dict[str, Any]:
    """Return what is known of one job: a contract with scripts, to which keys may be added."""
    return {
        "jid": job.jid,
        "output": clean(job.output),
        "tool": job.tool,
        "class": clean(job.prior),
        "outcome": job.fate,
        "killed_by": job.killed_by or None,
        "born": _since(build, job.born),
        "began": None if job.began is None else _since(build, job.began),
        "ended": _since(build, job.ended),
        "seconds": round(job.seconds, 3),
        "waited": round(job.waiting, 3),
        "frozen": round(sum(b - a for a, b in job.stops), 3),
        "cpu_seconds": None if job.cpu is None else round(job.cpu, 3),
        "peak_bytes": job.peak,
        "limit_bytes": job.limit,
        "scheduler": job.sid,
    }


def _since(build: RecordedBuild, time: float) -> float:
    return round(max(0.0, min(time, build.ended) - build.started), 3)


def jsonl(build: RecordedBuild) -> Iterator[str]:
    """Yield one JSON object a job and line, with its memory: [seconds since its beginning, bytes, pass]."""
    for job in build.jobs:
        start = job.began if job.began is not None else job.born
        memory = [[round(p.time - start, 3), p.rss, clean(p.phase)] for p in job.points]
        yield json.dumps({**job_row(build, job), "memory": memory}, separators=(",", ":")) + "\n"


COLUMNS = (
    *("jid", "output", "tool", "class", "outcome", "killed_by", "born", "began", "ended", "seconds", "waited"),
    *("frozen", "cpu_seconds", "peak_bytes", "limit_bytes", "scheduler"),
)
"""Keys of `job_row`, in the order of the columns."""


def table(build: RecordedBuild) -> Iterator[str]:
    """Yield a head and one line a job, as CSV (RFC 4180)."""
    cells = StringIO()
    writer = csv.writer(cells)
    writer.writerow(COLUMNS)
    for job in build.jobs:
        row = job_row(build, job)
        writer.writerow([_cell(row[name]) for name in COLUMNS])
        yield cells.getvalue()
        cells.seek(0)
        cells.truncate()
    yield cells.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(FORMULA):
        return "'" + value
    return "" if value is None else value
