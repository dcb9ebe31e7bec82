"""Judges TORCH_CUDA_ARCH_LIST: its words, what this nvcc compiles for, what the GPUs need, what it will cost. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import Cuda, Toolkit
from stoker.doctor.judge_cuda import grave
from stoker.doctor.judge_tools import dotted
from stoker.doctor.need import Need
from stoker.doctor.switches import switch
from stoker.model.units import format_bytes, format_rough
from stoker.verify.archs import Arch, ArchError, Wanted, cubin_runs, parse_arch, parse_arch_list, ptx_runs
from stoker.verify.gpu.devices import Device

NAME = "TORCH_CUDA_ARCH_LIST"
COST = "architectures"

_BY_MACHINE = ("Auto", "Common", "All")
"""Words of PyTorch's build (select_compute_arch.cmake) that mean something else on every machine."""

_SPECIFIC_FROM, _SPECIFIC_CUDA = (9, 0), (12, 0)
_FAMILY_FROM, _FAMILY_CUDA = (10, 0), (12, 9)
"""The first capabilities with code for them alone (9.0a) and for a family (10.0f), and the CUDA that brought it: by the
ptxas of CUDA 11.7 to 13.5. Only where the toolkit's own ptxas does not say."""

_FLASH_FROM = (8, 0)
"""The oldest architecture that has kernels for flash attention (flash-attention's README)."""


def judge_archs(cuda: Cuda, need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    """Judge the list of architectures, or that there is none."""
    text = env.get(NAME, "").strip()
    if need.cuda == "no":
        return
    if need.arch_choice:
        yield from _own_variable(cuda, need, env)
        return
    if need.gpu_or and not cuda.devices and not any(env.get(name, "").strip() for name in need.gpu_or):
        first = need.gpu_or[0]
        remedy = _suggested(cuda) if first == NAME else f"export {first}=...  # the GPUs that it shall run on"
        yield fail(first, f"not set, and there is no GPU to ask ({cuda.device_note})", remedy)
        return
    if not text and not need.knobs:
        return
    if not text:
        yield _unset(cuda, need)
        return
    words = [word for word in re.split(r"[ \t;]+", text.strip(" \t;")) if word]
    by_machine = [word for word in words if word.removesuffix("+PTX") in _BY_MACHINE]
    if by_machine and need.knobs != "extension":
        yield _by_machine(by_machine[0], cuda, need)
        words = [word for word in words if word not in by_machine]
        if not words:
            return
    if "native" in words and need.knobs == "extension":
        yield ok(NAME, "native: the GPUs of this machine")
        return
    try:
        wanted = parse_arch_list(";".join(words))
    except ArchError as err:
        yield grave(need, NAME, str(err), _suggested(cuda))
        return
    yield _list(text, wanted, cuda, need)
    yield from _attention(wanted, need, env)
    yield from _cost([w.arch.number for w in wanted if w.kind == "cubin"], need)


def _own_variable(cuda: Cuda, need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    """Judge a variable with words such as 80: the build passes over those that it does not know, in silence."""
    name, text = need.arch_variable, env.get(need.arch_variable, "") or need.arch_default
    words = [word for word in text.split(";") if word]
    chosen = [parse_arch(word) for word in words if word in need.arch_choice]
    unknown = [word for word in words if word not in need.arch_choice]
    refused = [a for a in chosen if cuda.toolkit is not None and not _compiles(a, cuda.toolkit)]
    kept = [arch for arch in chosen if arch not in refused]
    left_out = [d for d in cuda.devices if not any(cubin_runs(arch, d.arch) for arch in kept)]
    remedy = f'export {name}="{";".join(need.arch_choice if not kept else (_word(arch) for arch in kept))}"'
    if not kept:
        yield fail(name, f"{text!r} holds none of {' '.join(need.arch_choice)} that this nvcc compiles for", remedy)
        return
    if unknown:
        yield warn(
            name, f"{', '.join(unknown)}: it knows {' '.join(need.arch_choice)}, and builds nothing else", remedy
        )
    elif refused and env.get(name):
        why = f"nvcc {dotted(cuda.toolkit.nvcc.version)} cannot compile for" if cuda.toolkit else "not compiled for"
        yield warn(name, f"{why} {', '.join(map(_word, refused))}, which is left out", remedy)
    elif left_out:
        device = left_out[0]
        yield warn(name, f"nothing in {text!r} runs on this machine's {device.name} ({device.arch.number})", "")
    else:
        yield ok(name, f"{text}{'' if env.get(name) else ', its own list'}")
    if env.get(NAME):
        yield warn(NAME, f"{env[NAME]!r} is not read by this build, which goes by {name}", f"unset {NAME}")
    yield from _cost([arch.number for arch in kept], need)


def _word(arch: Arch) -> str:
    return f"{arch.major}{arch.minor}"


def _attention(wanted: Sequence[Wanted], need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    """Warn of kernels for GPUs that cannot run them."""
    name = "USE_FLASH_ATTENTION"
    if need.knobs == "pytorch" and switch(env.get(name)) and all(w.arch.capability < _FLASH_FROM for w in wanted):
        why = f"on, but its kernels run from {_FLASH_FROM[0]}.{_FLASH_FROM[1]} on, and {NAME} ends before"
        yield warn(name, why, f"export {name}=0")


def _list(text: str, wanted: Sequence[Wanted], cuda: Cuda, need: Need) -> Check:
    """Report the gravest thing about a list that can be read."""
    toolkit = cuda.toolkit
    refused = [w for w in wanted if toolkit is not None and not _compiles(w.arch, toolkit)]
    if toolkit is not None and refused:
        names = ", ".join(dict.fromkeys(w.arch.number for w in refused))
        why = f"nvcc {dotted(toolkit.nvcc.version)} cannot compile for {names}, only for {_range(toolkit)}"
        return grave(need, NAME, why, _without(wanted, refused, cuda))
    family = [w.arch.number for w in wanted if w.arch.variant == "f"]
    if family and need.knobs == "extension":
        # An extension with a CMakeLists.txt of its own, such as vLLM, may go by PyTorch's CMake files, which know it.
        judge = partial(warn) if need.cmake else partial(grave, need)
        return judge(NAME, f"torch.utils.cpp_extension does not know {family[0]}", _suggested(cuda))
    left_out = [device for device in cuda.devices if not _runs(wanted, device)]
    if left_out:
        device = left_out[0]
        why = f"nothing in {text!r} runs on this machine's {device.name} ({device.arch.number})"
        return warn(NAME, why, f'export {NAME}="{text.strip(" ;")};{device.arch.number}"')
    return ok(NAME, f"{text}: {_counted(wanted)}")


def _counted(wanted: Sequence[Wanted]) -> str:
    binaries = sum(w.kind == "cubin" for w in wanted)
    ptx = len(wanted) - binaries
    passes = f"each kernel is compiled {binaries} times" if binaries > 1 else "each kernel is compiled once"
    return f"{passes}, with PTX for {ptx}" if ptx else passes


def _compiles(arch: Arch, toolkit: Toolkit) -> bool:
    """Return whether this nvcc knows an architecture; one that did not say knows all."""
    if not toolkit.archs:
        return True
    if arch.capability not in {known.capability for known in toolkit.archs}:
        return False
    if arch.variant and toolkit.codes:
        return arch in toolkit.codes
    if arch.variant == "a":
        return arch.capability >= _SPECIFIC_FROM and toolkit.nvcc.version >= _SPECIFIC_CUDA
    if arch.variant == "f":
        return arch.capability >= _FAMILY_FROM and toolkit.nvcc.version >= _FAMILY_CUDA
    return True


def _runs(wanted: Sequence[Wanted], device: Device) -> bool:
    return any((cubin_runs if w.kind == "cubin" else ptx_runs)(w.arch, device.arch) for w in wanted)


def _range(toolkit: Toolkit) -> str:
    return " ".join(arch.number for arch in sorted(toolkit.archs))


def _unset(cuda: Cuda, need: Need) -> Check:
    if cuda.devices:
        archs = ", ".join(sorted({device.arch.number for device in cuda.devices}))
        return ok(NAME, f"not set: built for the GPUs of this machine alone ({archs})")
    remedy = _suggested(cuda)
    if cuda.toolkit is None:
        return ok(NAME, "not set; there is no nvcc either")
    if need.knobs == "extension":
        return warn(NAME, "not set, and no GPU to ask: built for every architecture that torch knows", remedy)
    return _common("not set, and no GPU to ask: PyTorch takes its common architectures", cuda, need)


def _by_machine(word: str, cuda: Cuda, need: Need) -> Check:
    if word.startswith("Auto") and cuda.devices:
        return ok(NAME, f"{word}: built for the GPUs of this machine alone")
    return _common(f"{word}: PyTorch takes its common architectures", cuda, need)


def _common(why: str, cuda: Cuda, need: Need) -> Check:
    """Judge PyTorch's common architectures: they begin with 5.0, unknown to CUDA 13 (select_compute_arch.cmake)."""
    toolkit = cuda.toolkit
    first = Arch(5, 0)
    if toolkit is not None and not _compiles(first, toolkit):
        more = f"{why}, which begin with {first.number}; nvcc {dotted(toolkit.nvcc.version)} does not know it"
        return (fail if need.knobs == "pytorch" else warn)(NAME, more, _suggested(cuda))
    return warn(NAME, f"{why}; each one takes memory and time", _suggested(cuda))


def _without(wanted: Sequence[Wanted], refused: Sequence[Wanted], cuda: Cuda) -> str:
    """Return the list as it would be accepted; what suits the machine if nothing is left of it."""
    kept = [w.arch.number for w in wanted if w.kind == "cubin" and w not in refused]
    with_ptx = {w.arch.number for w in wanted if w.kind == "ptx"}
    items = [f"{number}+PTX" if number in with_ptx else number for number in kept]
    return f'export {NAME}="{";".join(items)}"' if items else _suggested(cuda)


def _suggested(cuda: Cuda) -> str:
    """Return what the GPUs here need; without any, an example that this nvcc can compile."""
    archs = sorted(
        {device.arch for device in cuda.devices if cuda.toolkit is None or _compiles(device.arch, cuda.toolkit)}
    )
    if archs:
        return f'export {NAME}="{";".join(arch.number for arch in archs)}"'
    return f'export {NAME}="8.0;9.0+PTX"  # the GPUs that it shall run on'


def _cost(archs: Sequence[str], need: Need) -> Iterator[Check]:
    """Yield CPU time and size for `archs` ("9.0") as far as they are known. A figure is never a fault."""
    parts = [part for part in (_time(len(archs), need), _size(archs, need)) if part]
    if parts and archs:
        yield ok(COST, "; ".join(parts))


def _time(count: int, need: Need) -> str:
    cost = need.cost
    if not cost.files:
        return ""
    each = format_rough(cost.seconds)
    total = f"{count} x {each} = {format_rough(count * cost.seconds)}" if count > 1 else each
    files = f"{cost.files} CUDA files" if cost.files > 1 else "1 CUDA file"
    rest = f"; {cost.rest} more have no figure yet" if cost.rest else ""
    least = (
        f", {format_rough(count * cost.seconds / cost.cores)} at best on {cost.cores:g} cores" if cost.cores > 1 else ""
    )
    return f"about {total} of CPU time{least}, for {files} ({cost.origin}){rest}"


def _size(archs: Sequence[str], need: Need) -> str:
    cost = need.cost
    if not cost.sizes:
        return ""
    built = dict(cost.sizes)
    named = ", ".join(f"{arch} {format_bytes(size)}" for arch, size in cost.sizes)
    new = [arch for arch in archs if arch not in built]
    more = f"; {', '.join(new)} not built here before" if new else ""
    if not new and len(archs) < len(built):
        more = f", of which {format_bytes(sum(built[arch] for arch in archs))} are asked for"
    return f"{cost.library} of the last build holds {named}{more}"
