"""The terminal itself: its cells, its characters, its colours."""
