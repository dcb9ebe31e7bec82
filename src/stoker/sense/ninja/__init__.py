"""Ninja's files, its plan, and what schedulers print."""
