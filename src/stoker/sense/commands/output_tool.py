"""Which tool made a file, by its name: for jobs that were too short to be seen running. Pure."""

from __future__ import annotations

import re

from stoker.model.tool import Tool

_BY_NAME: tuple[tuple[re.Pattern[str], Tool], ...] = (
    (re.compile(r"\.(cu|hip)\.(o|obj|ptx|cubin|fatbin)$|\.(ptx|cubin|fatbin)$|cuda[\w.-]*\.o$"), "nvcc"),
    (re.compile(r"\.(o|obj|gch|pch|pcm)$"), "cxx"),
    (re.compile(r"\.(a|lib)$"), "archive"),
    (re.compile(r"\.(so|dylib|dll|exe|pyd|abi3)(\.\d+)*$"), "link"),
)


def tool_of_output(output: str) -> Tool:
    """Return the tool that usually makes such a file; "other" if its name does not show it."""
    return next((tool for pattern, tool in _BY_NAME if pattern.search(output)), "other")
