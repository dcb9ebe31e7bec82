"""What launcher, supervisor and engine hand to each other, as files with types. Stdlib only: the supervisor stands on
it."""
