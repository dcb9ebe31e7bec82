"""The error of a journal that cannot be read. By itself, so that a command that reads none imports no reader."""


class JournalError(Exception):
    """The file is no journal that this version can read; the message is one line."""
