"""Viewers: screens, plain lines, JSON and metrics. All render the same state; none knows how it was obtained."""
