"""Processes and signals: starts the keeper, ends a build. Does what it is told and does not know why."""
