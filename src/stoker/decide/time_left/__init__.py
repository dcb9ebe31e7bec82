"""Estimates how long a build will still take. Pure; knows no policy."""
