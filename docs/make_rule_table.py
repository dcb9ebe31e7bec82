"""Rewrites the table of rules at the end of docs/diagnose.md from the rules: python docs/make_rule_table.py."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from stoker.diagnose.line_names import OPTIONAL
from stoker.diagnose.rule import load_rules

PAGE = Path(__file__).parent / "diagnose.md"
OTHERS = r"\2"
"""What a title says without the names of a log."""
HEAD = "| rule | what it finds |\n|---|---|\n"


def page_with_table(page: str) -> str:
    """Return the page with the table of today's rules in place of the one that it has, which ends with its last row."""
    before, _, after = page.partition(HEAD)
    rows = after.splitlines(keepends=True)
    end = next((number for number, row in enumerate(rows) if not row.startswith("|")), len(rows))
    return before + HEAD + "".join(_rows()) + "".join(rows[end:])


def _rows() -> list[str]:
    rows = []
    with resources.as_file(resources.files("stoker.diagnose.rules")) as folder:
        for path in sorted(folder.glob("*.yaml")):
            rows.append(f"| **{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ').rstrip('.')}** | |\n")
            rows += [f"| `{rule.id}` | {OPTIONAL.sub(OTHERS, rule.title)} |\n" for rule in load_rules(path)]
    return rows


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
