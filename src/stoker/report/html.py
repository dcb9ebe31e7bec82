"""The few elements of HTML that a page of figures is made of; every text is escaped here. Pure; knows no build."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from stoker.model.text import clean

MAX_CELL = 400
"""Characters of one text: a name in a build may have a megabyte."""

STYLE = """
:root{color-scheme:light dark;--fg:#24292f;--dim:#57606a;--bg:#fff;--card:#f6f8fa;--line:#d0d7de;--bad:#b35900}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--dim:#9198a1;--bg:#0d1117;--card:#161b22;--line:#30363d;--bad:#f0883e}}
body{margin:0 auto;padding:1.5rem;max-width:1120px;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .5rem}p{margin:.4rem 0;max-width:75ch}
.dim,th{color:var(--dim)}.bad{color:var(--bad);font-weight:600}code,td.text{overflow-wrap:anywhere}
code{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,monospace}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:.6rem;margin:1rem 0}
dl div{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.5rem .8rem}
dt{color:var(--dim);font-size:.8rem}dd{margin:0;font-size:1.15rem;font-weight:600}
table{border-collapse:collapse;width:100%;font-size:.88rem}th{text-align:left;font-weight:500}
th,td{padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:100%;height:auto;display:block;background:var(--card);border:1px solid var(--line);border-radius:6px}
svg{margin:.6rem 0}
svg text{font:11px system-ui,sans-serif;fill:var(--dim)}.grid{stroke:var(--line);stroke-width:.6}
g rect:not(.path){stroke:var(--card);stroke-width:.5}
.path{stroke:var(--fg);stroke-width:1.6}.frozen{fill:var(--bg);fill-opacity:.75}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--dim)}
@media print{details>*{display:block}}
""".strip()  # fmt: skip

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content Security Policy: nothing is loaded, nothing runs, whatever a name in the build holds."""


def text(value: object, limit: int = MAX_CELL) -> str:
    """Any text as harmless HTML."""
    return escape(clean(str(value), limit))


class Figure:
    """A number with its words: the page holds both, `key` says which of `stoker status --json` it is."""

    __slots__ = ("_shown", "_value", "key")

    def __init__(self, key: str, value: float | None, shown: str) -> None:
        self.key, self._value, self._shown = key, value, shown

    def __str__(self) -> str:
        return f'<data id="{escape(self.key)}" value="{escape(str(self._value))}">{text(self._shown)}</data>'


def cards(rows: Iterable[tuple[str, Figure | str]]) -> str:
    """Figures with their names, side by side."""
    shown = ((name, str(value) if isinstance(value, Figure) else text(value)) for name, value in rows)
    return f"<dl>{''.join(f'<div><dt>{text(name)}</dt><dd>{value}</dd></div>' for name, value in shown)}</dl>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()) -> str:
    """A table; the columns in `numbers` stand right. Empty without rows."""
    right = set(numbers)
    kinds = ['class="n"' if i in right else 'class="text"' for i in range(len(head))]
    body = "".join(
        f"<tr>{''.join(f'<td {kind}>{text(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>"
        for row in rows
    )
    names = "".join(f"<th {kind}>{text(name)}</th>" for kind, name in zip(kinds, head, strict=True))
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>" if body else ""


def folded(summary: str, body: str) -> str:
    """What is shown when a person asks for it, without a script."""
    return f"<details><summary>{text(summary)}</summary>{body}</details>" if body else ""


def section(title: str, *parts: str) -> str:
    """A part of the page with a headline; empty if nothing is in it."""
    body = "".join(parts)
    return f"<section><h2>{text(title)}</h2>{body}</section>\n" if body else ""


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain words; empty without any."""
    return f'<p class="{kind}">{text(words, 4000)}</p>' if words else ""


def document(title: str, body: Iterable[str]) -> str:
    """A whole page: one file that asks for nothing."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{text(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{"".join(body)}</body></html>\n'
