"""The control loop: sense, decide, act, record, serve. Does not know any screen."""
