"""Pure values: events, the state they add up to, units, and the text sanitiser.

Knows no file, clock, process, socket or screen. Everything here can be called in a test with plain values.
"""
