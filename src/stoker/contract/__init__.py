"""The files that `launch/`, supervisor and engine exchange, with types. Stdlib only: the supervisor uses it."""
