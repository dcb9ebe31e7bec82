"""The loop itself: what wakes it, what it reads, what it records."""
