"""Reloads configuration files when they change."""
