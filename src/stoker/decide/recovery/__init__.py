"""Decides which failures are worth another attempt. Pure; knows no policy."""
