"""A person's files, read again when they change."""
