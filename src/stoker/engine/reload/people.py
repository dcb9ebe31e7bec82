"""Who somebody is, by the number that the kernel gives. Unaware of what they asked for."""

from __future__ import annotations

import pwd


def login_name(uid: int) -> str:
    """The login name, or "uid N" for somebody whom this machine does not know."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
