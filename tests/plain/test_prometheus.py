"""Metrics of a build as Prometheus's own parser reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from stoker.model.reduce import reduce_all
from stoker.model.status import status_of
from stoker.record.journal_reader import read_journal
from stoker.show.prometheus import METRICS, metrics
from support.program import Stoker

KILLED = Path(__file__).resolve().parents[1] / "model/recorded/killed-jobs.jsonl"


def read(text: str) -> dict[str, float]:
    return {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}


def test_the_figures_are_those_of_status() -> None:
    state = reduce_all(read_journal(KILLED))
    status, found = status_of(state, state.time), read(metrics([state], state.time))
    assert found["stoker_jobs_finished"] == status["progress"]["finished"]
    assert found["stoker_memory_build_peak_bytes"] == status["memory"]["build_peak"]
    assert found["stoker_build_state"] == 1
    assert "stoker_cache_hits" not in found  # no cache was at work
    assert set(found) <= {name for name, _ in METRICS.values()} | {"stoker_build_state"}


def test_a_name_from_a_build_breaks_no_line() -> None:
    state = replace(reduce_all(read_journal(KILLED)), name='x"} 1\nstoker_fake 2\\')
    assert "stoker_fake" not in read(metrics([state], state.time))


def test_a_textfile_is_replaced_whole(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("rule t\n  command = touch $out\nbuild a: t\n")
    build = stoker.detach("ninja")
    stoker.ended(build)
    target = tmp_path / "stoker.prom"
    done = stoker.run("status", build, "--prometheus", "-o", str(target))
    assert (done.returncode, done.stdout) == (0, b"")
    assert read(target.read_text())["stoker_build_exit_status"] == 0
    target.chmod(0o644)
    assert stoker.run("status", build, "--prometheus", "-o", str(target)).returncode == 0
    assert target.stat().st_mode & 0o777 == 0o644  # node_exporter is another user
    wrong = stoker.run("status", build, "-o", str(target))
    assert (wrong.returncode, wrong.stderr.count(b"\n")) == (2, 1)
