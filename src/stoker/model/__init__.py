"""Pure values: events, the state they add up to, units, and the text sanitiser.

Knows no file, clock, process, socket or screen. Tests can call everything here with plain values.
"""
