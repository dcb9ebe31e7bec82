"""Wheels: members, tags, RECORD, and the libraries that they contain."""
