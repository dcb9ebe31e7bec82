"""A process's identity, and the few facts of /proc/PID/stat about its life. Unaware of builds."""

import os

Key = tuple[int, int]
"""A unique process: its pid, and its start in clock ticks since boot, because pids are reused."""

STAT_BYTES = 4096
"""More than /proc/PID/stat ever has: 52 numbers and a name."""

EXIT_CODE = 49
"""Index of the wait status among the fields after the name; 0 if ptrace would be refused (proc(5))."""


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the command's name: state, ppid, ...; none if the process is gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # a third of the cost of open(), for thousands
    except OSError:
        return []
    try:
        return os.read(fd, STAT_BYTES).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(fd)


def start_ticks(pid: int) -> int | None:
    """Return when the process started, in clock ticks since boot; None if it is gone or a zombie."""
    fields = _living_fields(pid)
    return int(fields[19]) if fields else None


def state_of(key: Key) -> str:
    """Return the state of that very process, a letter as in proc(5); empty if it is gone or a zombie."""
    fields = _living_fields(key[0])
    return fields[0].decode() if fields and int(fields[19]) == key[1] else ""


def _living_fields(pid: int) -> list[bytes]:
    fields = stat_fields(pid)
    return fields if fields and fields[0] not in (b"Z", b"X") else []


def key_of(pid: int) -> Key:
    """Return the identity of a process that existed just now; its start is 0 if it is gone."""
    return pid, start_ticks(pid) or 0


def lives(key: Key) -> bool:
    """Say whether that very process exists and is not a zombie.

    False for a pid below 1, which would stand for whole groups of processes (kill(2)).
    """
    return key[0] > 0 and start_ticks(key[0]) == key[1]


def pid_namespace(pid: int | str = "self") -> int:
    """Return the number of the PID namespace that a process is in; 0 where that may not be known."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return 0


def seen_here(key: Key, namespace: int) -> Key | None:
    """Return a process of another PID namespace as it is seen in ours; None if it is not below ours, or does not exist.

    Its start is the same number everywhere, since it counts from the machine's boot.
    """
    for name in filter(str.isdigit, os.listdir("/proc")):
        if pid_namespace(name) == namespace and start_ticks(int(name)) == key[1] and _innermost_pid(name) == key[0]:
            return int(name), key[1]
    return None


def _innermost_pid(name: str) -> int:
    """Return the pid of a process in its own namespace (NSpid of proc_pid_status(5)); 0 if it is gone."""
    try:
        with open(f"/proc/{name}/status", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[-1]) for line in lines if line.startswith(b"NSpid:")), 0)


def session_of(pid: int) -> int:
    """Return the session that the process is in, 0 if it is gone."""
    fields = stat_fields(pid)
    return int(fields[3]) if fields else 0


def death_signal(key: Key) -> int:
    """Return the signal that ended a process that is not reaped yet; 0 if none did, or if we may not read that."""
    fields = stat_fields(key[0])
    is_zombie = len(fields) > EXIT_CODE and fields[0] == b"Z" and int(fields[19]) == key[1]
    return int(fields[EXIT_CODE]) & 0x7F if is_zombie else 0
