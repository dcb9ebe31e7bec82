"""The few widgets: each draws lines that others have made."""
