"""Finds the first cause of a failed build in its output: bytes in, matches out. Knows nothing of builds or screens."""
