"""Reads binaries: files by offset, ELF, archives, and the device code inside."""
