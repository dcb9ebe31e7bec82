"""Themes: the shipped ones are readable, one of a person replaces and extends them, faults are reported in place."""

import asyncio
import os
import re
from itertools import combinations
from pathlib import Path

import pytest

from stoker.config.contrast import contrast
from stoker.config.paths import data_dir
from stoker.config.themes import (
    ANSI_COLOURS,
    TOKENS,
    NoSuchThemeError,
    Theme,
    check_theme,
    list_themes,
    load_themes,
    pick_theme,
    watch_themes,
)
from support.colours import distance, distance_without_green

SHIPPED = data_dir("themes")
THEMES, FAULTS = load_themes([SHIPPED])
COLOURED = [theme for theme in THEMES.values() if not theme.ansi]


def name_of(theme: Theme) -> str:
    return theme.name


def test_five_themes_are_shipped_without_a_fault() -> None:
    assert FAULTS == []
    assert set(THEMES) >= {"dark", "light", "high-contrast", "colour-blind-safe", "ansi-16"}
    assert not THEMES["light"].dark
    for name in THEMES:
        assert check_theme(SHIPPED / f"{name}.yaml", [SHIPPED]) == []


@pytest.mark.parametrize("theme", COLOURED, ids=name_of)
def test_text_is_readable_on_every_ground(theme: Theme) -> None:
    colours = theme.colors
    for ground in ("background", "surface", "panel"):
        assert contrast(colours["text"], colours[ground]) >= 4.5
        assert contrast(colours["text_dim"], colours[ground]) >= 4.5
        for token in ("accent", "ok", "warn", "error", "person"):
            assert contrast(colours[token], colours[ground]) >= 4.5
    assert contrast(colours["cursor_text"], colours["cursor"]) >= 4.5
    assert contrast(colours["text"], colours["selection"]) >= 4.5
    for token in TOKENS[TOKENS.index("memory") : TOKENS.index("cursor")]:  # legends and names of tools are text
        assert contrast(colours[token], colours["background"]) >= 4.5


def test_high_contrast_is_higher() -> None:
    colours = THEMES["high-contrast"].colors
    assert contrast(colours["text"], colours["background"]) >= 20
    assert all(contrast(colours[t], colours["background"]) >= 7 for t in ("text_dim", "ok", "warn", "error", "accent"))


@pytest.mark.parametrize("theme", COLOURED, ids=name_of)
def test_good_bad_and_doubtful_are_kept_apart(theme: Theme) -> None:
    for first, second in combinations(("ok", "warn", "error"), 2):
        assert distance(theme.colors[first], theme.colors[second]) >= 20


@pytest.mark.parametrize("theme", THEMES.values(), ids=name_of)
def test_what_stands_side_by_side_has_colours_of_its_own(theme: Theme) -> None:
    tokens = ("running", "frozen", "on_deck", "killed", "person", "warn", "error")
    assert len({theme.colors[token] for token in tokens}) == len(tokens)


def test_and_also_by_eyes_without_green() -> None:
    colours = THEMES["colour-blind-safe"].colors
    for first, second in combinations(("ok", "warn", "error"), 2):
        assert distance_without_green(colours[first], colours[second]) >= 30
    for first, second in combinations(("tool_cxx", "tool_nvcc", "tool_link", "tool_archive"), 2):
        assert distance_without_green(colours[first], colours[second]) >= 10


def test_colour_arithmetic_agrees_with_published_values() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert distance("#000000", "#ffffff") == pytest.approx(100, abs=0.1)
    assert distance("#ff0000", "#00ff00") == pytest.approx(170.6, abs=0.5)
    assert distance_without_green("#ff0000", "#00ff00") < 80


def test_an_ansi_theme_has_the_terminals_colours_only() -> None:
    assert THEMES["ansi-16"].ansi
    assert set(THEMES["ansi-16"].colors.values()) <= ANSI_COLOURS


def test_each_shipped_colour_is_one_commented_line() -> None:
    for path in SHIPPED.glob("*.yaml"):
        text = path.read_text()
        for token in TOKENS:
            assert re.search(rf"^  {token}: \S+ +# \w", text, re.MULTILINE), f"{token} in {path}"


def test_a_persons_theme_extends_and_replaces(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text('extends: light\ncolors:\n  accent: "#0000FF"\n')
    (tmp_path / "dark.yaml").write_text('extends: dark\ndescription: darker\ncolors:\n  background: "#000000"\n')
    themes, faults = load_themes([SHIPPED, tmp_path])
    assert faults == []
    assert themes["mine"].colors["accent"] == "#0000ff"
    assert themes["mine"].colors["text"] == themes["light"].colors["text"]
    assert not themes["mine"].dark
    assert themes["dark"].colors["background"] == "#000000"
    assert themes["dark"].colors["text"] == THEMES["dark"].colors["text"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('extends: dark\ncolors:\n  memroy: "#000000"\n', 3, "unknown key 'memroy'; did you mean 'memory'?"),
        ("extends: dark\ncolors:\n  text: #ffffff\n", 3, "'text' has no value (one that starts with # needs quotes)"),
        ("extends: dark\ncolors:\n  text: red\n", 3, "'text' is a colour like \"#1a2b3c\" in quotes, not 'red'"),
        ("extends: ansi-16\ncolors:\n  text: ansi_rde\n", 3,
         "'text' is one of the terminal's own colours here; did you mean 'ansi_red'?"),
        ("extends: drak\n", 1, "there is no theme 'drak' to extend; did you mean 'dark'?"),
        ("extends: dark\ndark: maybe\n", 2, "'dark' is yes or no, not 'maybe'"),
        ("extends: dark\ncolour: x\n", 2, "unknown key 'colour'; did you mean 'colors'?"),
        ("extends: dark\ncolors: blue\n", 2, "'colors' is a mapping: indent its keys below it"),
        ("extends: broken\n", 1, "a theme cannot extend itself, only one of its name that is shipped"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    themes, faults = load_themes([SHIPPED, tmp_path])
    assert "broken" not in themes
    assert len(faults) == 1
    assert str(faults[0]).startswith(f"{path}:{line}: {message}")
    assert [str(f) for f in check_theme(path, [SHIPPED])] == [str(f) for f in faults]


def test_a_theme_that_extends_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text("extends: evil\n")
    themes, faults = load_themes([SHIPPED, tmp_path])
    assert "evil" not in themes
    reported = f"{path}:1: a theme cannot extend itself, only one of its name that is shipped"
    assert [str(f) for f in faults] == [reported] == [str(f) for f in check_theme(path, [SHIPPED])]


def test_a_circle_of_themes_is_reported(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.yaml").write_text(f"extends: {other}\n")
    themes, faults = load_themes([tmp_path])
    assert themes == {}
    assert f"{tmp_path / 'c.yaml'}:1: 'a' extends this theme, so this one cannot extend it" in map(str, faults)


def test_a_broken_theme_does_not_take_the_shipped_one_along(tmp_path: Path) -> None:
    (tmp_path / "dark.yaml").write_text("nonsense\n")
    themes, faults = load_themes([SHIPPED, tmp_path])
    assert themes["dark"] == THEMES["dark"]
    assert len(faults) == 1
    rows = [row for row in list_themes([SHIPPED, tmp_path]) if row.name == "dark"]
    assert [(row.path.parent, bool(row.fault)) for row in rows] == [(SHIPPED, False), (tmp_path, True)]


def test_a_theme_without_a_colour_for_everything_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thin.yaml").write_text('colors:\n  text: "#ffffff"\n')
    themes, faults = load_themes([tmp_path])
    assert themes == {}
    assert "no colour for background, surface" in str(faults[0])
    assert faults[0].line == 1


def test_hardly_readable_colours_are_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "faint.yaml"
    path.write_text('extends: dark\ncolors:\n  text: "#333333"\n')
    warnings = check_theme(path, [SHIPPED])
    assert f"{path}:3: warning: 'text' on 'background' has a contrast of 1.4; 4.5 or more is readable" in map(
        str, warnings
    )
    assert {w.severity for w in warnings} == {"warning"}
    themes, faults = load_themes([SHIPPED, tmp_path])
    assert "faint" in themes
    assert faults == []


def test_the_list_names_each_theme_once(tmp_path: Path) -> None:
    rows = list_themes([SHIPPED, tmp_path / "absent"])
    assert [row.name for row in rows] == sorted(THEMES)
    assert {row.name: row.kind for row in rows}["ansi-16"] == "dark, 16 colours"


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "dark"),
        ({"COLORFGBG": "15;0"}, "dark"),
        ({"COLORFGBG": "0;default;15"}, "light"),
        ({"COLORFGBG": "x"}, "dark"),
    ],
)
def test_auto_follows_the_terminal(environ: dict[str, str], name: str) -> None:
    assert pick_theme("auto", THEMES, environ).name == name


def test_an_unknown_theme_is_reported_with_the_nearest() -> None:
    with pytest.raises(NoSuchThemeError, match=r"no theme 'drak'; did you mean 'dark'\?"):
        pick_theme("drak", THEMES, {})


async def test_a_saved_theme_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: dark\n")
    seen: asyncio.Queue[dict[str, Theme]] = asyncio.Queue()

    async def watch() -> None:
        async for themes, _faults in watch_themes([SHIPPED, tmp_path, tmp_path / "absent"]):
            seen.put_nowait(themes)

    watcher = asyncio.create_task(watch())
    try:
        colour, shown = 0, ""
        while shown != f"#{colour:06x}" or not colour:  # the watch begins at some later time: save until it is seen
            colour += 1
            new = tmp_path / "mine.new"
            new.write_text(f'extends: dark\ncolors:\n  text: "#{colour:06x}"\n')
            new.replace(path)
            try:
                shown = (await asyncio.wait_for(seen.get(), 3))["mine"].colors["text"]
            except TimeoutError:
                assert not watcher.done(), watcher
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)


async def test_a_folder_of_themes_may_be_made_while_a_screen_is_open(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    changes = watch_themes([SHIPPED, folder])
    first = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.1)
    folder.mkdir()
    (folder / os.fsdecode(b"odd\xff.yaml")).touch()  # watchfiles takes a name that is not UTF-8 for an error of its own
    (folder / "mine.yaml").write_text("extends: dark\n")
    while "mine" not in (await first)[0]:
        first = asyncio.ensure_future(anext(changes))
    (folder / "mine.yaml").unlink()
    themes, _faults = await anext(changes)
    assert "mine" not in themes
    await changes.aclose()
