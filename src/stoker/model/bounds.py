"""What a person may ask for, at most and at least. Apart from the events, because what parses words needs none."""

from __future__ import annotations

MAX_LEVEL = 4096
"""The highest level: more jobs at once than any machine has cores for."""

LEAST_MEMORY = 32 * 2**20
"""Bytes for all jobs of a build together: no compiler does with less. Who writes less has forgotten a unit."""
