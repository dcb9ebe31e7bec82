"""Processes and signals: holds jobs, sets them going, ends a build. Does not know why."""
