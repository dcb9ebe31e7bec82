"""The variables that steer a build, and the contradictions among them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.doctor.check import Check
from stoker.doctor.facts import Environment
from stoker.doctor.judge_switches import OF_CUDA, PARTS, THROTTLES, judge_switches
from stoker.doctor.need import GIB, HeaviestJob, Knobs, Need
from stoker.doctor.switches import switch
from support.clinic import Clinic


def judge(values: dict[str, str], knobs: Knobs = "pytorch", memory: int = 64 * GIB) -> dict[str, Check]:
    need = Need(knobs=knobs, job=HeaviestJob("heavy.o", 6 * GIB, measured=True))
    found = judge_switches(Environment(values, {}, memory), need)
    return {check.name: check for check in found}


def test_nothing_set_is_nothing_to_say() -> None:
    assert {check.status for check in judge({}).values()} == {"ok"}


@pytest.mark.parametrize("name", ["MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL"])
def test_a_number_of_jobs_caps_what_is_governed(name: str) -> None:
    check = judge({name: "16"})[name]
    assert check.status == "warn"
    assert "96.0 GiB, and there are 64.0 GiB" in check.why
    assert check.remedy.startswith(f"unset {name}")
    assert "GiB" not in judge({name: "4"})[name].why


@pytest.mark.parametrize("value", ["all", "-3", "0", "", "２"])
def test_what_is_no_number_of_jobs(value: str) -> None:
    assert judge({"MAX_JOBS": value})["MAX_JOBS"].status == "fail"
    assert judge({"MAX_JOBS": value}, knobs="")["MAX_JOBS"].status == "warn"


def test_cuda_off_contradicts_what_only_cuda_knows() -> None:
    check = judge({"USE_CUDA": "0", "TORCH_CUDA_ARCH_LIST": "9.0"})["USE_CUDA"]
    assert check.status == "warn"
    assert "TORCH_CUDA_ARCH_LIST" in check.why
    for name in OF_CUDA:
        assert name in judge({"USE_CUDA": "OFF", name: "1"})["USE_CUDA"].why
    assert "USE_CUDA" not in judge({"USE_CUDA": "1", "TORCH_CUDA_ARCH_LIST": "9.0"})


def test_cuda_and_rocm_together_fail_where_both_are_there(clinic: Clinic) -> None:
    clinic.env |= {"USE_CUDA": "1", "USE_ROCM": "ON", "ROCM_PATH": str(clinic.root / "rocm")}
    assert clinic.check("USE_ROCM").status == "warn", "PyTorch does without what it does not find"
    (clinic.root / "rocm").mkdir()
    assert clinic.check("USE_ROCM").status == "fail"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CMAKE_GENERATOR", "Unix Makefiles"),
        ("CMAKE_GENERATOR", "Xcode"),
        ("CMAKE_BUILD_TYPE", "Fast"),
        ("CMAKE_BUILD_TYPE", "debug"),
        ("CMAKE_CUDA_ARCHITECTURES", "90"),
        ("CMAKE_INSTALL_PREFIX", "/opt"),
        ("USE_NINJA", "0"),
        ("BUILD_TEST", "1"),
        ("USE_MKLDNN", "yess"),
        ("NVCC_THREADS", "4"),
        ("TORCH_NVCC_FLAGS", "-Xfatbin -compress-all --threads 2"),
        ("NVCC_APPEND_FLAGS", "-t=0"),
    ],
)
def test_each_of_these_is_worth_a_word_and_has_a_remedy(name: str, value: str) -> None:
    check = judge({name: value})[name]
    assert check.status == "warn"
    assert check.remedy.split()[0] in ("export", "unset")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CMAKE_GENERATOR", "Ninja"),
        ("CMAKE_BUILD_TYPE", "release"),
        ("BUILD_TYPE", "wheel"),
        ("BUILD_ENVIRONMENT", "linux-jammy"),
        ("NVCC_THREADS", "1"),
        ("TORCH_NVCC_FLAGS", "-Xfatbin -compress-all"),
        ("USE_MKLDNN", "0"),
    ],
)
def test_and_these_are_not(name: str, value: str) -> None:
    assert name not in judge({name: value})


def test_two_build_types_at_once() -> None:
    assert judge({"DEBUG": "1", "CMAKE_BUILD_TYPE": "Release"})["DEBUG"].status == "warn"
    assert "DEBUG" not in judge({"DEBUG": "1", "CMAKE_BUILD_TYPE": "Debug"})


def test_the_tests_that_setup_builds_unless_asked_otherwise(clinic: Clinic) -> None:
    clinic.wants(knobs="pytorch")
    assert all(check.name != "BUILD_TEST" for check in clinic.examine().checks), "CMake leaves them out by itself"
    clinic.file("setup.py", "#   BUILD_TEST=0\n#     disables the test build\n")
    assert clinic.check("BUILD_TEST").status == "warn"
    clinic.env["BUILD_TEST"] = "0"
    assert all(check.name != "BUILD_TEST" for check in clinic.examine().checks)


def test_what_is_pytorchs_own_is_nothing_to_others() -> None:
    assert "BUILD_TEST" not in judge({"BUILD_TEST": "1"}, knobs="")


def test_a_compiler_launcher_that_is_not_there_fails(clinic: Clinic) -> None:
    clinic.env["CMAKE_CXX_COMPILER_LAUNCHER"] = "no-such-cache;--flag"
    assert clinic.check("CMAKE_CXX_COMPILER_LAUNCHER").status == "warn", "nothing here reads it"
    clinic.file("CMakeLists.txt", "project(x)\n")
    check = clinic.check("CMAKE_CXX_COMPILER_LAUNCHER")
    assert check.status == "fail"
    assert check.remedy == "unset CMAKE_CXX_COMPILER_LAUNCHER"
    clinic.says("no-such-cache", "there it is")
    check = clinic.check("compiler launchers")
    assert (check.status, check.why) == ("ok", "C none, C++ no-such-cache;--flag, CUDA none")
    clinic.wants(knobs="pytorch", cuda="may")
    check = clinic.check("compiler launchers")
    assert check.status == "warn"
    assert check.remedy == "export CMAKE_CUDA_COMPILER_LAUNCHER='no-such-cache;--flag'"


def test_switches_that_mean_nothing_beside_others() -> None:
    for name, of in PARTS.items():
        check = judge({name: "1", of: "OFF"})[name]
        assert check.status == "warn"
        assert of in check.why
        assert name not in judge({name: "1", of: "ON"})
        assert name not in judge({name: "0", of: "OFF"})
    assert judge({"USE_CUDNN": "0"})["USE_CUDNN"].status == "warn"
    assert "USE_CUDNN" not in judge({"USE_CUDNN": "0", "USE_CUDA": "0"})


@pytest.mark.parametrize("name", THROTTLES)
def test_pytorchs_own_limits_on_attention_kernels(clinic: Clinic, name: str) -> None:
    clinic.wants(knobs="pytorch", cuda="may")
    clinic.env[name] = "2"
    assert "this tree does not read it" in clinic.check(name).why
    clinic.file(THROTTLES[name][0], f"if(DEFINED ENV{{{name}}})")
    check = clinic.check(name)
    assert check.status == "warn"
    assert "'2' holds attention kernels back by number" in check.why
    assert check.remedy == f"unset {name}"


WORDS = ["1", "0", "ON", "off", "Yes", "no", "TRUE", "false", "y", "N", "IGNORE", "notfound", "x-NOTFOUND", "2", "0.0"]
WORDS += ["-1", "1.5", "yess", "none", "disabled", "00", "NOTFOUND", "x-notfound", " 0", "f"]


def test_a_word_means_what_cmake_takes_it_for(tmp_path: Path) -> None:
    """CMake itself is asked, as PyTorch asks it: a cache entry, then if(NAME)."""
    script = tmp_path / "ask.cmake"
    lines = [
        f'set(V{n} "{word}")\nif(V{n})\nmessage("on")\nelse()\nmessage("off")\nendif()' for n, word in enumerate(WORDS)
    ]
    script.write_text("\n".join(lines))
    reported = subprocess.run(["cmake", "-P", str(script)], capture_output=True, check=True, text=True).stderr.split()
    for word, meaning in zip(WORDS, reported, strict=True):
        assert switch(word) == (meaning == "on"), word


@given(
    st.dictionaries(st.sampled_from(["USE_CUDA", "MAX_JOBS", "CMAKE_BUILD_TYPE", "USE_X", "NVCC_THREADS"]), st.text())
)
def test_no_value_breaks_the_judge(values: dict[str, str]) -> None:
    for check in judge(values).values():
        assert check.why
