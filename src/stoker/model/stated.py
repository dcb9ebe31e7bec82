"""How long a job was expected to take before it began, and what said so: a value of the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StatedBy = Literal["history", "other flags", "log", "prior", "twin", "size"]
"""An earlier build of this output, with its flags or with others; ninja's log of an earlier run; a measured class of
the priors; another job of this build with the same source; or only the tool, the language and the source's size."""


@dataclass(frozen=True, slots=True)
class Stated:
    """CPU seconds (`history`, `other flags`, `prior`), or seconds on the clock (`log`, `twin`); a weight for `size`."""

    by: StatedBy
    amount: float
