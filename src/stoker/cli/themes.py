"""`stoker themes`, and the options of the full-screen viewer that come from settings, themes and the environment."""

from __future__ import annotations


