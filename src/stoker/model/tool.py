"""The kinds of jobs. A module of its own, for programs that start often and need nothing else of the model."""

from __future__ import annotations

from typing import Literal

Tool = Literal["cxx", "nvcc", "link", "archive", "other"]
"""What a job does, as far as its command line shows."""
