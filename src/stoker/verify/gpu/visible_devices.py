"""Applies CUDA_VISIBLE_DEVICES to a list of GPUs, as far as the result is certain. Pure.

The rules are NVIDIA's (CUDA Programming Guide, "CUDA Environment Variables"): GPUs by number or by the start of their
UUID, up to the first entry that does not exist. A number means the same GPU as in NVML only if CUDA also counts by PCI
bus; by default it puts the fastest first. An uncertain result hides no GPU, because an additional verdict does no harm.
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
"""Characters of the variable that messages repeat: two UUIDs."""


@dataclass(frozen=True, slots=True)
class VisibleChoice:
    """The GPUs that a program sees, those that it does not see, and a sentence on why the variable was not applied."""

    shown: Sequence[Gpu]
    hidden: Sequence[Gpu] = ()
    note: str = ""


def setting(environment: Mapping[str, str]) -> str:
    """Return the variable and its value, for a person; empty if it is not set."""
    value = environment.get(VARIABLE)
    return "" if value is None else f"{VARIABLE}={value[:_LONGEST] or repr('')}"


def visible(gpus: Sequence[Gpu], environment: Mapping[str, str], *, complete: bool) -> VisibleChoice:
    """Return the choice among these GPUs; `complete` if this machine has no others."""
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
    """Return the indices of the chosen GPUs, and why that is uncertain."""
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
    """Parse a number as C does: what follows the digits does not count. -1 for no number."""
    match = _NUMBER.match(word)
    return int(match[0]) if match else -1


def _by_number(word: str, gpus: Sequence[Gpu]) -> int | None:
    return next((gpu.index for gpu in gpus if gpu.index == _number(word)), None)


def _by_uuid(word: str, gpus: Sequence[Gpu]) -> int | None:
    """Return the index of the only GPU whose UUID starts with this word."""
    found = [gpu.index for gpu in gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return found[0] if len(found) == 1 else None
