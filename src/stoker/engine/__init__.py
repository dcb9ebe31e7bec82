"""The control loop: sense, decide, act, record, serve. Knows no screen."""
