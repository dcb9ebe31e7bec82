"""What happens after a failure or at the end: killed jobs, re-runs, causes, verification."""
