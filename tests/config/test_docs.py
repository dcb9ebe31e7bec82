"""The pages about themes and settings name everything there is, and their examples work."""

import dataclasses
import re
from pathlib import Path

from stoker.config.attention_settings import AttentionSettings
from stoker.config.paths import data_dir
from stoker.config.settings import Settings, load_settings
from stoker.config.themes import TOKENS, check_theme, load_themes
from stoker.decide.policy.thresholds import Thresholds
from stoker.show.tui.input.actions import TABLE

DOCS = Path(__file__).resolve().parents[2] / "docs"
THEMES_PAGE = (DOCS / "themes.md").read_text()
SETTINGS_PAGE = (DOCS / "settings.md").read_text()


def section(page: str, title: str) -> str:
    """The part of a page below a heading, up to the next one."""
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    """Everything in backticks in the first column of a table."""
    return [name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)]


def examples(page: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_the_page_of_themes_names_every_token_and_theme() -> None:
    assert first_cells(section(THEMES_PAGE, "Tokens")) == list(TOKENS)
    themes, _ = load_themes([data_dir("themes")])
    assert set(first_cells(THEMES_PAGE.partition("\n## ")[0])) == set(themes)


def test_the_page_of_settings_names_every_setting_and_action() -> None:
    known = {f.name for f in dataclasses.fields(Settings)} - {"thresholds", "attention"}
    known |= {f.name for part in (Thresholds, AttentionSettings) for f in dataclasses.fields(part)}
    assert set(first_cells(SETTINGS_PAGE.partition("\n## Keys\n")[0])) == known
    keys = section(SETTINGS_PAGE, "Keys")
    rows = [
        f"| `{action.id}` | {' '.join(f'`{k}`' for k in action.keys.split(','))} | {action.help} |" for action in TABLE
    ]
    assert keys.partition("|---|---|---|\n")[2].splitlines() == rows


def test_the_examples_are_without_fault(tmp_path: Path) -> None:
    (theme,) = examples(THEMES_PAGE)
    path = tmp_path / "furnace.yaml"
    path.write_text(theme)
    assert check_theme(path, [data_dir("themes")]) == []
    defaults, keys = examples(SETTINGS_PAGE)
    actions = {action.id for action in TABLE}
    path = tmp_path / "settings.yaml"
    path.write_text(defaults)
    assert load_settings(path, actions) == (Settings(), [])
    path.write_text(keys)
    settings, faults = load_settings(path, actions)
    assert faults == []
    assert settings.keys
