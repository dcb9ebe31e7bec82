"""What an engine leaves to whoever stands in for it: `gate.json`, the level and which jobs are stopped.

It is written over in place, as ext4 and btrfs write out at once what is renamed over another file, and a busy disk
takes long. So the first line alone counts, with a checksum: a reader may meet parts of several.
"""

import os
import time
import zlib
from typing import NamedTuple

from stoker.contract.process import Key
from stoker.contract.strict_json import ContractError, dump, parse, read_bounded

GATE_READS = 20
"""How often the file is read before it counts as damaged: the engine may just be writing it."""


class Gate(NamedTuple):
    """How many jobs may run (0: none, a pause), and in which order stopped ones go on.

    `jobs` are those of living schedulers, and those whose scheduler was killed. `hosted` is what a cache's server runs
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
    """Write the line over the one before. Behind it the end of a longer one may stay. Raises OSError."""
    fd = os.open(os.path.join(folder, "gate.json"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size < len(line):
            os.posix_fallocate(fd, 0, len(line))  # where the disk is full, the old one stays whole
        os.pwrite(fd, line, 0)
    finally:
        os.close(fd)


def read_gate(folder: str | os.PathLike[str]) -> Gate | None:
    """Return what the engine left last; None if there is nothing, or nothing that makes sense."""
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
