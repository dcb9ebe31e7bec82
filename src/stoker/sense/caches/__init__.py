"""Compiler caches: whether one runs, and what it has counted."""
