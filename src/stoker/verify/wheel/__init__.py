"""Wheels: members, tags, RECORD, and what they bring."""
