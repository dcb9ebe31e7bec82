"""The characters that screens are drawn with, in two sets: block and line characters, and plain ASCII.

Unaware of colours and of what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of drawing characters; each is one cell wide."""

    ascii: bool
    full: str
    """A bar's own share: the build's memory, running jobs, a busy CPU."""
    other: str
    """A bar's foreign share: memory that is used, but not by the build."""
    empty: str
    promised: str
    """What running jobs are expected to take beyond what they hold."""
    reserve: str
    """What is kept free of promises."""
    block: str
    """A chart's filled cell."""
    edges: str
    """A line at the bottom, in the middle and at the top of a cell."""
    done: str
    """The progress bar's finished part."""
    todo: str
    rule: str
    dash: str
    """A limit's line in a chart, and an empty table cell."""
    mark: str
    """The place of a level or limit inside a bar."""
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
    """Behind the heading of the column that a table is sorted by."""
    axis: str
    corner: str
    dot: str
    en_dash: str
    becomes: str
    """Between what is so and what a person has asked for."""
    border: str
    """Name of the border style for the few boxes there are."""


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
