"""What jobs are expected to take, and how much time is left."""
