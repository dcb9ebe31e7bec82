"""Names the user with a given user ID. Unaware of what they asked for."""

from __future__ import annotations

import pwd


def login_name(uid: int) -> str:
    """Return the login name, or "uid N" for a user unknown to this machine."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
