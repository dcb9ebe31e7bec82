"""How a dataclass declares a key of a profile's file. Unaware of which keys there are."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def key(doc: str, default: Any = None) -> Any:
    """Declare a key with what the schema says of it, and its value where it is left out."""
    return field(default=default, metadata={"doc": doc})


def mapping(doc: str) -> Any:
    """Declare a key with a mapping below it, by default an empty one."""
    return field(default_factory=dict, metadata={"doc": doc})
