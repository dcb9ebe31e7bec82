"""The journal, the registry of builds, the output log as a file, and replay. Does not know any socket or screen."""
