"""A build on paper: the policy's own code, and its rivals, on a recorded or made-up build at any size of machine."""
