"""Reads binaries and wheels, and judges on which GPUs they will run. Knows nothing of builds or screens."""
