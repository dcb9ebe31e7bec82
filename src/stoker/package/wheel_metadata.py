"""METADATA and WHEEL of a packaged wheel. Unaware of binaries and of zip files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from email.generator import BytesGenerator
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import EmailPolicy
from io import BytesIO
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from stoker.package.owners import Owner
from stoker.package.packaging_error import PackagingError

_AS_IT_IS = EmailPolicy(utf8=True, mangle_from_=False, refold_source="none", max_line_length=0)
"""Lines that are not changed stay as they are, whatever their length."""

_REQUIRES = "Requires-Dist"
_BLANK = re.compile(rb"\r?\n\r?\n")


class Requirements(NamedTuple):
    """All lines of Requires-Dist, and which old ones are no longer among them."""

    lines: tuple[str, ...]
    dropped: tuple[str, ...]


def pinned(existing: Sequence[str], owners: Iterable[Owner]) -> Requirements:
    """What the wheel requires, with each owner pinned in place of an older line for it.

    Raises PackagingError where such a line forbids the version that is installed.
    """
    added = {owner.name: owner for owner in owners}
    kept, dropped, extras = [], [], dict[str, frozenset[str]]()
    for line in existing:
        requirement = _parsed(line)
        owner = added.get(canonicalize_name(requirement.name)) if requirement is not None else None
        if requirement is None or owner is None or "extra" in str(requirement.marker or ""):
            kept.append(line)
            continue
        if not requirement.specifier.contains(owner.version, prereleases=True):
            what = f"it requires {requirement.name}{requirement.specifier}, and was built against {owner.version}"
            raise PackagingError(f"{what}, which is installed here; build it against one that it allows")
        dropped.append(line)
        extras[owner.name] = extras.get(owner.name, frozenset()) | frozenset(requirement.extras)
    new = []
    for name, owner in sorted(added.items()):
        wanted = ",".join(sorted(extras.get(name, ())))
        new.append(owner.requirement.replace("==", f"[{wanted}]==", 1) if wanted else owner.requirement)
    return Requirements((*kept, *new), tuple(line for line in dropped if line not in new))


def without(existing: Sequence[str], names: Iterable[str]) -> Requirements:
    """What the wheel requires, without the packages whose libraries it now holds itself."""
    gone = set(names)
    dropped = []
    for line in existing:
        requirement = _parsed(line)
        if requirement is not None and canonicalize_name(requirement.name) in gone:
            dropped.append(line)
    return Requirements(tuple(line for line in existing if line not in dropped), tuple(dropped))


def requirements_in(metadata: bytes) -> list[str]:
    """The lines of Requires-Dist."""
    return [str(value) for value in _fields(metadata).get_all(_REQUIRES) or ()]


def with_requirements(metadata: bytes, lines: Sequence[str]) -> bytes:
    """METADATA with these lines of Requires-Dist and nothing else changed. Raises PackagingError."""
    if requirements_in(metadata) == [*lines]:
        return metadata
    message = _fields(metadata)
    before = _rest(message)
    del message[_REQUIRES]
    for line in lines:
        message[_REQUIRES] = line
    text = _written(message) + metadata[_end_of_fields(metadata) :]
    if requirements_in(text) != [*lines] or _rest(_fields(text)) != before:
        raise PackagingError("its METADATA cannot be rewritten without loss; build it again with another backend")
    return text


def with_platform(wheel: bytes, tags: Sequence[str]) -> bytes:
    """WHEEL with these tags, of a wheel for one platform."""
    message = _fields(wheel)
    del message["Tag"], message["Root-Is-Purelib"]
    message["Root-Is-Purelib"] = "false"
    for tag in tags:
        message["Tag"] = tag
    return _written(message)


def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _end_of_fields(text: bytes) -> int:
    """Where the description begins, which stays as it is, byte for byte."""
    blank = _BLANK.search(text)
    return blank.end() if blank is not None else len(text)


def _fields(text: bytes) -> EmailMessage:
    return BytesParser(policy=_AS_IT_IS).parsebytes(text[: _end_of_fields(text)])


def _rest(message: EmailMessage) -> list[tuple[str, str]]:
    """All fields but Requires-Dist."""
    return [(k, str(v)) for k, v in message.items() if k.lower() != _REQUIRES.lower()]


def _written(message: EmailMessage) -> bytes:
    """The fields and the blank line behind them."""
    out = BytesIO()
    BytesGenerator(out, mangle_from_=False, policy=_AS_IT_IS).flatten(message)
    return out.getvalue()
