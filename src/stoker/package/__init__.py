"""Turns a freshly built wheel into one that installs elsewhere."""
