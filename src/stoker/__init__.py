"""stoker watches a long build, governs it, and proves what it built."""

__version__ = "0.1.0"
