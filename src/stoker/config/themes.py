"""Themes: the purpose of each colour, read from `themes/*.yaml`, with live reload. Unaware of widgets.

A theme's name is its file's name. A file in a later folder replaces the one of the same name in an earlier folder, and
may extend it. A file with an error is reported and ignored, so the one it would have replaced stays.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from stoker.config.config_error import ConfigError, did_you_mean
from stoker.config.contrast import contrast
from stoker.config.file_watch import file_changes, stamp_of
from stoker.config.paths import config_dir, data_dir
from stoker.config.strict_yaml import Section, load

TOKENS = (
    "background", "surface", "panel", "text", "text_dim", "accent", "rule", "ok", "warn", "error", "person",
    "bar_empty", "memory", "memory_build", "memory_limit", "cpu", "gpu", "disk", "running", "frozen", "on_deck",
    "killed", "tool_cxx", "tool_nvcc", "tool_link", "tool_archive", "tool_other", "cursor", "cursor_text", "selection",
)  # fmt: skip
"""Every colour of a theme, by what it is for."""

_BASIC = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ANSI_COLOURS = frozenset(
    {"ansi_default", *(f"ansi_{name}" for name in _BASIC), *(f"ansi_bright_{name}" for name in _BASIC)}
)
"""What an ansi theme's colours may be: the terminal's own sixteen, and its default."""

_SUFFIXES = (".yaml", ".yml")
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")

_READABLE = (
    ("text", "background", 4.5),
    ("text", "surface", 4.5),
    ("text", "panel", 4.5),
    ("text", "selection", 4.5),
    ("cursor_text", "cursor", 4.5),
    ("text_dim", "background", 3.5),
    *((token, "background", 3.0) for token in TOKENS[TOKENS.index("memory") : TOKENS.index("cursor")]),
    *((token, "background", 3.0) for token in ("accent", "ok", "warn", "error", "person")),
)
"""Least contrast of a token on a background. WCAG 2.2 requires 4.5 for text and 3 for signs; dim text may be in
between."""

FALLBACK = "dark"


class NoSuchThemeError(Exception):
    """There is no usable theme of that name; the message names the nearest."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by token: "#rrggbb", or for an `ansi` theme "ansi_red", "ansi_bright_black", "ansi_default"."""

    name: str
    dark: bool
    ansi: bool
    colors: Mapping[str, str]
    description: str = ""


@dataclass(frozen=True, slots=True)
class ThemeRow:
    """A line of `stoker themes list`. `fault` is empty for a theme that can be used."""

    name: str
    kind: str
    path: Path
    description: str
    fault: str = ""


def theme_folders() -> tuple[Path, ...]:
    """Return where themes are looked for: the shipped ones, then the user's own."""
    return data_dir("themes"), config_dir() / "themes"


def load_themes(folders: Sequence[Path]) -> tuple[dict[str, Theme], list[ConfigError]]:
    """Return all themes that can be used, by name, and the faults of those that cannot."""
    reader = _ThemeReader(folders)
    themes: dict[str, Theme] = {}
    for layer, files in enumerate(reader.layers):
        for name in files:
            theme = reader.theme(layer, name)
            if theme is not None:
                themes[name] = theme
    return themes, reader.errors


def list_themes(folders: Sequence[Path]) -> list[ThemeRow]:
    """Return every theme file that counts, usable or not, by name."""
    reader = _ThemeReader(folders)
    rows: dict[str, ThemeRow] = {}
    for layer, files in enumerate(reader.layers):
        for name, path in files.items():
            before = len(reader.errors)
            theme = reader.theme(layer, name)
            if theme is not None:
                kind = f"{'dark' if theme.dark else 'light'}{', 16 colours' if theme.ansi else ''}"
                rows[name] = ThemeRow(name, kind, path, theme.description)
            elif len(reader.errors) > before:
                rows[f"{name} {path}"] = ThemeRow(name, "", path, "", str(reader.errors[before]))
    return [rows[key] for key in sorted(rows)]


def check_theme(path: Path, folders: Sequence[Path]) -> list[ConfigError]:
    """Return the faults of one file, with a warning for each poor contrast. It may extend themes of `folders`."""
    reader = _ThemeReader(folders)
    theme = reader.theme_of_file(path)
    if theme is None or theme.ansi:
        return reader.errors
    return [*reader.errors, *_contrast_warnings(path, theme)]


async def watch_themes(folders: Sequence[Path]) -> AsyncGenerator[tuple[dict[str, Theme], list[ConfigError]], None]:
    """Yield what `load_themes` returns each time a theme in one of the folders was changed, added or removed."""
    before = None
    async with contextlib.aclosing(file_changes(lambda: _watched(folders))) as changes:
        async for _ in changes:
            stamps = {file: stamp_of(file) for file in _theme_files(folders)}
            if before is not None and stamps != before:
                yield load_themes(folders)
            before = stamps


def _watched(folders: Sequence[Path]) -> list[Path]:
    """List what to watch: the themes, and a name in each folder, which may be empty yet or made only later."""
    return [*_theme_files(folders), *(folder / "*.yaml" for folder in folders)]


def _theme_files(folders: Sequence[Path]) -> list[Path]:
    files = []
    for folder in folders:
        with contextlib.suppress(OSError):
            files += [path for path in folder.iterdir() if path.suffix in _SUFFIXES]
    return files


def pick_theme(wanted: str, themes: Mapping[str, Theme], environ: Mapping[str, str]) -> Theme:
    """Return the theme of this name; for "auto" dark or light as the terminal says. Raises NoSuchThemeError."""
    name = auto_theme(environ) if wanted == "auto" else wanted
    if name not in themes:
        raise NoSuchThemeError(f"no theme {name!r}{did_you_mean(name, themes)}")
    return themes[name]


def auto_theme(environ: Mapping[str, str]) -> str:
    """Return "light" where COLORFGBG says that the terminal's ground is light (rxvt, Konsole: "0;15"), else "dark"."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in {"7", "9", "10", "11", "12", "13", "14", "15"} else FALLBACK


class _ThemeReader:
    """Reads each file once, and resolves `extends` through the folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.errors: list[ConfigError] = []
        self.layers = [self._files(folder) for folder in folders]
        self._done: dict[Path, Theme | None] = {}

    def theme(self, layer: int, name: str) -> Theme | None:
        """Return the theme of a file, or None if it has a fault, which is then among the errors."""
        return self._resolve(layer, self.layers[layer][name], ())

    def theme_of_file(self, path: Path) -> Theme | None:
        """Return the theme of a file that may lie anywhere."""
        for layer, files in enumerate(self.layers):
            if files.get(path.stem) is not None and files[path.stem].resolve() == path.resolve():
                return self._resolve(layer, path, ())
        self.layers.append({**self._files(path.parent), path.stem: path})
        return self._resolve(len(self.layers) - 1, path, ())

    def _files(self, folder: Path) -> dict[str, Path]:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
        except FileNotFoundError:
            return {}
        except OSError as err:
            self.errors.append(ConfigError(folder, 0, f"cannot be read: {err.strerror}"))
            return {}
        return {path.stem: path for path in paths if not path.name.startswith(".")}

    def _resolve(self, layer: int, path: Path, below: tuple[Path, ...]) -> Theme | None:
        if path not in self._done:
            before = len(self.errors)
            theme = self._read(layer, path, (*below, path))
            self._done[path] = theme if len(self.errors) == before else None
        return self._done[path]

    def _read(self, layer: int, path: Path, chain: tuple[Path, ...]) -> Theme | None:
        try:
            section = load(path)
        except ConfigError as err:
            self.errors.append(err)
            return None
        try:
            parent = self._parent(layer, section, chain)
            return _theme(path.stem, section, parent)
        finally:
            self.errors += section.errors

    def _parent(self, layer: int, section: Section, chain: tuple[Path, ...]) -> Theme | None:
        name = section.text("extends")
        if not name:
            return None
        parent_file = self._find(layer, name, chain[-1])
        if parent_file is None and name == chain[-1].stem:
            section.fail("extends", "a theme cannot extend itself, only one of its name that is shipped")
            return None
        if parent_file is None:
            names = {name for files in self.layers for name in files}
            section.fail("extends", f"there is no theme {name!r} to extend{did_you_mean(name, names)}")
            return None
        parent_layer, parent_path = parent_file
        if parent_path in chain:
            section.fail("extends", f"{name!r} extends this theme, so this one cannot extend it")
            return None
        parent = self._resolve(parent_layer, parent_path, chain)
        if parent is None:
            section.fail("extends", f"the theme {name!r} that this extends has a fault")
        return parent

    def _find(self, layer: int, name: str, child: Path) -> tuple[int, Path] | None:
        """Return the file of this name in the same folder, but for the one that asks, else in the folder before it."""
        for below in range(layer, -1, -1):
            path = self.layers[below].get(name)
            if path is not None and path != child:
                return below, path
        return None


def _theme(name: str, section: Section, parent: Theme | None) -> Theme | None:
    """Return a theme of a file's own keys on top of its parent's; None where there are faults."""
    section.allow(("description", "dark", "ansi", "extends", "colors"))
    if not _NAME.fullmatch(name):
        section.errors.append(ConfigError(section.path, 0, "a theme's file name is of a-z, 0-9, - and _"))
    dark = section.flag("dark", default=parent.dark if parent else True)
    ansi = section.flag("ansi", default=parent.ansi if parent else False)
    colors = dict(parent.colors) if parent else {}
    own = section.section("colors")
    own.allow(TOKENS)
    for token, value in own.scalars():
        colors[token] = value.lower()
        _check_colour(own, token, colors[token], ansi=ansi)
    missing = [token for token in TOKENS if token not in colors]
    if missing and not section.errors:
        section.fail("colors", f"no colour for {', '.join(missing)} (a theme that 'extends' another needs only some)")
    if section.errors:
        return None
    return Theme(name, dark, ansi, MappingProxyType(colors), section.text("description"))


def _check_colour(section: Section, token: str, value: str, *, ansi: bool) -> None:
    if ansi and value not in ANSI_COLOURS:
        section.fail(token, f"{token!r} is one of the terminal's own colours here{did_you_mean(value, ANSI_COLOURS)}")
    if not ansi and not _HEX.fullmatch(value):
        section.fail(token, f'{token!r} is a colour like "#1a2b3c" in quotes, not {value!r}')


def _contrast_warnings(path: Path, theme: Theme) -> list[ConfigError]:
    colors = load(path).section("colors")
    warnings = []
    for token, ground, least in _READABLE:
        ratio = contrast(theme.colors[token], theme.colors[ground])
        if ratio < least:
            line = colors.line_of(token if token in colors else ground)
            text = f"{token!r} on {ground!r} has a contrast of {ratio:.1f}; {least:g} or more is readable"
            warnings.append(ConfigError(path, line, text, "warning"))
    return warnings
