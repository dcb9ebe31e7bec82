"""ccache and sccache by what their own programs say."""

from __future__ import annotations

import json
import socket

from support.clinic import Clinic

CCACHE = """#!/bin/sh
case "$1" in
--version) echo "ccache version 4.7.5" ;;
--get-config) echo "{limit}" ;;
--print-stats) printf 'cache_miss\\t{misses}\\ncache_size_kibibyte\\t{size}\\n'
               printf 'direct_cache_hit\\t30\\npreprocessed_cache_hit\\t10\\nstats_updated_timestamp\\t1700000000\\n' ;;
esac
"""


def ccache(clinic: Clinic, limit: str = "5.0G", size: int = 1024 * 1024, misses: int = 60) -> None:
    clinic.program("ccache", CCACHE.format(limit=limit, size=size, misses=misses))


def test_size_and_hit_rate(clinic: Clinic) -> None:
    ccache(clinic)
    check = clinic.check("ccache")
    assert check.status == "ok"
    assert "4.7.5" in check.why
    assert "holds 1.0 GiB of 5.0 GiB" in check.why
    assert "40 % of 100 compilations" in check.why


def test_a_full_cache(clinic: Clinic) -> None:
    ccache(clinic, "5.0 GiB", size=5 * 1024 * 1024 - 100)
    check = clinic.check("ccache")
    assert check.status == "warn"
    assert check.remedy == "ccache -M 25G"


def test_a_cache_too_small_for_pytorch(clinic: Clinic) -> None:
    ccache(clinic)
    clinic.wants(knobs="pytorch")
    assert clinic.check("ccache").status == "warn"
    ccache(clinic, "50G")
    assert clinic.check("ccache").status == "ok"


def test_a_cache_without_a_limit_or_figures(clinic: Clinic) -> None:
    ccache(clinic, "0", misses=0)
    assert "of 0" not in clinic.check("ccache").why
    clinic.says("ccache", "ccache version 4.7.5")
    assert clinic.check("ccache").status == "ok"
    clinic.says("ccache", "ccache: error: failed to create /root/.ccache: Permission denied", status=1)
    check = clinic.check("ccache")
    assert check.status == "warn"
    assert "Permission denied" in check.why


def test_sccache_is_not_started_by_being_asked(clinic: Clinic) -> None:
    started = clinic.root / "started"
    stats = {"stats": {"cache_hits": {"counts": {"C/C++": 3}}, "cache_misses": {"counts": {"CUDA": 1}}}}
    answer = f"*) touch {started}; echo '{json.dumps(stats)}' ;;"
    text = f'#!/bin/sh\ncase "$1" in --version) echo sccache 0.8.2 ;; {answer} esac\n'
    clinic.program("sccache", text)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        clinic.env["SCCACHE_SERVER_PORT"] = str(listener.getsockname()[1])
        assert "does not run yet" in clinic.check("sccache").why
        assert not started.exists()
        listener.listen()
        assert "75 % of 4 compilations" in clinic.check("sccache").why


def test_none_is_worth_a_word_before_a_long_build_alone(clinic: Clinic) -> None:
    clinic.only("gcc", "g++", "make", "git")
    assert clinic.check("compiler cache").status == "ok"
    clinic.wants(knobs="pytorch")
    check = clinic.check("compiler cache")
    assert check.status == "warn"
    assert "ccache" in check.remedy
