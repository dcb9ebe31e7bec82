"""The one command for figures: it knows its benches, has a place for each on the page, and goes on when one fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAKE = """
import sys
from bench.catalogue import Bench
import bench.__main__ as command
chosen = [
    Bench("no_such_module", "fails at once", (1, 1), timed=False),
    Bench("chaos", "cannot run here", (1, 1), timed=False, missing=lambda: "it needs a furnace"),
    Bench("simulate", "a small one", (1, 1), {words}, timed=False),
]
sys.exit(command.run_all(chosen, command.Path(sys.argv[1]), quick=True, write=False))
"""

SMALL = ("--builds", "flash-attn", "--orders", "row", "--cores", "4", "--ram", "16", "--jobs", "30")


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_bench_is_listed_and_has_its_module_and_its_place_on_the_page() -> None:
    done = _run("-m", "bench", "list")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    page = (ROOT / "bench/README.md").read_text()
    assert {"squeeze", "scale", "link", "chaos"} <= set(names)
    for name in names:
        assert (ROOT / f"bench/{name}.py").exists()
        assert page.count(f"<!-- {name} -->") == page.count(f"<!-- /{name} -->") == 1


def test_an_unknown_bench_is_named() -> None:
    done = _run("-m", "bench", "nonsense")
    assert done.returncode == 2
    assert "no bench nonsense; there are squeeze" in done.stderr


@pytest.mark.long
def test_one_that_fails_stops_no_other_and_is_told_at_the_end(tmp_path: Path) -> None:
    done = _run("-c", FAKE.format(words=SMALL), str(tmp_path))
    assert done.returncode == 1
    ends = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[-4:-1]}
    assert ends == {"no_such_module": "FAILED", "chaos": "left", "simulate": "done,"}
    told = json.loads((tmp_path / "simulate.json").read_text())
    assert {"bench", "machine", "versions", "date", "load", "figures", "summary", "text"} <= set(told)
    assert any(figure["policy"] == "stoker noisy" and figure["kills"] == 0 for figure in told["figures"])
    page = (tmp_path / "README.md").read_text()
    assert "| 16 GiB, 4 |" in page
    assert (tmp_path / "plots/simulate-flash-attn.svg").read_text().startswith("<svg")
