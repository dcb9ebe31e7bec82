"""Predicts what jobs need over time, learning from those that ended. Pure; knows no policy."""
