"""How an engine's process starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_garbage_is_searched_for_once_the_engine_is_loaded(tmp_path: Path) -> None:
    look = (
        "import contextlib, gc\n"
        "from stoker.engine.__main__ import main\n"
        "with contextlib.suppress(OSError, SystemExit): main()\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 1000)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", look, str(tmp_path / "none")], capture_output=True, check=True)
    assert done.stdout.split() == [b"True", b"True"]
