"""Converts themes: theme tokens to Rich styles for stoker's lines, and a Textual theme for Textual's widgets.

Knows no builds, and not where themes come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rich.color import Color
from rich.color import ColorParseError as RichColorParseError
from rich.style import Style
from textual.theme import Theme as TextualTheme

from stoker.config.themes import Theme
from stoker.model.text import Ink

ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")

NO_COLOUR: dict[str, str] = {
    "accent": "bold",
    "error": "bold",
    "warn": "bold",
    "person": "bold",
    "text_dim": "dim",
    "rule": "dim",
    "bar_empty": "dim",
    "cursor": "reverse",
    "cursor_text": "",
    "selection": "underline",
}
"""Attributes that replace the tokens' colours under NO_COLOR (https://no-color.org)."""

OUTPUT_TOKENS = {
    "black": "text_dim",
    "red": "error",
    "green": "gpu",
    "yellow": "warn",
    "blue": "cpu",
    "magenta": "killed",
    "cyan": "person",
    "white": "text",
}
"""The theme's colour for each of the terminal's colours in build output: readable on the theme's background, and each
one different. Textual's own colours for them draw red and magenta alike, which are a compiler's errors and warnings."""


class Palette:
    """Rich styles of inks in one theme. Create one per theme: styles are cached."""

    def __init__(self, theme: Theme, *, no_colour: bool = False) -> None:
        self.theme = theme
        self._no_colour = no_colour
        self._cache: dict[str | Ink, Style] = {}

    def style(self, ink: str | Ink) -> Style:
        """Return the style of an ink: "token", "token bold", "token on token", or an Ink from build output."""
        style = self._cache.get(ink)
        if style is None:
            style = self._cache[ink] = self._named(ink) if isinstance(ink, str) else self._foreign(ink)
        return style

    def _named(self, ink: str) -> Style:
        words, _, ground = ink.partition(" on ")
        token, *attributes = words.split()
        if self._no_colour:
            attributes += [*NO_COLOUR.get(token, "").split(), *NO_COLOUR.get(ground, "").split()]
            return _styled(Style(), attributes)
        colours = self.theme.colors
        fg, bg = colours[token], colours[ground or "background"]
        return _styled(Style(color=rich_colour(fg), bgcolor=rich_colour(bg)), attributes)

    def _foreign(self, ink: Ink) -> Style:
        """Return the style of build output; without a background of its own it gets the theme's."""
        attributes = [name for name in ATTRIBUTES if getattr(ink, name)]
        if self._no_colour:
            return _styled(Style(), attributes)
        colours = self.theme.colors
        # On a background of its own, a colour keeps what the build has chosen to go with it.
        token = "" if self.theme.ansi or ink.bg else OUTPUT_TOKENS.get((ink.fg or "").removeprefix("bright_"), "")
        fg = rich_colour(colours[token] if token else ink.fg or colours["text"])
        bg = rich_colour(ink.bg or colours["background"])
        return _styled(Style(color=fg, bgcolor=bg), attributes)


def _styled(style: Style, attributes: Sequence[str]) -> Style:
    return style + Style.parse(" ".join(attributes)) if attributes else style


@lru_cache(512)
def rich_colour(name: str) -> Color:
    """Return a colour by its name in a theme: "#rrggbb", or a terminal colour ("bright_blue", "ansi_default")."""
    try:
        return Color.parse(name.removeprefix("ansi_"))
    except RichColorParseError:
        return Color.default()


def textual_theme(theme: Theme, name: str, *, no_colour: bool = False) -> TextualTheme:
    """Return a Textual theme of this name for Textual's own widgets (palette, inputs, toasts)."""
    tokens = {name: "ansi_default" if no_colour else css_colour(value) for name, value in theme.colors.items()}
    return TextualTheme(
        name=name,
        primary=tokens["accent"],
        secondary=tokens["accent"],
        accent=tokens["accent"],
        warning=tokens["warn"],
        error=tokens["error"],
        success=tokens["ok"],
        foreground=tokens["text"],
        background=tokens["background"],
        surface=tokens["surface"],
        panel=tokens["panel"],
        boost=tokens["surface"],
        dark=theme.dark,
        ansi=theme.ansi or no_colour,
        variables={
            "ansi-background": tokens["background"],  # Textual's own styles use these two in an ansi theme
            "ansi-foreground": tokens["text"],
            "foreground-muted": tokens["text_dim"],
            "text-disabled": tokens["text_dim"],
            "border": tokens["rule"],
            "border-blurred": tokens["rule"],
            "block-cursor-background": tokens["cursor"],
            "block-cursor-foreground": tokens["cursor_text"],
            "block-cursor-text-style": "reverse" if no_colour else "none",
            "input-selection-background": tokens["selection"],
            "input-cursor-background": tokens["cursor"],
            "input-cursor-foreground": tokens["cursor_text"],
            "input-cursor-text-style": "reverse" if no_colour else "none",
        },
    )


def css_colour(name: str) -> str:
    """Return a theme's colour in the syntax of Textual's CSS."""
    return name if name.startswith(("#", "ansi_")) else f"ansi_{name}"


MESSAGE_CSS = """
ToastRack { margin-bottom: 0; overflow-y: hidden; }
Toast { width: 100%; max-width: 100%; margin: 0; padding: 0 1; background: $surface; color: $foreground; }
"""
"""Messages appear above the footer, one line each if they fit: in a corner they would hide what they are about."""
