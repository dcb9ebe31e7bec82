"""Says what the architectures that are asked for will cost, by what they cost before, and where that is from. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stoker.doctor.check import Check, ok
from stoker.doctor.need import Need
from stoker.model.units import format_bytes, format_rough

NAME = "architectures"


def judge_cost(archs: Sequence[str], need: Need) -> Iterator[Check]:
    """Yield CPU time and size for `archs` ("9.0") as far as they are known. A figure is never a fault."""
    parts = [part for part in (_time(len(archs), need), _size(archs, need)) if part]
    if parts and archs:
        yield ok(NAME, "; ".join(parts))


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
    known = dict(cost.sizes)
    named = ", ".join(f"{arch} {format_bytes(size)}" for arch, size in cost.sizes)
    new = [arch for arch in archs if arch not in known]
    more = f"; {', '.join(new)} not built here before" if new else ""
    if not new and len(archs) < len(known):
        more = f", of which {format_bytes(sum(known[arch] for arch in archs))} are asked for"
    return f"{cost.library} of the last build holds {named}{more}"
