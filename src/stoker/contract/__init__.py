"""What launcher, keeper and engine hand to each other, as files with types. Stdlib only: the keeper stands on it."""
