"""The journal, the registry of builds, the output log as a file, and replay. Knows no socket and no screen."""
