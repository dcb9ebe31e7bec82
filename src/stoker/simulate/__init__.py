"""Simulates a recorded or synthetic build on a machine of any size, with the policy's own code and with its rivals."""
