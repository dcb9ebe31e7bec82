"""The code and the pages use the terms of docs/glossary.md and plain English; no name stands for two things."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src/stoker"

REPLACED = {
    "told": "reported, recorded, known", "tell": "say, report", "tells": "says, reports",
    "keeper": "supervisor", "bell": "wakeup", "ring": "wake", "ledger": "event store", "forerunner": "predecessor",
    "twin": "duplicate build", "climb": "growth rate", "climbs": "grows", "guests": "hosted compilers",
    "strangers": "unknown jobs", "dear": "costly to restart", "wishes": "pending requests", "casualties": "killed jobs",
    "mend": "repair", "mends": "repairs", "mended": "repaired", "heal": "repair", "heals": "repairs",
    "lend": "jobserver", "lends": "jobserver", "lent": "jobserver",
}  # fmt: skip
"""Words that the code no longer uses, and what to write instead."""

ALLOWED = {
    ("sense/machine/cpu.py", "guests"),
    ("engine/aftermath/find_cause.py", "tell"),
    ("verify/python_probe.py", "tell"),
    ("config/attention_settings.py", "bell"),
    ("config/settings.py", "bell"),
    ("show/attention.py", "bell"),
    ("show/terminal_kind.py", "bell"),
    ("decide/time_left/durations.py", "twin"),
    ("engine/learn/remaining.py", "twin"),
    ("model/lessons.py", "twin"),
}
"""In another sense: a terminal's bell, the virtual machines of proc_stat(5), a file's place, a value in journals."""

STILTED = {
    "sees to it": "ensures", "see to it": "ensure", "to be had": "available", "for want of": "for lack of",
    "what helps": "the remedy", "stands in for": "replaces", "stand in for": "replace", "in its stead": "in its place",
    "sets it going": "continues it", "set it going": "continue it", "sets them going": "continues them",
    "set them going": "continue them", "lets go of": "closes, releases", "let go of": "close, release",
    "anew": "again", "for ever": "forever", "all the same": "anyway", "whomever": "the process that",
    "nothing is said": "reports nothing", "goes before it": "takes precedence", "as a rule": "usually",
}  # fmt: skip
"""Phrases that a reader has to translate, and what to write instead."""

MEMORY_WORDS = re.compile(r"\b(available|unused|room|spare)\b")
"""Other words for memory that is left, free or unpromised (docs/glossary.md); a reason uses no others than those."""

MAY_RECUR = {"__init__.py", "__main__.py"}
"""File names; beside them, `cli/commands` has a module for each command, named after it."""

WORD = re.compile(rf"(?<![A-Za-z])(?:(?i:{'|'.join(REPLACED)}))(?![a-z])")
"""Also as a part of a name: `is_told`, `KeeperLink`."""


def test_no_word_that_was_replaced_is_used() -> None:
    for path in sorted(SRC.rglob("*.py")):
        name = str(path.relative_to(SRC))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for word in (match.group().lower() for match in WORD.finditer(line)):
                assert (name, word) in ALLOWED, f"{name}:{number}: {word!r}; write {REPLACED[word]}"


def stilted(text: str) -> Iterator[str]:
    """Yield the stilted phrases in a text, each with what to write instead."""
    words = " ".join(text.lower().replace("#", " ").split())
    yield from (f"{bad!r}; write {good}" for bad, good in STILTED.items() if re.search(rf"\b{bad}\b", words))


def test_code_and_pages_are_written_in_plain_words() -> None:
    pages = (*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    for path in (*SRC.rglob("*.py"), *SRC.rglob("*.yaml"), *pages):
        assert list(stilted(path.read_text())) == [], path


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts in a module, without names and docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and id(node) not in docs
        ):
            yield node.value


def test_a_reason_has_one_term_for_each_kind_of_memory() -> None:
    for path in (*(SRC / "decide").rglob("*.py"), *(SRC / "engine/govern").rglob("*.py")):
        assert [text for text in texts_of(path) if MEMORY_WORDS.search(text)] == [], path


def test_a_class_name_stands_for_one_thing() -> None:
    places = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w+)", path.read_text(), re.MULTILINE):
            places[name].append(str(path.relative_to(SRC)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_a_file_name_stands_for_one_thing() -> None:
    commands = SRC / "cli/commands"
    counts = Counter(path.name for path in SRC.rglob("*.py") if path.parent != commands)
    assert {name for name, count in counts.items() if count > 1} <= MAY_RECUR
