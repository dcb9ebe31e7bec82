"""The kinds of jobs. A module of its own, for programs that start often and need nothing else of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Tool = Literal["cxx", "nvcc", "link", "archive", "other"]
"""What a job does, as far as its command line shows."""

TOOL_NAMES: Mapping[str, str] = {"cxx": "c++", "nvcc": "nvcc", "link": "link", "archive": "ar", "other": "other"}
"""What people read."""
