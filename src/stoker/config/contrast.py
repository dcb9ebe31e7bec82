"""How well a colour can be read on another. Unaware of themes."""

from __future__ import annotations

Rgb = tuple[float, float, float]


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two "#rrggbb" colours, 1 to 21 (WCAG 2.2, 1.4.3)."""
    lights = sorted((_luminance(linear(first)), _luminance(linear(second))))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def linear(colour: str) -> Rgb:
    """Return red, green and blue of a "#rrggbb" colour, 0 to 1, as light adds up."""
    red, green, blue = (_linear_channel(byte / 255) for byte in bytes.fromhex(colour.removeprefix("#")))
    return red, green, blue


def _linear_channel(value: float) -> float:
    """Undo the sRGB transfer function (IEC 61966-2-1)."""
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def _luminance(rgb: Rgb) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
