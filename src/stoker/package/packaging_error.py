"""The error of packaging. Knows nothing else."""

from __future__ import annotations


class PackagingError(Exception):
    """A wheel cannot be packaged as asked; the message is one line that names the thing and the remedy."""
