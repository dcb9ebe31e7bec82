"""Processes and signals: holds jobs, releases them, ends a build. Does not know why."""
