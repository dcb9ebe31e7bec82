"""Finds the first cause of a failed build in its output. Knows no builds and no screens: bytes in, matches out."""
