"""Command lines: what changes the cost of a job, and how much of the machine it takes at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.command_traits import MAX_TARGETS, flags_of, lanes_of, targets_of, traits_of, width_of

GPP = "g++ -O2 -g -std=c++17 -DNDEBUG -Iinclude -isystem /usr/x -MD -MT a.o -MF a.o.d -Wall -o a.o -c a.cpp"


def digest(line: str) -> str:
    return flags_of([line.split()])


@pytest.mark.parametrize(
    "other",
    [
        "g++ -O2 -g -std=c++17 -DNDEBUG -I elsewhere -o b.o -c b.cpp",
        "/usr/local/bin/g++ -O2 -g -std=c++17 -DNDEBUG -c /tmp/pip-1/a.cpp -oa.o",
        "g++ -O2 -g -std=c++17 -DNDEBUG -Werror -Wno-unused -fdiagnostics-color=always -c a.cpp",
        "g++ -O2 -g -std=c++17 -DNDEBUG -ffile-prefix-map=/tmp/x=. -include /tmp/x/pch.h -c a.cpp",
    ],
)
def test_paths_outputs_warnings_and_colours_change_nothing(other: str) -> None:
    assert digest(other) == digest(GPP)


@pytest.mark.parametrize(
    "other",
    [
        GPP.replace("-O2", "-O3"),
        GPP.replace("-g ", ""),
        GPP.replace("c++17", "c++20"),
        GPP.replace("-DNDEBUG", "-DNDEBUG=0"),
        GPP.replace("-DNDEBUG", "-DDEBUG"),
        GPP.replace("g++", "clang++"),
        GPP + " -flto",
        GPP + " -march=native",
        GPP + " -fprofile-use=/tmp/profile",
    ],
)
def test_what_changes_the_cost_changes_the_digest(other: str) -> None:
    assert digest(other) != digest(GPP)


@pytest.mark.parametrize("spelling", ["-gencode arch=compute_80,code=sm_80", "-arch=sm_80", "-arch sm_80", "-t 4"])
def test_values_that_stand_apart_count(spelling: str) -> None:
    assert digest(f"nvcc -c a.cu {spelling}") != digest("nvcc -c a.cu")
    assert digest(f"nvcc -c a.cu {spelling.replace('80', '90').replace('4', '8')}") != digest(
        f"nvcc -c a.cu {spelling}"
    )


def test_definitions_count_but_not_commits_dates_and_texts() -> None:
    assert digest("cc -DBITS=64 -c a.c") != digest("cc -DBITS=32 -c a.c")
    assert digest("cc -D BITS=64 -c a.c") == digest("cc -DBITS=64 -c a.c")
    for first, second in (
        ('-DVERSION="2.9.1"', '-DVERSION="2.9.2"'),
        ("-DCOMMIT=4d21bee0123456789abcdef", "-DCOMMIT=518530a0123456789abcdef"),
        ("-DROOT=/tmp/a", "-DROOT=/tmp/b"),
    ):
        assert digest(f"cc {first} -c a.c") == digest(f"cc {second} -c a.c")
        assert digest(f"cc {first} -c a.c") != digest("cc -c a.c")


def test_linker_options_count_without_names_and_paths() -> None:
    assert digest("c++ -shared -Wl,-soname,liba.so -o liba.so a.o -lfoo") == digest("c++ -shared -o libb.so b.o c.o")
    assert digest("c++ -shared -Wl,--icf=all -o liba.so a.o") != digest("c++ -shared -o liba.so a.o")


def test_nothing_has_no_flags() -> None:
    assert flags_of([]) == flags_of([()]) == ""
    assert traits_of([]).width == 1.0


@pytest.mark.parametrize(
    ("options", "targets", "lanes"),
    [
        ("", 1, 1),
        ("-arch=sm_80 --threads 4", 1, 1),
        ("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90", 2, 1),
        ("-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 --threads 4", 2, 2),
        ("-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 -t4", 1, 1),
        ("--generate-code=arch=compute_80,code=[sm_80,sm_86] --generate-code arch=compute_90,code=sm_90 -t=2", 2, 2),
        ("-arch=all --threads 0", 12, 12),
        ("-arch all-major -t 2", 6, 2),
        ("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -t 4 -t 1", 2, 1),
    ],
)
def test_nvcc_works_for_as_many_gpus_as_it_generates_code_from(options: str, targets: int, lanes: int) -> None:
    words = ["/usr/local/cuda/bin/nvcc", *options.split(), "-c", "a.cu", "-o", "a.o"]
    assert (targets_of(words), lanes_of(words)) == (targets, lanes)
    assert width_of(words) == lanes


@pytest.mark.parametrize(
    ("line", "width"),
    [
        ("g++ -flto=8 -shared -o liba.so a.o", 8),
        ("g++ -flto=auto -o a a.o", math.inf),
        ("g++ -flto=jobserver -o a a.o", math.inf),
        ("clang++ -flto=thin -fuse-ld=lld -o a a.o", math.inf),
        ("clang++ -flto=thin -Wl,--thinlto-jobs=3 -o a a.o", 3),
        ("g++ -flto -o a a.o", 1),
        ("g++ -flto=0 -o a a.o", 1),
        ("g++ -flto=auto -O2 -c a.cpp", 1),
        ("g++ -o a a.o", 1),
        ("clang -x cuda -c a.cu", 1),
    ],
)
def test_a_link_with_lto_is_as_wide_as_it_says(line: str, width: float) -> None:
    assert width_of(line.split()) == width


def test_the_widest_of_several_commands_is_the_jobs_width() -> None:
    traits = traits_of([("ar", "qc", "liba.a", "a.o"), ("g++", "-flto=4", "-o", "a", "liba.a")], cached=True)
    assert (traits.width, traits.cached) == (4.0, True)
    assert traits.command == "ar qc liba.a a.o g++ -flto=4 -o a liba.a"


WORDS = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(["nvcc", "-gencode", "-t", "--threads", "-arch", "-D", "-flto=9", "-t999999999999", "-c"]),
        st.integers(0, 99).map(lambda n: f"-gencode=arch=compute_{n},code=sm_{n}"),
    ),
    max_size=60,
)


@given(WORDS)
def test_any_words_give_sane_traits(words: list[str]) -> None:
    traits = traits_of([words, ["nvcc", *words]])
    assert 1 <= traits.lanes <= traits.targets <= MAX_TARGETS
    assert traits.width >= 1
    assert len(traits.flags) in (0, 16)
