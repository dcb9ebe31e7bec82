"""Judges the CUDA toolkit, its host compiler, its libraries and the GPUs' driver. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from shlex import quote

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import Compiler, Cuda, HostLimits, Toolkit, ToolkitPlace
from stoker.doctor.judge_tools import dotted, older
from stoker.doctor.need import COMPILERS, FLAGS, ROOTS, Need
from stoker.doctor.switches import switch
from stoker.doctor.toolkits import OLDEST_GCC

OVERRIDE = "allow-unsupported-compiler"
"""The flag of nvcc that switches the check in crt/host_config.h off."""


def judge_cuda(cuda: Cuda, need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    """Judge the toolkit and what belongs to it; nothing for a build that does not want CUDA."""
    if need.cuda == "no":
        return
    yield from _places(cuda, need)
    if cuda.toolkit is None:
        yield _missing(cuda, need)
        return
    yield _nvcc(cuda.toolkit, need)
    yield from _headers(cuda.toolkit, need)
    yield from _versions(cuda, need)
    if cuda.host is not None and cuda.toolkit.nvcc.version:
        yield _host(cuda.host, cuda.toolkit, need, env)
    yield from _libraries(cuda, need, env)
    yield _gpu(cuda)


def grave(need: Need, name: str, why: str, remedy: str = "") -> Check:
    """Fail a build that will use CUDA; warn where that is not known."""
    return (fail if need.cuda == "must" or need.knobs else warn)(name, why, remedy)


def _places(cuda: Cuda, need: Need) -> Iterator[Check]:
    """Warn of variables that point to nothing. A build follows its variables, wherever else a toolkit may be."""
    for place in cuda.places:
        if not place.nvcc:
            why = f"{place.origin} names {place.root}, where no nvcc is"
            judge = fail if need.cuda == "must" and _counts_alone(place, cuda, need) else warn
            yield judge(place.origin, why, _repoint(place, cuda))


def _counts_alone(place: ToolkitPlace, cuda: Cuda, need: Need) -> bool:
    """Return whether it counts alone: CMake takes a root for a hint, torch.utils.cpp_extension takes nothing else."""
    alone = place.origin in (*COMPILERS, *(ROOTS[:2] if need.knobs == "extension" else ()))
    return alone or cuda.toolkit is None


def _repoint(place: ToolkitPlace, cuda: Cuda) -> str:
    if cuda.toolkit is None:
        return f"unset {place.origin}"
    names_a_file = place.origin in COMPILERS
    return f"export {place.origin}={quote(cuda.toolkit.nvcc.path if names_a_file else cuda.toolkit.root)}"


def _missing(cuda: Cuda, need: Need) -> Check:
    where = "not in CUDACXX, CUDA_HOME, PATH or /usr/local/cuda"
    if cuda.packaged:
        remedy = _export(cuda.packaged)
        where += f"; only {cuda.packaged}, among Python's packages, where builds do not look"
    elif need.cuda != "must" and need.knobs == "pytorch":
        remedy = "export USE_CUDA=0"
    else:
        remedy = 'export CUDA_HOME=/usr/local/cuda PATH="/usr/local/cuda/bin:$PATH"  # with a toolkit there'
    if need.cuda == "must":
        return fail("nvcc", f"there is none, {where}", remedy)
    if need.knobs:
        return warn("nvcc", f"there is none, {where}; what is built will use no GPU", remedy)
    return ok("nvcc", f"there is none, {where}; only CUDA code needs it")


def _export(root: str) -> str:
    return f"export CUDA_HOME={quote(root)} PATH={quote(root)}/bin:$PATH"


def _nvcc(toolkit: Toolkit, need: Need) -> Check:
    nvcc = toolkit.nvcc
    if nvcc.problem:
        judge = warn if nvcc.late or need.cuda != "must" else fail
        return judge("nvcc", f"{nvcc.path}: {nvcc.problem}", f"{quote(nvcc.path)} --version")
    title = f"{dotted(nvcc.version)}, {nvcc.path}"
    if older(nvcc.version, need.cuda_version):
        why = f"{title}: {need.what} needs CUDA {dotted(need.cuda_version)} or newer"
        return grave(need, "nvcc", why, "export CUDA_HOME=...  # a newer toolkit")
    return ok("nvcc", f"{title} (by {toolkit.origin})")


def _headers(toolkit: Toolkit, need: Need) -> Iterator[Check]:
    """Warn where an nvcc on PATH is a link, or a script that calls another one.

    torch.utils.cpp_extension takes the folder above it, unresolved, for CUDA_HOME: its headers are not there.
    """
    if need.knobs == "extension" and toolkit.origin == "PATH" and toolkit.header and not toolkit.beside:
        home = os.path.dirname(os.path.dirname(toolkit.nvcc.path))
        why = f"PyTorch takes {home} for CUDA_HOME, as nvcc is {toolkit.nvcc.path}; its headers are in {toolkit.root}"
        yield warn("CUDA headers", why, f"export CUDA_HOME={quote(toolkit.root)}")


def _versions(cuda: Cuda, need: Need) -> Iterator[Check]:
    toolkit = cuda.toolkit
    if toolkit is None:
        return
    version, header = toolkit.nvcc.version, toolkit.header
    export = _export(toolkit.root)
    if version and header and version[:2] != header[:2]:
        why = f"nvcc is {dotted(version)}, but the cuda.h beside it ({toolkit.root}) is of {dotted(header)}"
        yield (fail if need.knobs == "pytorch" else warn)("CUDA versions", why, export)
        return
    others = {place.version: place for place in cuda.places if place.version}
    if len(others) > 1:
        named = ", ".join(f"{dotted(number)} by {place.origin}" for number, place in sorted(others.items()))
        yield warn("CUDA versions", f"there are {named}; parts of a build may take different ones", export)


def _host(host: Compiler, toolkit: Toolkit, need: Need, env: Mapping[str, str]) -> Check:
    """Judge whether nvcc takes the compiler that it would call."""
    name, limits = "nvcc host compiler", toolkit.limits
    if not host.command.found:
        why = f"nvcc calls {host.command.name}, which is not there" + (f" ({host.asked})" if host.asked else "")
        return grave(need, name, why, f"unset {host.asked}" if host.asked else "export NVCC_CCBIN=g++")
    version = host.command.version
    if not version or host.family == "other":
        return warn(name, f"{host.command.path}: {host.command.problem or 'of an unknown family'}")
    title = f"{host.family} {dotted(version)}"
    newest = limits.gcc if host.family == "gcc" else limits.clang
    if newest is not None and version[0] > newest:
        return _too_new(title, host, toolkit, need, env)
    if host.family == "gcc" and version[0] < OLDEST_GCC:
        why = f"{title} is older than gcc {OLDEST_GCC}, the oldest that CUDA is made for"
        return warn(name, why, _host_remedy(host, newest))
    return ok(name, f"{title}; {_limit(limits, toolkit, host.family)}")


def _too_new(title: str, host: Compiler, toolkit: Toolkit, need: Need, env: Mapping[str, str]) -> Check:
    name, limits = "nvcc host compiler", toolkit.limits
    newest = limits.gcc if host.family == "gcc" else limits.clang
    why = f"{title} is too new: {_limit(limits, toolkit, host.family)}"
    flags = " ".join(env.get(variable, "") for variable in FLAGS)
    if OVERRIDE in flags:
        return warn(name, f"{why}; -{OVERRIDE} is given, at your own risk", _host_remedy(host, newest))
    if not limits.origin:
        return warn(name, f"{why} (by a table: its crt/host_config.h cannot be read)", _host_remedy(host, newest))
    if not host.asked and (env.get("CC") or env.get("CXX")):
        return warn(name, f"{why}; unless the build passes CC or CXX to nvcc", _host_remedy(host, newest))
    return grave(need, name, why, _host_remedy(host, newest))


def _limit(limits: HostLimits, toolkit: Toolkit, family: str) -> str:
    newest = limits.gcc if family == "gcc" else limits.clang
    version = dotted(toolkit.nvcc.version)
    return f"CUDA {version} takes {family} up to {newest}" if newest else f"what CUDA {version} takes is not known"


def _host_remedy(host: Compiler, newest: int | None) -> str:
    program = "g++" if host.family == "gcc" else "clang++"
    version = f"-{newest}" if newest else ""
    return f"export CUDAHOSTCXX={program}{version} NVCC_CCBIN={program}{version}"


def _libraries(cuda: Cuda, need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    by_name = {library.name: library for library in cuda.libraries}
    for name in need.libraries:
        library = by_name.get(name)
        upper = name.upper()
        own = name == "nccl" and need.knobs == "pytorch" and not switch(env.get("USE_SYSTEM_NCCL"))
        if library is None or (own and not library.reachable):
            yield _no_library(name, need, env)
        elif library.reachable:
            yield ok(name, f"{library.version}, {library.folder}")
        else:
            why = f"{library.version} is in {library.folder}, where CMake does not look by itself"
            yield warn(name, why, f"export {upper}_ROOT={quote(os.path.dirname(library.folder))}")


def _no_library(name: str, need: Need, env: Mapping[str, str]) -> Check:
    upper = name.upper()
    if name == "nccl" and need.knobs == "pytorch":
        if switch(env.get("USE_SYSTEM_NCCL")) and switch(env.get("USE_NCCL")) is not False:
            why = "USE_SYSTEM_NCCL is on, but there is no nccl.h"
            return grave(need, name, why, "unset USE_SYSTEM_NCCL  # or: export NCCL_ROOT=...")
        return ok(name, "none where CMake looks; the build makes its own")
    if switch(env.get(f"USE_{upper}")) is False:
        return ok(name, f"none is installed, and USE_{upper} is off")
    return warn(name, f"no {name} is installed; the build will do without it", f"export {upper}_ROOT=...")


def _gpu(cuda: Cuda) -> Check:
    if not cuda.devices:
        return ok("GPU", f"none here: {cuda.device_note}; none is needed to build")
    named = ", ".join(dict.fromkeys(f"{device.name} ({device.arch.number})" for device in cuda.devices))
    served = next((device.cuda for device in cuda.devices if device.cuda), None)
    version = cuda.toolkit.nvcc.version if cuda.toolkit else ()
    if served and version and served[0] < version[0]:
        why = f"{named}: its driver serves CUDA up to {dotted(served)}; what nvcc {dotted(version)} builds will not run"
        return warn("GPU", why, f"export CUDA_HOME=...  # a toolkit of CUDA {served[0]}, or install a newer driver")
    return ok("GPU", named)
