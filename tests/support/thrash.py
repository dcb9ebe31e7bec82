"""A neighbour that thrashes: processes that read a mapped file over and over in a control group too small for it.

The whole machine's PSI says that tasks stall on memory, while next to none of the machine's memory is used.
Knows nothing of stoker.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType

from support.memory_group import MIB, MemoryGroup

LIMIT_MIB, FILE_MIB, READERS = 80, 100, 4
"""Four readers of somewhat more than fits drive the machine's PSI beyond 20 % in ten seconds."""

# Pages count for the group of whoever touched them first: so the readers write the file themselves. They end with
# whoever has started them, however that ends.
_READ = """
import mmap, os, sys
with open(sys.argv[1], "wb") as file:
    for _ in range(int(sys.argv[3])):
        file.write(bytes(range(256)) * 4096)
        os.fdatasync(file.fileno())
file = open(sys.argv[1], "rb")
pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
parent = os.getppid()
while os.getppid() == parent:
    for at in range(0, len(pages), 4096):
        pages[at]
"""


class Thrasher:
    """Thrashes for as long as the context lasts; `folder` must lie on a disk, not in a tmpfs."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pages"
        self._group = MemoryGroup(LIMIT_MIB * MIB)

    def __enter__(self) -> Thrasher:
        command = [sys.executable, "-S", "-c", _READ, str(self._file), str(READERS), str(FILE_MIB)]
        self._readers = subprocess.Popen(self._group.wrap(command))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._group.close()
        self._readers.wait()
        self._file.unlink()


def machine_stalls() -> float | None:
    """Percent of the last ten seconds in which some task of the machine stalled on memory; None without PSI."""
    try:
        words = Path("/proc/pressure/memory").read_text().split()
    except OSError:
        return None
    return float(words[1].removeprefix("avg10="))
