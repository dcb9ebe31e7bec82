"""Screens: each renders the same state and does not know how it was obtained."""
