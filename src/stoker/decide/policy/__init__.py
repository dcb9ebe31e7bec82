"""Decides who may run now: from one snapshot to decisions with their reasons. Pure."""
