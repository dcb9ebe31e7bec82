"""What each family of events changes in the state. Pure and total: no event, in any order, is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.model.state import BuildState

Reducers = Mapping[type, Callable[[BuildState, Any, float], BuildState]]
"""By the class of the event: (state, event, Unix time) -> state."""
