"""Writes build.ninja. Unaware of what is built."""

from __future__ import annotations

from collections.abc import Sequence


class NinjaFile:
    """The text of a build.ninja, grown from top to bottom."""

    def __init__(self) -> None:
        self._lines = ["# Made by 'stoker demo'.", "ninja_required_version = 1.5", ""]

    def rule(self, name: str, command: str, description: str, **variables: str) -> None:
        """Add a rule; `command` is ninja text: `$in`, `$out`."""
        self._lines += [f"rule {name}", f"  command = {command}", f"  description = {description}"]
        self._lines += [f"  {key} = {value}" for key, value in variables.items()]
        self._lines.append("")

    def edge(
        self, output: str, rule: str, inputs: Sequence[str] = (), *, implicit: Sequence[str] = (), **variables: str
    ) -> str:
        """Add a build edge and return its output."""
        needs = "".join(f" {path}" for path in inputs) + (f" | {' '.join(implicit)}" if implicit else "")
        self._lines.append(f"build {output}: {rule}{needs}")
        self._lines += [f"  {key} = {value}" for key, value in variables.items()]
        return output

    def text(self, default: str) -> str:
        """Return the whole file, which builds `default` when nothing is named."""
        return "\n".join([*self._lines, "", f"default {default}", ""])


def escape(text: str) -> str:
    """Return text that ninja takes as it is within a command."""
    return text.replace("$", "$$")
