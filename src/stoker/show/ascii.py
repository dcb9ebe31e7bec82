"""Text for terminals that show nothing but ASCII: each other character gives way to one that looks alike.

A character stays one character, so that columns line up. Unaware of screens and of how a terminal is recognised.
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
    """`text` with each character that ASCII lacks replaced by one that looks alike, or by a question mark."""
    if text.isascii():
        return text
    return text.translate(_ALIKE).encode("ascii", "replace").decode("ascii")
