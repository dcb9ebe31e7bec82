"""What ccache and sccache say of their work. The samples are their own output: ccache 4.14.2, sccache 0.16.0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.sense.caches.cache_figures import MAX_LINE, Figures, StatsLog, ccache_figures, ccache_size, sccache_figures

CCACHE = """\
cache_miss\t7
cache_size_kibibyte\t1184
called_for_link\t2
called_for_preprocessing\t1
direct_cache_hit\t6
direct_cache_miss\t7
files_in_cache\t14
internal_error\t1
local_storage_hit\t7
max_cache_size_kibibyte\t5242880
preprocessed_cache_hit\t3
preprocessed_cache_miss\t7
stats_updated_timestamp\t1795288025
"""

SCCACHE = {
    "stats": {
        "compile_requests": 9,
        "requests_unsupported_compiler": 1,
        "requests_not_compile": 2,
        "requests_not_cacheable": 0,
        "requests_executed": 6,
        "cache_errors": {"counts": {"CUDA": 1}, "adv_counts": {}},
        "cache_hits": {"counts": {"C/C++": 4, "CUDA": 2}, "adv_counts": {"c++ [gcc]": 4}},
        "cache_misses": {"counts": {"C/C++": 6}, "adv_counts": {"c++ [gcc]": 6}},
        "cache_writes": 6,
    },
    "cache_location": 'Local disk: "/home/ann/.cache/sccache"',
    "cache_size": 916400,
    "max_cache_size": 10737418240,
    "version": "0.16.0",
}

HIT = "# /src/a b.cpp\ndirect_cache_hit\nlocal_storage_hit\nlocal_storage_read_hit\n"
MISS = "# /src/cache_miss\ncache_miss\ndirect_cache_miss\nlocal_storage_miss\npreprocessed_cache_miss\n"
LINK = "# \ncalled_for_link\n"


def test_ccaches_counters_are_sorted_as_it_does_itself() -> None:
    assert ccache_figures(CCACHE) == Figures(9, 7, 3, 1, 1184 * 1024, 5 * 2**30)


def test_an_older_ccache_tells_no_limit() -> None:
    old = "".join(line + "\n" for line in CCACHE.splitlines() if not line.startswith("max_"))
    found = ccache_figures(old)
    assert found is not None
    assert (found.hits, found.size_limit) == (9, None)


@pytest.mark.parametrize(
    ("text", "size"),
    [("5.0G", 5_000_000_000), ("5.0 GiB\n", 5 * 2**30), ("700.0 MiB", 700 * 2**20), ("25Gi", 25 * 2**30), ("0", None)],
)
def test_a_limit_is_read_in_ccaches_units(text: str, size: int | None) -> None:
    assert ccache_size(text) == size


def test_sccaches_languages_are_added_up() -> None:
    assert sccache_figures(json.dumps(SCCACHE)) == Figures(6, 6, 3, 1, 916400, 10 * 2**30)


def test_a_remote_cache_tells_no_size() -> None:
    remote = {**SCCACHE, "cache_size": None, "max_cache_size": None}
    assert sccache_figures(json.dumps(remote)) == Figures(6, 6, 3, 1)


@pytest.mark.parametrize(
    "text",
    ["", "ccache: error: no", "[]", '{"stats": 3}', '{"stats": {}}', '{"stats": {"cache_hits": ', "[" * 100_000],
    ids=len,
)
def test_what_is_none_of_it_is_no_figure(text: str) -> None:
    assert ccache_figures(text) is None
    assert sccache_figures(text) is None


@pytest.mark.parametrize("count", ['"4"', "-4", "true", "1e300", "99999999999999999999", "null", "{}"])
def test_hostile_counts_are_none(count: str) -> None:
    text = '{"stats": {"cache_hits": {"counts": {"C": %s}}}, "cache_size": %s}' % (count, count)  # noqa: UP031
    assert sccache_figures(text) == Figures()


def test_the_log_is_counted_as_it_grows_and_a_source_is_no_counter(tmp_path: Path) -> None:
    log = StatsLog(tmp_path / "log")
    assert not log.read(), "it is not there before the first call"
    with (tmp_path / "log").open("w") as file:
        file.write(HIT + MISS + "# /src/c.cpp\ndirect_cach")
        file.flush()
        assert log.read()
        assert log.figures.counts == (1, 1, 0, 0)
        file.write("e_hit\n" + LINK)
        file.flush()
        assert log.read()
        assert log.figures.counts == (2, 1, 1, 0)
        assert not log.read(), "nothing is new"


def test_of_a_log_that_others_wrote_to_before_only_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(HIT * 5)
    log = StatsLog(path, len(HIT) * 5)
    path.write_text(HIT * 5 + MISS)
    assert log.read()
    assert log.figures.counts == (0, 1, 0, 0)
    path.write_text(HIT)
    assert log.read(), "begun anew by somebody"
    assert log.figures.counts == (1, 1, 0, 0)


def test_a_line_without_end_costs_no_memory_and_no_later_figure(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * (MAX_LINE + 1))
    log = StatsLog(path)
    log.read()
    with path.open("a") as file:
        file.write("y" * MAX_LINE + "\n" + HIT)
    assert log.read()
    assert log.figures.counts == (1, 0, 0, 0)
