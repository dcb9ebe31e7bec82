"""Parses command lines. Pure: reads no process."""
