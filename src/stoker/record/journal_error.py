"""The error for a journal that cannot be read. In its own module, so that a command that reads none imports no
reader."""


class JournalError(Exception):
    """The file is not a journal that this version can read; the message is one line."""
