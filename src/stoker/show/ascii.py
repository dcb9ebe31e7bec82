"""Converts text for terminals that show only ASCII: replaces every other character by a similar one.

Each character is replaced by exactly one, so that columns line up. Knows no screens and no terminals.
"""

from __future__ import annotations

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
    """Return `text` with each non-ASCII character replaced by a similar one, or by a question mark."""
    if text.isascii():
        return text
    return text.translate(_ALIKE).encode("ascii", "replace").decode("ascii")
