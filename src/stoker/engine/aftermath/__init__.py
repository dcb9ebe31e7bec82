"""What follows a failure or the end: killed jobs, re-runs, causes, verification."""
