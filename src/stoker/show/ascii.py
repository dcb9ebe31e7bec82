"""Converts text for terminals that show only ASCII: replaces every other character by a similar one.

Each character is replaced by as many as it takes cells, so that columns line up. Knows no screens and no terminals.
"""

from __future__ import annotations

from unicodedata import combining, east_asian_width

_ALIKE = str.maketrans(
    {
        character: plain
        for plain, characters in {
            "-": "─╌▔▁·–—",
            "=": "━┅═",
            "|": "│║▅▆▎▊▏▕▌▐",
            "+": "✓└╭╮╰╯┌┐┘├┤┬┴┼",
            ".": "▂▄▀▖▗▘▝",
            ":": "▃░",
            "#": "█▇",
            "/": "▒",
            "~": "…",
            "x": "✗×",
            ">": "▸→▶≥",
            "<": "◀≤",
            "z": "‖",
            "o": "○●",
            "k": "†",
            "*": "■",
            "v": "▼",
            "^": "▲",
            "'": "‘’",
            '"': "“”",
        }.items()
        for character in characters
    }
)
"""Block and line characters, stoker's own and those of Textual's widgets, and the quotes that compilers write."""


def to_ascii(text: str) -> str:
    """Return `text` with each non-ASCII character replaced by a similar one, or a question mark for each cell."""
    plain = text if text.isascii() else text.translate(_ALIKE)
    return plain if plain.isascii() else "".join(c if c.isascii() else "?" * _cells(c) for c in plain)


def _cells(character: str) -> int:
    return 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
