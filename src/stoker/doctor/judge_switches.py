"""Judges the environment variables that steer a build, and names those that contradict each other. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from shlex import quote

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import Environment
from stoker.doctor.need import Need
from stoker.doctor.switches import is_word, switch
from stoker.model.units import format_bytes

JOB_COUNTS = ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")

BUILD_TYPES = ("Debug", "Release", "RelWithDebInfo", "MinSizeRel")
GENERATORS = ("Ninja", "Unix Makefiles", "Ninja Multi-Config")
"""Of those that CMake has on Linux, the ones that stoker governs."""

OF_CUDA = (
    "USE_CUDNN", "USE_NCCL", "USE_SYSTEM_NCCL", "USE_FLASH_ATTENTION", "USE_MEM_EFF_ATTENTION", "USE_CUSPARSELT",
    "USE_CUFILE", "USE_NVSHMEM", "USE_CUDSS",
)  # fmt: skip
"""PyTorch's options that mean nothing without USE_CUDA (its CMakeLists.txt)."""

LAUNCHERS: Mapping[str, str] = {
    title: f"CMAKE_{language}_COMPILER_LAUNCHER" for title, language in (("C", "C"), ("C++", "CXX"), ("CUDA", "CUDA"))
}
"""Where CMake learns of a compiler cache when it configures (cmake-env-variables(7))."""

PARTS: Mapping[str, str] = {
    "USE_GLOO": "USE_DISTRIBUTED", "USE_MPI": "USE_DISTRIBUTED", "USE_TENSORPIPE": "USE_DISTRIBUTED",
    "USE_UCC": "USE_DISTRIBUTED", "USE_STATIC_CUDNN": "USE_CUDNN", "USE_SYSTEM_NCCL": "USE_NCCL",
    "USE_STATIC_NCCL": "USE_NCCL", "USE_SYSTEM_UCC": "USE_UCC", "USE_MKLDNN_CBLAS": "USE_MKLDNN",
}  # fmt: skip
"""PyTorch's options that mean nothing without another one (cmake_dependent_option in its CMakeLists.txt)."""

_NINJA_STEP = "tools/build_pytorch_libs.py"
_ATEN = "aten/src/ATen/CMakeLists.txt"

THROTTLES: Mapping[str, tuple[str, ...]] = {
    "FLASH_ATTENTION_MAX_JOBS": (_ATEN, "CMakeLists.txt", "pyproject.toml"),
    "FA_MAX_JOBS": (_ATEN, "CMakeLists.txt"),
    "BUILD_CUSTOM_STEP": (_NINJA_STEP,),
}
"""PyTorch's own limits on its attention kernels, and the files of the tree that would read them: a job pool (its pull
requests 192305 and 162253), and before that a ninja of its own ahead of the build (issue 190663)."""

_SWITCH = re.compile(r"(USE|BUILD|WITH)_[A-Z0-9_]+", re.ASCII)
_WORDY = frozenset({"BUILD_TYPE", "BUILD_ENVIRONMENT", "BUILD_CUSTOM_STEP", "BUILD_NUMBER", "BUILD_ID", "BUILD_URL"})
"""Variables that begin like a switch and hold words."""

_THREADS = re.compile(r"(?:--threads|-t)[ =](\d{1,4})\b", re.ASCII)
_NVCC_FLAGS = ("TORCH_NVCC_FLAGS", "CUDAFLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


def judge_switches(environment: Environment, need: Need) -> Iterator[Check]:
    """Report everything that is worth a word; one line where there is nothing."""
    checks = [
        *_job_counts(environment, need),
        *_generator(environment.values, need),
        *_build_type(environment.values, need),
        *_words(environment.values, need),
        *_cuda_off(environment),
        *_pytorch(environment, need),
        *_contradictions(environment.values, need),
        *_throttles(environment, need),
        *_threads(environment.values, need),
        *_launchers(environment, need),
    ]
    yield from checks
    if not checks:
        yield ok("switches", "no variable stands in the build's way")


def _job_counts(environment: Environment, need: Need) -> Iterator[Check]:
    for name in JOB_COUNTS:
        value = environment.values.get(name)
        if value is None:
            continue
        if not (value.isascii() and value.isdecimal() and int(value) > 0):
            judge = fail if need.knobs == "pytorch" else warn
            yield judge(name, f"{value!r} is not a number of jobs", f"unset {name}")
        else:
            why = f"{value}: it caps what stoker governs by memory{_worst_case(int(value), environment, need)}"
            yield warn(name, why, f"unset {name}  # stoker run -j {value} caps as well, and can be changed")


def _worst_case(jobs: int, environment: Environment, need: Need) -> str:
    if need.job is None or not environment.memory or jobs * need.job.bytes <= environment.memory:
        return ""
    most, there = format_bytes(jobs * need.job.bytes), format_bytes(environment.memory)
    return f"; ungoverned, {jobs} of the heaviest jobs would take {most}, and there are {there}"


def _generator(values: Mapping[str, str], need: Need) -> Iterator[Check]:
    name = "CMAKE_GENERATOR"
    value = values.get(name, "")
    if value and value not in GENERATORS:
        yield warn(name, f"{value!r}: stoker governs Ninja and Unix Makefiles", f"export {name}=Ninja")
    elif value == "Unix Makefiles":
        yield warn(name, "make keeps no log and no plan: progress and prediction are worse", f"export {name}=Ninja")
    if switch(values.get("USE_NINJA")) is False and need.knobs:
        yield warn("USE_NINJA", "off: make keeps no log and no plan", "unset USE_NINJA")


def _build_type(values: Mapping[str, str], need: Need) -> Iterator[Check]:
    name = "CMAKE_BUILD_TYPE"
    value = values.get(name, "")
    if value and value.lower() not in {kind.lower() for kind in BUILD_TYPES}:
        yield warn(name, f"{value!r} is none of CMake's: {', '.join(BUILD_TYPES)}", f"export {name}=Release")
    elif value.lower() == "debug":
        yield warn(
            name, "Debug: objects are many times larger, and links want as much memory", f"export {name}=Release"
        )
    wanted = [kind for kind in ("DEBUG", "REL_WITH_DEB_INFO") if need.knobs == "pytorch" and switch(values.get(kind))]
    kinds = {"DEBUG": "debug", "REL_WITH_DEB_INFO": "relwithdebinfo"}
    for other in wanted:
        if value and value.lower() != kinds[other]:
            yield warn(other, f"it is on, but {name} is {value}; one of them is ignored", f"unset {other}")


def _words(values: Mapping[str, str], need: Need) -> Iterator[Check]:
    """Warn of switches with a word that CMake takes for on, whatever it says."""
    if need.knobs != "pytorch":
        return
    for name, value in sorted(values.items()):
        if _SWITCH.fullmatch(name) and name not in _WORDY and not is_word(value):
            yield warn(name, f"{value!r} is neither on nor off; CMake takes it for on", f"export {name}=0")


def _cuda_off(environment: Environment) -> Iterator[Check]:
    values = environment.values
    cuda = switch(values.get("USE_CUDA"))
    if cuda is False:
        listed = values.get("TORCH_CUDA_ARCH_LIST", "")
        if listed.strip():
            why = f"off, but TORCH_CUDA_ARCH_LIST is {listed!r}: one of them is not meant"
            yield warn("USE_CUDA", why, "unset USE_CUDA  # or: unset TORCH_CUDA_ARCH_LIST")
        on = [name for name in OF_CUDA if switch(values.get(name))]
        if on:
            yield warn("USE_CUDA", f"off, but {', '.join(on)} on, which means nothing then", f"unset {' '.join(on)}")
    if cuda and switch(values.get("USE_ROCM")):
        # Where PyTorch's cmake/Dependencies.cmake finds both, it ends: "Please turn off one of them."
        judge = fail if environment.rocm else warn
        yield judge("USE_ROCM", "on together with USE_CUDA: a build is for one of the two", "unset USE_ROCM")


def _pytorch(environment: Environment, need: Need) -> Iterator[Check]:
    values = environment.values
    if need.knobs != "pytorch":
        return
    if values.get("CMAKE_CUDA_ARCHITECTURES"):
        why = f"{values['CMAKE_CUDA_ARCHITECTURES']!r} is ignored; PyTorch reads TORCH_CUDA_ARCH_LIST alone"
        yield warn("CMAKE_CUDA_ARCHITECTURES", why, "unset CMAKE_CUDA_ARCHITECTURES")
    if values.get("CMAKE_INSTALL_PREFIX"):
        why = f"{values['CMAKE_INSTALL_PREFIX']!r}: the build installs into its own folder and needs it unset"
        yield warn("CMAKE_INSTALL_PREFIX", why, "unset CMAKE_INSTALL_PREFIX")
    tests = switch(values.get("BUILD_TEST"))
    if tests or (tests is None and environment.tests):
        yield warn("BUILD_TEST", "not off: hundreds of test programs are built and linked too", "export BUILD_TEST=0")


def _contradictions(values: Mapping[str, str], need: Need) -> Iterator[Check]:
    """Warn of switches that mean nothing, or not what they say, beside others."""
    if need.knobs != "pytorch":
        return
    for name, of in PARTS.items():
        if switch(values.get(name)) and switch(values.get(of)) is False:
            yield warn(name, f"on, which means nothing while {of} is off", f"unset {name}  # or: unset {of}")
    if switch(values.get("USE_CUDA")) is not False and switch(values.get("USE_CUDNN")) is False:
        why = "off: torch.backends.cudnn is missing from what is built, and convolutions are slow"
        yield warn("USE_CUDNN", why, "unset USE_CUDNN")


def _throttles(environment: Environment, need: Need) -> Iterator[Check]:
    """Judge PyTorch's own limits on attention kernels: they go by number, and stoker by memory."""
    if need.knobs != "pytorch" or need.cuda == "no":
        return
    for name, read in environment.throttles.items():
        value = environment.values[name]
        if not read:
            yield warn(name, f"{value!r} does nothing: this tree does not read it", f"unset {name}")
        else:
            why = f"{value!r} holds attention kernels back by number, whatever is free; stoker does it by memory"
            yield warn(name, why, f"unset {name}")


def _threads(values: Mapping[str, str], need: Need) -> Iterator[Check]:
    """Warn of `nvcc --threads`, which multiplies a job's memory: 1.1 GB became 6.4 GB with six threads."""
    if need.cuda == "no":
        return
    counts = {name: int(n) for name in _NVCC_FLAGS for n in _THREADS.findall(values.get(name, ""))}
    if (own := values.get("NVCC_THREADS", "")) and own.isascii() and own.isdecimal():
        counts["NVCC_THREADS"] = int(own)
    for name, threads in counts.items():
        if threads != 1:
            times = f"up to {threads} times" if threads else "many times"
            yield warn(name, f"nvcc with {threads} threads: a job may take {times} the memory", f"unset {name}")


def _launchers(environment: Environment, need: Need) -> Iterator[Check]:
    """Judge compiler launchers: they must exist, and go before all compilers."""
    for name, there in environment.launchers.items():
        if not there:
            judge = fail if environment.configures else warn
            why = f"{environment.values[name]!r} is not there; every compilation would fail"
            yield judge(name, why, f"unset {name}")
    sound = {name: environment.values[name] for name, there in environment.launchers.items() if there}
    if not sound:
        return
    named = ", ".join(f"{title} {sound.get(name, 'none')}" for title, name in LAUNCHERS.items())
    cuda = LAUNCHERS["CUDA"]
    if need.cuda != "no" and need.knobs == "pytorch" and cuda not in environment.launchers:
        why = f"{named}: the kernels, which take the most time, are not cached"
        yield warn("compiler launchers", why, f"export {cuda}={quote(next(iter(sound.values())))}")
    else:
        yield ok("compiler launchers", named)


def launcher_program(value: str) -> str:
    """Return the program of a compiler launcher: CMake separates its words by semicolons."""
    return re.split(r"[; ]", value.strip(), maxsplit=1)[0]


def launcher_names(values: Mapping[str, str]) -> list[str]:
    """Return the variables that name a compiler launcher and are set."""
    return [name for name in LAUNCHERS.values() if values.get(name, "").strip()]
