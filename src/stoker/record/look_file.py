"""Remembers where a build stood when its person last looked, in the build's folder. Unaware of screens.

It is a convenience: whatever is wrong with the folder, the file or the disk, nothing is raised.
"""

from __future__ import annotations

import contextlib
import json
import os

from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular
from stoker.model.codec import decode, encode
from stoker.model.look import Look
from stoker.record.whole_file import whole_file

MAX_BYTES = 400
"""More than any look takes."""


class LookFile:
    """The last look of the person to whom the build belongs; for anybody else there is none.

    Implements `stoker.show.update_source.LookMemory` structurally.
    """

    def __init__(self, paths: BuildPaths) -> None:
        self._path = paths.last_look

    def recall(self) -> Look | None:
        """Return the last look; None if there is none that can be used."""
        try:
            if not self._is_own():
                return None
            with open_regular(self._path) as file:
                return decode(Look, json.loads(file.read(MAX_BYTES)))
        except (OSError, ValueError):
            return None

    def remember(self, look: Look) -> None:
        """Replace the last look; on an error it stays as it was."""
        with contextlib.suppress(OSError):
            if self._is_own():
                with whole_file(self._path) as file:
                    json.dump(encode(look), file)

    def _is_own(self) -> bool:
        """Whether the folder is ours: `sudo` may keep the HOME of another user. Raises OSError."""
        return os.stat(self._path.parent).st_uid == os.getuid()
