"""The files that launcher, supervisor and engine exchange, with types. Stdlib only: the supervisor uses it."""
