"""Which GPUs CUDA_VISIBLE_DEVICES leaves to a program, as far as that is certain. Pure: it asks nobody.

The rules are NVIDIA's (CUDA Programming Guide, "CUDA Environment Variables"): GPUs by number or by the beginning of
their UUID, up to the first that there is not. A number means the same GPU as NVML's only where CUDA counts by PCI bus
too; by default it puts the fastest first. What is not certain hides nothing: a verdict too many does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stoker.verify.gpu.nvml import Gpu

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"

_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_LONGEST = 80
"""Characters of the variable that are repeated to a person: two UUIDs."""


@dataclass(frozen=True, slots=True)
class VisibleChoice:
    """The GPUs that a program sees, those that it does not, and a sentence on why the variable was not applied."""

    shown: Sequence[Gpu]
    hidden: Sequence[Gpu] = ()
    note: str = ""


def setting(environment: Mapping[str, str]) -> str:
    """The variable and its value, for a person; empty where it is not set."""
    value = environment.get(VARIABLE)
    return "" if value is None else f"{VARIABLE}={value[:_LONGEST] or repr('')}"


def visible(gpus: Sequence[Gpu], environment: Mapping[str, str], *, complete: bool) -> VisibleChoice:
    """The choice among these GPUs; `complete` when no other is in this machine."""
    value = environment.get(VARIABLE)
    if value is None:
        return VisibleChoice(gpus)
    words = [word.strip() for word in value.split(",")]
    chosen, doubt = _chosen(words, gpus, environment, complete=complete)
    if doubt:
        return VisibleChoice(gpus, note=f"every GPU was judged: {setting(environment)} was not applied, {doubt}")
    return VisibleChoice([g for g in gpus if g.index in chosen], [g for g in gpus if g.index not in chosen])


def _chosen(
    words: Sequence[str], gpus: Sequence[Gpu], environment: Mapping[str, str], *, complete: bool
) -> tuple[set[int], str]:
    """The indices of the GPUs chosen, and why that is not certain."""
    by_uuid = words[0].startswith("GPU-")
    if any(word.startswith("MIG-") for word in words):
        return set(), "since it names a part of a GPU"
    if any(word.startswith("GPU-") != by_uuid for word in words[1:] if _names_something(word)):
        return set(), "since it has numbers and names"
    if not by_uuid and _number(words[0]) < 0:
        return set(), ""
    if not complete:
        return set(), "since not every GPU answers"
    if by_uuid and not all(gpu.uuid for gpu in gpus):
        return set(), "since not every GPU reports its name"
    found = [_by_uuid(word, gpus) if by_uuid else _by_number(word, gpus) for word in words]
    listed = found[: found.index(None)] if None in found else found
    chosen = {index for index in listed if index is not None}
    if len(chosen) < len(listed):
        return set(), "since it names a GPU twice"
    sure = by_uuid or environment.get(ORDER) == "PCI_BUS_ID" or len({(g.device.name, g.device.arch) for g in gpus}) == 1
    if chosen and len(chosen) < len(gpus) and not sure:
        return set(), f"since the numbers are certain only with {ORDER}=PCI_BUS_ID"
    return chosen, ""


def _names_something(word: str) -> bool:
    return word.startswith("GPU-") or _number(word) >= 0


def _number(word: str) -> int:
    """As C reads it: what follows the digits does not count; -1 for no number."""
    match = _NUMBER.match(word)
    return int(match[0]) if match else -1


def _by_number(word: str, gpus: Sequence[Gpu]) -> int | None:
    return next((gpu.index for gpu in gpus if gpu.index == _number(word)), None)


def _by_uuid(word: str, gpus: Sequence[Gpu]) -> int | None:
    """The one GPU whose UUID begins so."""
    found = [gpu.index for gpu in gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return found[0] if len(found) == 1 else None
