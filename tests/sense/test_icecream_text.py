"""What icecream's scheduler says, read; the lines are as icecream 1.4 writes them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker.sense.remote.icecream_text import MAX_HOSTS, MAX_JOBS, NAME_LIMIT, IcecreamHost, IcecreamJob, read_listing

LISTING = b"""\
 far (10.77.0.2:10245) [x86_64] speed=63.75 jobs=2/3 load=111
   11 COMP sub:near on:far /-O2/-Wall//w/f1.cpp
   12 WAIT sub:near on:far /w/a file.cpp
 near (10.77.0.1:10245) [x86_64] speed=0.00 jobs=0/1 load=1000
 new (10.77.0.3:10245) [x86_64] speed=0.00 jobs=1/8 load=5 busy installing since 3 s
   13 COMP sub:far on:new /w/f1.cpp
 mute (10.77.0.4:10245) [x86_64] speed=1.50 jobs=0/-4 load=0
 idle (10.77.0.5:10245) [aarch64] speed=1.50 jobs=0/0 load=0
"""


def test_hosts_have_their_places_and_say_why_they_get_no_job() -> None:
    assert read_listing(LISTING).hosts == (
        IcecreamHost("far", "10.77.0.2", 3, 2),
        IcecreamHost("near", "10.77.0.1", 1, 0, "too busy with its own work"),
        IcecreamHost("new", "10.77.0.3", 8, 1, "receives the compiler"),
        IcecreamHost("mute", "10.77.0.4", 4, 0, "does not answer the scheduler"),
        IcecreamHost("idle", "10.77.0.5", 0, 0, "takes no jobs"),
    )


def test_jobs_have_client_host_and_file() -> None:
    assert read_listing(LISTING).jobs == (
        IcecreamJob("near", "far", "/-O2/-Wall//w/f1.cpp", compiles=True),
        IcecreamJob("near", "far", "/w/a file.cpp", compiles=False),
        IcecreamJob("far", "new", "/w/f1.cpp", compiles=True),
    )


@pytest.mark.parametrize(
    "line",
    [
        b" far (10.77.0.2) [x86_64] speed=1 jobs=0/1 load=0",
        b" far (10.77.0.2:1) [x86_64] speed=1 jobs=0/99999999999999999999 load=0",
        b"   1 DONE sub:a on:b f.cpp",
        b"200-ICECC 1.4: 25s uptime, 2 hosts, 0 jobs in queue (40 total).",
        b"",
    ],
)
def test_what_is_neither_host_nor_job_is_left_out(line: bytes) -> None:
    assert read_listing(line) == ((), ())


def test_a_name_cannot_harm_a_terminal_and_a_figure_is_bounded() -> None:
    listing = read_listing(b" \x1b[2Jevil" + b"x" * 200 + b" (h:1) [x] speed=1 jobs=-5/999999999 load=0\n")
    host = listing.hosts[0]
    assert host.name.isprintable()
    assert len(host.name) <= NAME_LIMIT + 1
    assert (host.places, host.used) == (4096, 0)


def test_a_scheduler_that_lists_no_end_of_hosts_is_believed_up_to_a_bound() -> None:
    host = b" h (a:1) [x] speed=1 jobs=0/1 load=0\n"
    job = b"   1 COMP sub:a on:h f.cpp\n"
    listing = read_listing(host * (MAX_HOSTS + 5) + job * (MAX_JOBS + 5))
    assert (len(listing.hosts), len(listing.jobs)) == (MAX_HOSTS, MAX_JOBS)


lines = st.sampled_from(LISTING.splitlines())
pieces = st.lists(
    st.one_of(st.binary(max_size=40), lines, st.sampled_from([b"\n", b" (", b" on:", b" sub:"])), max_size=30
)


@given(pieces.map(b"".join))
@example(b" " * 70000)
@example(b" a (" * 20000)
@example(b"   1 COMP sub:" + b" on:" * 20000)
def test_whatever_comes_gives_names_that_are_clean_and_figures_within_bounds(answer: bytes) -> None:
    listing = read_listing(answer)
    for name in (*(h.name for h in listing.hosts), *(n for j in listing.jobs for n in (j.client, j.host))):
        assert name.isprintable()
        assert len(name) <= NAME_LIMIT + 1
    assert all(0 <= h.used <= 4096 and 0 <= h.places <= 4096 for h in listing.hosts)
