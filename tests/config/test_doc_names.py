"""What the pages name is there, and what they promise to list is listed: commands, options, files, fields."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from stoker.cli.main import COMMANDS, main
from stoker.config.paths import BuildPaths
from stoker.engine.govern.user_commands import VERBS
from stoker.model.events import EVENT_TYPES
from stoker.model.samples import GpuSample, JobSample, MachineSample
from stoker.record.checkpoint import checkpoint_path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md", *sorted((ROOT / "docs").glob("*.md")))

OTHERS = ("setup.py", "tools/setup_helpers/cmake.py")
"""Files of PyTorch that the pages speak of."""


def named(page: Path) -> Iterator[str]:
    """Everything in backticks in the text."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return (" ".join(words.split()) for words in re.findall(r"`([^`]+)`", text))


def command_lines(page: Path) -> Iterator[str]:
    """The lines with stoker in blocks of code, without the words behind them, and those in the text."""
    for line in re.findall(r"^(?:    )?(?:.* (?:&&|\|) )?(stoker [a-z].*)$", page.read_text(), re.MULTILINE):
        if line.split()[1] in COMMANDS:
            yield re.split(r" {2,}", line)[0]
    yield from (words for words in named(page) if words.startswith("stoker "))


def help_of(command: str, words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What --help says of a command; `profiles` and `rules` have commands of their own."""
    with pytest.raises(SystemExit):
        main([command, *(words[:1] if command in ("profiles", "rules") else ()), "--help"])
    return capsys.readouterr().out


def anchors(page: Path) -> set[str]:
    """The headings, as links name them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_shows_has_these_options(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in command_lines(page):
        _, command, *words = line.partition(" -- ")[0].split()
        assert command in COMMANDS, line
        asked = [word.strip("[]") for text in words for word in text.replace("\\|", "|").split("|")]
        if options := {word for word in asked if re.match(r"--?[a-z]", word)}:
            assert options <= set(re.findall(r"(?<![\w-])--?[a-z-]+", help_of(command, words, capsys))), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_heading_that_a_page_refers_to_is_there(page: Path) -> None:
    for target, _, heading in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())):
        if not target.startswith("https:"):
            other = page.parent / target if target else page
            assert other.exists(), target
            assert not heading or heading in anchors(other), f"{target}#{heading}"
    modules = {
        str(path.relative_to(ROOT)) for room in ("src", "tests", "bench") for path in (ROOT / room).rglob("*.py")
    }
    for name in named(page):
        if re.fullmatch(r"[\w/]+\.py", name) and name not in OTHERS:
            assert any(f"/{path}".endswith(f"/{name}") for path in modules), name


def test_the_page_of_the_architecture_names_every_room() -> None:
    rooms = {path.parent.name for path in (ROOT / "src/stoker").glob("*/__init__.py")}
    assert {f"{room}/" for room in rooms} <= set(named(ROOT / "docs/architecture.md"))


def test_the_page_of_the_build_folder_names_every_file_of_a_build() -> None:
    paths = BuildPaths(ROOT)
    files = [value for name in dir(BuildPaths) if isinstance(value := getattr(paths, name), Path) and name != "root"]
    names = {path.name for path in (*files, checkpoint_path(paths.journal)) if path.parent == ROOT}
    assert names <= set(named(ROOT / "docs/build_folder.md"))


def test_an_installation_brings_no_ninja_that_could_come_before_ones_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [name for name in project["dependencies"] if name.startswith("ninja")]
    assert "pip install -q '.[demo]'" in (ROOT / "README.md").read_text()


def test_the_page_of_the_journal_names_every_event_and_every_field() -> None:
    page = (ROOT / "docs/journal.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    for event in EVENT_TYPES:
        fields = {field.name for field in dataclasses.fields(event)}
        reported = set(re.findall(r"`(\w+)`", rows[event.kind]))
        assert fields <= reported, event.kind
    for kind in (MachineSample, JobSample, GpuSample):
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in page, f"{kind.__name__}.{field.name}"


def test_the_page_of_the_protocol_names_every_verb() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/protocol.md").read_text(), re.MULTILINE)
    assert set(VERBS) <= set(rows)
