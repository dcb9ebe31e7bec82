"""How different two colours look, to most eyes and to those without green cones."""

from __future__ import annotations

from stoker.config.contrast import Rgb, linear

_DEUTERANOPIA: tuple[Rgb, Rgb, Rgb] = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
"""Linear RGB as seen without green cones: Machado, Oliveira, Fernandes 2009, severity 1.0."""


def distance(first: str, second: str) -> float:
    """Perceived difference of two "#rrggbb" colours in CIELAB (CIE76): 2 is just visible, 20 is plain at a glance."""
    return _lab_distance(linear(first), linear(second))


def distance_without_green(first: str, second: str) -> float:
    """The same for eyes without green cones, the most frequent colour blindness."""
    return _lab_distance(_without_green(linear(first)), _without_green(linear(second)))


def _without_green(rgb: Rgb) -> Rgb:
    red, green, blue = (
        min(1.0, max(0.0, sum(factor * channel for factor, channel in zip(row, rgb, strict=True))))
        for row in _DEUTERANOPIA
    )
    return red, green, blue


def _lab_distance(first: Rgb, second: Rgb) -> float:
    squares = ((a - b) ** 2 for a, b in zip(_lab(first), _lab(second), strict=True))
    return float(sum(squares) ** 0.5)


def _lab(rgb: Rgb) -> Rgb:
    """CIELAB of linear sRGB under D65."""
    red, green, blue = rgb
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0890
    fx, fy, fz = _lab_curve(x), _lab_curve(y), _lab_curve(z)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _lab_curve(value: float) -> float:
    return float(value ** (1 / 3)) if value > 0.008856 else 7.787 * value + 16 / 116
