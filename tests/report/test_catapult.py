"""Catapult's own importer reads what `stoker export` writes, without a warning."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from report.test_exports import CLANG, NVCC, compiler_build
from report.test_recorded import KILLED
from stoker.record.journal_reader import read_journal
from stoker.report.chrome import chrome_trace
from stoker.report.recorded import recorded
from stoker.report.time_traces import merged, time_trace
from support.browser import CHROMIUM, chromium

WEB_COMPONENTS = "webcomponents.js@0.7.24"
"""What the viewer takes from a CDN: the parts of browsers that it was written for."""

IMPORT = """
<pre id="answer"></pre>
<script>
const trace = JSON.stringify(JSON.parse(document.getElementById("trace").textContent));
const model = new tr.Model();
new tr.importer.Import(model).importTraces([trace]);
let slices = 0, counters = 0, instants = model.instantEvents.length;
for (const process of model.getAllProcesses()) {
  counters += Object.keys(process.counters).length;
  instants += process.instantEvents.length;
  for (const thread of Object.values(process.threads)) slices += thread.sliceGroup.length;
}
const warnings = model.importWarnings.map(warning => warning.message);
document.getElementById("answer").textContent = JSON.stringify({slices, counters, instants, warnings});
</script>
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (CHROMIUM and shutil.which("npm")), reason="wants chromium and npm"),
]


def imported(trace: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What Catapult makes of a trace."""
    viewer = resources.files(pytest.importorskip("viztracer")).joinpath("html/trace_viewer_full.html").read_text()
    subprocess.run(["npm", "pack", "--silent", WEB_COMPONENTS], cwd=folder, check=True, capture_output=True)
    subprocess.run(["tar", "xzf", next(folder.glob("*.tgz")).name], cwd=folder, check=True)
    components = (folder / "package/webcomponents.min.js").read_text()
    data = f'<script type="application/json" id="trace">{json.dumps(trace).replace("<", chr(92) + "u003c")}</script>'
    page = folder / "page.html"
    page.write_text(f"<script>{components}</script>\n{viewer}\n{data}\n{IMPORT}")
    done = chromium(folder, page, "--virtual-time-budget=60000", "--dump-dom")
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    text = html.unescape(answer[1]) if answer else ""
    assert text, done.stderr.decode()[-2000:]
    found: dict[str, Any] = json.loads(text)
    return found


def expected(trace: dict[str, Any]) -> dict[str, Any]:
    kinds = [event["ph"] for event in trace["traceEvents"]]
    return {"slices": kinds.count("X"), "instants": kinds.count("i"), "warnings": []}


def test_a_build_with_killed_jobs(tmp_path: Path) -> None:
    trace = chrome_trace(recorded(read_journal(KILLED)))
    found = imported(trace, tmp_path)
    assert found.pop("counters") == 3
    assert found == expected(trace)


def test_a_build_with_compilers_own_traces(tmp_path: Path) -> None:
    build = compiler_build(tmp_path, "</script><b>.o")
    traces = [one for data in (CLANG, NVCC) if (one := time_trace(build.jobs[0], data)) is not None]
    trace = chrome_trace(build, merged(build, iter(traces)))
    found = imported(trace, tmp_path)
    del found["counters"]
    assert found == expected(trace)
