"""Finds CUDA where builds look for it: toolkit, host compiler, cuDNN, NCCL, GPUs. Unaware of what will do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from stoker.doctor.ask_program import Later, ask
from stoker.doctor.facts import Compiler, Cuda, HostLimits, Library, Program, Surroundings, Toolkit, ToolkitPlace
from stoker.doctor.find_tools import find_compiler, find_python, version_in, which, words_of
from stoker.doctor.need import COMPILERS, FLAGS, ROOTS, Version
from stoker.doctor.toolkits import limits_in, limits_of
from stoker.verify.archs import Arch, ArchError, parse_arch
from stoker.verify.gpu.local_gpus import local_gpus

USUAL_ROOT = "/usr/local/cuda"
HOST_VARIABLES = ("CUDAHOSTCXX", "CMAKE_CUDA_HOST_COMPILER", "CUDA_HOST_COMPILER", "NVCC_CCBIN")

_CODES = re.compile(r"--gpu-name.*?Allowed values[^:]*:(.*?)Default", re.DOTALL)
"""The same words in the ptxas of CUDA 11.7 to 13.5."""

_CCBIN = re.compile(r"(?:^|\s)(?:-ccbin|--compiler-bindir)[ =](\S+)")
_HEADERS = {"cudnn": ("cudnn_version.h", "CUDNN"), "nccl": ("nccl.h", "NCCL")}
_RELEASE = re.compile(r"release (\d+\.\d+)", re.ASCII)
_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)
_CUDA_VERSION = re.compile(r"^#define\s+CUDA_VERSION\s+(\d{4,6})\b", re.MULTILINE | re.ASCII)
_MAX_HEADER = 1 << 20
_TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")


def find_cuda(here: Surroundings) -> Cuda:
    """Find all of CUDA at once. Raises LateError if something hangs."""
    wait = 2 * here.patience + 1
    devices = Later(lambda: local_gpus(here.env, here.patience))
    python = Later(lambda: find_python(here))
    found_places = list(find_places(here.env))
    versions = [Later(partial(_version_of, place.nvcc, here)) for place in found_places]
    first = next((place for place in found_places if place.nvcc), None)
    toolkit = Later(lambda: ask_toolkit(first, here) if first else None)
    host = Later(lambda: find_host(here))
    packages = python.result(wait).packages
    gpus = devices.result(wait)
    kit = toolkit.result(wait)
    return Cuda(
        toolkit=kit,
        places=tuple(replace(p, version=v.result(wait).version) for p, v in zip(found_places, versions, strict=True)),
        host=host.result(wait) if first else None,
        libraries=tuple(_libraries(here, kit.root if kit else "", packages)),
        devices=gpus.devices,
        device_note=gpus.why,
        packaged=_packaged(packages),
    )


def find_places(env: Mapping[str, str]) -> Iterator[ToolkitPlace]:
    """Yield where CUDA is looked for, in the order in which it counts.

    What a variable names is among them even if nothing is there.
    """
    for variable in COMPILERS:
        if words := words_of(env.get(variable, "")):
            path = which((words[0],), env)
            yield ToolkitPlace(variable, _root_of(path) if path else words[0], path)
    for variable in ROOTS:
        if value := env.get(variable, ""):
            yield ToolkitPlace(variable, value, which((f"{value}/bin/nvcc",), env))
    if path := which(("nvcc",), env):
        yield ToolkitPlace("PATH", _root_of(path), path)
    if path := which((f"{USUAL_ROOT}/bin/nvcc",), env):
        yield ToolkitPlace(USUAL_ROOT, USUAL_ROOT, path)


def _root_of(nvcc: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))


def ask_toolkit(place: ToolkitPlace, here: Surroundings) -> Toolkit:
    """Return what the nvcc of a place says of itself, and what its headers say."""
    wait = 2 * here.patience
    version = Later(lambda: _version_of(place.nvcc, here))
    archs = Later(lambda: ask([place.nvcc, "--list-gpu-arch"], here.env, here.patience))
    # nvcc may be a script that starts another: the dry run names the folder of the one that does the work.
    dry = ask([place.nvcc, "--dryrun", "-E", "-x", "cu", os.devnull], here.env, here.patience)
    top = _TOP.search(dry.text)
    root = os.path.normpath(top[1].strip()) if top else place.root
    # `nvcc --list-gpu-code` leaves out what is for one GPU or a family alone; its ptxas names all that it takes.
    codes = _CODES.search(ask([f"{root}/bin/ptxas", "--help"], here.env, here.patience).text)
    nvcc = version.result(wait)
    return Toolkit(
        nvcc=nvcc,
        origin=place.origin,
        root=root,
        archs=tuple(_archs(archs.result(wait).text, "compute_")),
        codes=tuple(_archs(re.sub(r"['\",]", " ", codes[1]), "sm_")) if codes is not None else (),
        limits=_limits(root, nvcc.version),
        header=_header_version(root),
        beside=_header_version(os.path.dirname(os.path.dirname(place.nvcc))),
    )


def _version_of(nvcc: str, here: Surroundings) -> Program:
    """Return an nvcc with its release."""
    if not nvcc:
        return Program("nvcc")
    answer = ask([nvcc, "--version"], here.env, here.patience)
    release = _RELEASE.search(answer.text)
    number = version_in(release[1]) if release else ()
    return Program("nvcc", nvcc, number, answer.problem or ("" if number else "it prints no version"), answer.late)


def _archs(text: str, prefix: str) -> Iterator[Arch]:
    for word in text.split():
        if word.startswith(prefix):
            try:
                yield parse_arch(word)
            except ArchError:
                continue


def _limits(root: str, version: Version) -> HostLimits:
    """Return what the toolkit's own header says; else what is known of its version."""
    for folder in _include_folders(root):
        path = f"{folder}/crt/host_config.h"
        if text := _text(path):
            return limits_in(text, path)
    return limits_of(version)


def _header_version(root: str) -> Version:
    for folder in _include_folders(root):
        if match := _CUDA_VERSION.search(_text(f"{folder}/cuda.h")):
            number = int(match[1])
            return number // 1000, number % 1000 // 10
    return ()


def _include_folders(root: str) -> list[str]:
    return [f"{root}/include", *(f"{root}/targets/{t}/include" for t in ("x86_64-linux", "sbsa-linux"))] if root else []


def include_folders(env: Mapping[str, str]) -> list[str]:
    """Return where the headers of CUDA and of its libraries are, as far as that is known without starting a program."""
    roots = dict.fromkeys(place.root for place in find_places(env) if place.nvcc)
    named = [folder for name in _HEADERS for folder in _named_folders(name, env)]
    return [folder for root in roots for folder in _include_folders(root)] + named


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_HEADER)
    except OSError:
        return ""


def find_host(here: Surroundings) -> Compiler:
    """Return the compiler that nvcc calls: what a variable names, else gcc on PATH."""
    flags = " ".join(here.env.get(name, "") for name in FLAGS)
    if named := _CCBIN.findall(flags):
        return find_compiler(("gcc", "g++"), "-ccbin", _with(here, "-ccbin", named[-1]))
    # torch.utils.cpp_extension gives CC to nvcc as -ccbin.
    names = ("CC", *HOST_VARIABLES) if here.need.knobs == "extension" else HOST_VARIABLES
    variable = next((name for name in names if here.env.get(name)), HOST_VARIABLES[0])
    value = here.env.get(variable, "")
    if value and os.path.isdir(value):  # -ccbin takes a folder as well
        here = _with(here, variable, f"{value}/gcc")
    return find_compiler(("gcc", "g++"), variable, here)


def _with(here: Surroundings, variable: str, value: str) -> Surroundings:
    return replace(here, env={**here.env, variable: value})


def _libraries(here: Surroundings, root: str, packages: str) -> Iterator[Library]:
    for name in here.need.libraries:
        if name not in _HEADERS:
            continue
        near = [*_named_folders(name, here.env), *_include_folders(root), *system_folders(here.env)]
        library = _library(name, near, reachable=True)
        library = library or _library(name, [f"{packages}/nvidia/{name}/include"], reachable=False)
        if library is not None:
            yield library


def _named_folders(name: str, env: Mapping[str, str]) -> list[str]:
    upper = name.upper()
    folders = [env.get(f"{upper}_INCLUDE_DIR", "")]
    folders += [f"{value}/include" for part in ("ROOT", "ROOT_DIR") if (value := env.get(f"{upper}_{part}", ""))]
    return [folder for folder in folders if folder]


def system_folders(env: Mapping[str, str]) -> list[str]:
    """Return where a compiler, and so CMake, finds headers that no variable names."""
    conda = [f"{env['CONDA_PREFIX']}/include"] if env.get("CONDA_PREFIX") else []
    prefixes = re.split(r"[:;]", env.get("CMAKE_PREFIX_PATH", ""))
    named = re.split(r"[:;]", f"{env.get('CMAKE_INCLUDE_PATH', '')}:{env.get('CPATH', '')}")
    by_variable = [*(f"{prefix}/include" for prefix in prefixes if prefix), *(folder for folder in named if folder)]
    return [
        *by_variable,
        *conda,
        "/usr/local/include",
        "/usr/include",
        *(f"/usr/include/{triplet}" for triplet in _TRIPLETS),
    ]


def _library(name: str, folders: Sequence[str], *, reachable: bool) -> Library | None:
    header, prefix = _HEADERS[name]
    for folder in folders:
        text = _text(f"{folder}/{header}")
        parts = [
            match[1]
            for part in ("MAJOR", "MINOR", "PATCHLEVEL" if name == "cudnn" else "PATCH")
            if (match := re.search(rf"^#define\s+{prefix}_{part}\s+(\d+)", text, re.MULTILINE | re.ASCII))
        ]
        if parts:
            return Library(name, ".".join(parts), folder, reachable)
    return None


def _packaged(packages: str) -> str:
    """Return a toolkit among Python's packages: nvidia/cu13 since CUDA 13, nvidia/cuda_nvcc before."""
    if not packages:
        return ""
    roots = sorted((Path(packages) / "nvidia").glob("cu*/bin/nvcc"), reverse=True)
    return str(roots[0].parent.parent) if roots else ""
