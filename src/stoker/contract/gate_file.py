"""What an engine leaves for a process that acts in its place: `gate.json`, the level and which jobs are stopped.

It is overwritten in place, because ext4 and btrfs write a file out at once when it is renamed over another, and a busy
disk takes long. So only the first line counts, with a checksum: a reader may see parts of several versions.
"""

import os
import time
import zlib
from typing import NamedTuple

from stoker.contract.process import Key
from stoker.contract.strict_json import ContractError, dump, parse, read_bounded

GATE_READS = 20
"""How often to read the file before it counts as damaged: the engine may just be writing it."""


class Gate(NamedTuple):
    """How many jobs may run (0: none, a pause), and in which order stopped ones continue.

    `jobs` are those of live schedulers, and those whose scheduler was killed. `hosted` is what a cache's server runs
    for stopped jobs: the job's pid and start, and that process's.
    """

    level: int
    schedulers: tuple[Key, ...]
    stopped: tuple[Key, ...]
    jobs: tuple[Key, ...]
    hosted: tuple[tuple[int, int, int, int], ...] = ()

    def hosted_of(self, job: Key) -> list[Key]:
        """Return the processes that a cache's server runs for a job."""
        return [(pid, start) for owner, owner_start, pid, start in self.hosted if (owner, owner_start) == job]


def gate_line(gate: Gate) -> bytes:
    """Return the line that `read_gate` reads."""
    rest = dump(gate)[1:]
    return b'{"crc32": "%08x", %s\n' % (zlib.crc32(rest), rest)


def write_gate(folder: str | os.PathLike[str], line: bytes) -> None:
    """Overwrite the file with the line. The end of a longer one may stay after it. Raises OSError."""
    fd = os.open(os.path.join(folder, "gate.json"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size < len(line):
            os.posix_fallocate(fd, 0, len(line))  # if the disk is full, the old one stays complete
        os.pwrite(fd, line, 0)
    finally:
        os.close(fd)


def read_gate(folder: str | os.PathLike[str]) -> Gate | None:
    """Return what the engine last left; None if there is nothing, or nothing valid."""
    for _ in range(GATE_READS):
        try:
            line = read_bounded(os.path.join(folder, "gate.json")).partition(b"\n")[0]
        except OSError:
            return None
        checksum, _, rest = line.partition(b", ")
        if checksum == b'{"crc32": "%08x"' % zlib.crc32(rest):
            try:
                return parse(Gate, line, "gate.json")
            except ContractError:
                return None
        time.sleep(0.001)
    return None
