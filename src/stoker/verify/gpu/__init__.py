"""Finds GPUs, knows their names, and runs a kernel on each."""
