"""The characters that screens are drawn with, in two sets: Unicode block and line characters, and plain ASCII.

Knows no colours, and not what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of drawing characters; each is one cell wide."""

    ascii: bool
    full: str
    """A bar's main share: the build's memory, running jobs, a busy CPU."""
    other: str
    """A bar's second share: memory used by other programs, for example."""
    empty: str
    promised: str
    """Memory that running jobs are expected to take beyond what they hold."""
    reserve: str
    """Memory that no promise may use."""
    block: str
    """A chart's filled cell."""
    edges: str
    """Lines at the bottom, in the middle and at the top of a cell."""
    done: str
    """The progress bar's finished part."""
    todo: str
    rule: str
    dash: str
    """The line of a limit in a chart, and an empty table cell."""
    mark: str
    """The position of a limit in a bar, or of a cursor in a chart."""
    levels: str
    """Growing columns, from nothing to a full cell."""
    ellipsis: str
    fail: str
    warn: str
    info: str
    ok: str
    person: str
    governor: str
    frozen: str
    on_deck: str
    killed: str
    pointer: str
    sorted_by: str
    """Follows the heading of the column that a table is sorted by."""
    axis: str
    corner: str
    dot: str
    en_dash: str
    becomes: str
    """Stands between the present value and the requested one."""
    border: str
    """Name of the border style of boxes."""


UNICODE = Glyphs(
    ascii=False,
    full="━",
    other="┅",
    empty="─",
    promised="░",
    reserve="▒",
    block="█",
    edges="_─▔",
    done="━",
    todo="─",
    rule="─",
    dash="╌",
    mark="│",
    levels=" ▁▂▃▄▅▆▇█",
    ellipsis="…",
    fail="✗",
    warn="!",
    info="i",
    ok="✓",
    person="▸",
    governor="·",
    frozen="‖",
    on_deck="○",
    killed="†",
    pointer="▸",
    sorted_by="▾",
    axis="│",
    corner="└",
    dot="·",
    en_dash="–",
    becomes="→",
    border="round",
)

ASCII = Glyphs(
    ascii=True,
    full="#",
    other="=",
    empty=".",
    promised=":",
    reserve="/",
    block="#",
    edges="_-'",
    done="=",
    todo="-",
    rule="-",
    dash="-",
    mark="|",
    levels=" ..::||##",
    ellipsis="~",
    fail="x",
    warn="!",
    info="i",
    ok="+",
    person=">",
    governor=".",
    frozen="z",
    on_deck="o",
    killed="k",
    pointer=">",
    sorted_by="v",
    axis="|",
    corner="+",
    dot="-",
    en_dash="-",
    becomes=">",
    border="ascii",
)
