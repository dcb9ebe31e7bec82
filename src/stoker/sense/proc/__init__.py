"""Processes, read from /proc: the tree, births and ends, schedulers and their jobs."""
