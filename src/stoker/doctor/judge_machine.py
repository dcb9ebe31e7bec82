"""Judges memory, swap, control groups, file systems and limits against a need. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import Limits, Memory, Volume
from stoker.doctor.need import GIB, MIB, Need
from stoker.model.units import format_bytes

USUAL_JOB = GIB
"""What a large C++ file takes; where no job is known, with less memory than this a build is in danger."""

TIGHT_DISK = GIB
HOPELESS_DISK = 16 * MIB
"""Free space, where the need is not known: worth a warning, and too little for any build that compiles."""

HOPELESS_SHARE = 0.5
"""Of the memory that is asked for, which is an estimate: with a smaller share of it a build cannot succeed."""

HOPELESS_DISK_SHARE = 0.25
"""The same of disk and of inodes, rougher estimates: the number of architectures and debug information multiply the
first, tests that are or are not built the second."""

TIGHT_INODES, HOPELESS_INODES = 10_000, 100

OPEN_FILES = 1024
"""What most systems give; a linker opens hundreds of objects, ninja two for each job."""

FEW_OPEN_FILES = 32
"""With fewer a compiler cannot open its own headers' chain, nor ninja its jobs' pipes."""

FEW_PROCESSES = 64
"""Left for this user: a job is a shell, a driver and a compiler proper; nvcc has more."""

USUAL_STACK = 8 * MIB
"""What most systems give; compilers recurse deeply and end by SIGSEGV with less."""

LARGE_FILE = GIB
SHORT_CPU_TIME = 3600
"""Seconds; the heaviest known kernels take minutes for each architecture."""

SLOW_KINDS = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"})
"""File systems of another machine: slow for a build, and dated by another clock."""


def judge_memory(memory: Memory, need: Need) -> Iterator[Check]:
    """Judge the machine's memory, the tightest control group, and swap."""
    swap = f"export USE_FLASH_ATTENTION=0 USE_MEM_EFF_ATTENTION=0  # or: {_SWAP}" if _attention(need) else _SWAP
    yield _room("memory", memory.total, memory.available, memory, need, "in this machine", swap)
    limit = memory.limit
    if limit is None:
        yield ok("memory limit", "no control group sets one below the machine's memory")
    else:
        raise_it = f"docker update --memory 16g --memory-swap 16g NAME  # or MemoryMax= of its unit ({limit.path})"
        yield _room("memory limit", limit.limit, limit.available, memory, need, f"for {limit.path}", raise_it)
    if memory.killed_as_one:
        why = f"one process killed for memory takes all of {memory.killed_as_one} with it, stoker too"
        remedy = f"echo 0 > {memory.killed_as_one}/memory.oom.group  # Kubernetes: singleProcessOOMKill: true"
        yield warn("memory.oom.group", why, remedy)
    yield _swap(memory, need)
    yield _cores(memory, need)


_SWAP = "fallocate -l 16G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile"


def _cores(memory: Memory, need: Need) -> Check:
    title = f"{memory.cores:g} may be used"
    if memory.cores < need.cores:
        return warn("cores", f"{title}; {need.what} takes very long with fewer than {need.cores}", "nproc")
    return ok("cores", title)


def _attention(need: Need) -> bool:
    return need.knobs == "pytorch" and need.job is not None and "flash" in need.job.name


def _room(name: str, size: int, available: int, memory: Memory, need: Need, of: str, remedy: str) -> Check:
    """Hold one limit against the heaviest job, which may go to swap where there is any."""
    title = f"{format_bytes(size)} {of}, {format_bytes(available)} free"
    job = need.job
    if size < need.memory:
        judge = fail if size + memory.swap_total < HOPELESS_SHARE * need.memory else warn
        return judge(name, f"{title}; {need.what} wants {format_bytes(need.memory)}", remedy)
    if job is None:
        if size < USUAL_JOB:
            return warn(name, f"{title}; a large C++ file takes {format_bytes(USUAL_JOB)}", remedy)
        return ok(name, title)
    heaviest = f"the heaviest known job takes {format_bytes(job.bytes)} ({job.name})"
    if job.bytes > size + memory.swap_total:
        judge = fail if job.measured else warn
        return judge(name, f"{title}; {heaviest}: it will be killed", remedy)
    if job.bytes > size:
        return warn(name, f"{title}; {heaviest}: it goes to swap", remedy)
    if job.bytes > available:
        return warn(name, f"{title}; {heaviest}: what else runs must end first", "ps aux --sort=-rss | head")
    return ok(name, f"{title}; {heaviest}: room for {available // job.bytes}")


def _swap(memory: Memory, need: Need) -> Check:
    room = memory.limit.limit if memory.limit is not None else memory.total
    if not memory.swap_total:
        if need.job is not None and 2 * need.job.bytes > room:
            why = f"none, and {format_bytes(room)} hold fewer than two of the heaviest known jobs"
            return warn("swap", why, _SWAP)
        return ok("swap", "none; stoker holds jobs back instead")
    title = f"{format_bytes(memory.swap_free)} of {format_bytes(memory.swap_total)} free"
    if memory.swap_free * 10 < memory.swap_total:
        return warn("swap", f"{title}: the machine is short of memory already", "ps aux --sort=-rss | head")
    return ok("swap", title)


def judge_volumes(volumes: tuple[Volume, Volume], need: Need) -> Iterator[Check]:
    """Judge the build folder, and where compilers put their intermediate files."""
    build, temporary = volumes
    yield _build_folder(build, need)
    yield _temporary_folder(temporary, need)


def _build_folder(volume: Volume, need: Need) -> Check:
    name, title = "build folder", _title(volume)
    remedy = f"du -xh -d 2 {quote(volume.folder) if volume.exists else '.'} | sort -h | tail"
    if not volume.writable:
        judge = fail if need.folder == "must" else warn
        return judge(name, f"{volume.folder} cannot be written to ({volume.kind})", f"ls -ld {quote(volume.folder)}")
    known, begun = bool(need.disk), volume.used_before
    if volume.free < HOPELESS_DISK or (volume.free < HOPELESS_DISK_SHARE * need.disk and not begun):
        return fail(name, f"{title}; {need.what} needs {format_bytes(need.disk or HOPELESS_DISK)}", remedy)
    inodes = _inodes(name, volume, need)
    if inodes is not None:
        return inodes
    if volume.free < (need.disk or TIGHT_DISK):
        why = f"a fresh build of {need.what} needs {format_bytes(need.disk)}" if known else "that is not much"
        return warn(name, f"{title}; {why}", remedy)
    if volume.kind in SLOW_KINDS:
        return warn(name, f"{title}: on another machine; slow, and dated by its clock", "build on a local disk")
    return ok(name, title)


def _inodes(name: str, volume: Volume, need: Need) -> Check | None:
    """Report that inodes ran out or may; None where they cannot."""
    if volume.inodes is None:
        return None
    why = f"{_title(volume)}, but only {volume.inodes} more files fit (inodes)"
    remedy = f"df -i {quote(volume.folder) if volume.exists else '.'}"
    fresh = 0 if volume.used_before else need.inodes
    if volume.inodes < max(HOPELESS_INODES, HOPELESS_DISK_SHARE * fresh):
        return fail(name, f"{why}; {need.what} makes {need.inodes or 'hundreds'}", remedy)
    if volume.inodes < max(TIGHT_INODES, fresh):
        return warn(name, f"{why}; {need.what} makes about {fresh}" if fresh else why, remedy)
    return None


def _temporary_folder(volume: Volume, need: Need) -> Check:
    name, title, remedy = "temporary folder", _title(volume), "export TMPDIR=/var/tmp"
    if not (volume.exists and volume.writable):
        # Tried with gcc 12 and nvcc 13.0: gcc takes /tmp instead, nvcc ends with "Could not open output file".
        why = f"cannot be written to ({volume.kind})" if volume.exists else "is not there"
        if need.cuda == "must":
            return fail(name, f"{volume.folder} {why}; nvcc takes no other", remedy)
        return warn(name, f"{volume.folder} {why}; compilers take /tmp instead, nvcc does not", remedy)
    if volume.free < HOPELESS_DISK or (volume.inodes is not None and volume.inodes < HOPELESS_INODES):
        inodes = "" if volume.inodes is None else f" and {volume.inodes} inodes"
        return fail(name, f"{title}{inodes}: no room for compilers' intermediate files", remedy)
    if volume.free < need.temporary_space:
        why = f"{title}; compilers' intermediate files take up to {format_bytes(need.temporary_space)}"
        return warn(name, why, remedy)
    if volume.kind == "tmpfs" and need.cuda != "no" and need.knobs and not need.in_memory:
        return warn(name, f"{title}: what nvcc writes there counts as memory", remedy)
    return ok(name, title)


def _title(volume: Volume) -> str:
    kind = f"{volume.kind}, " if volume.kind else ""
    return f"{volume.folder} ({kind}{format_bytes(volume.size)}) has {format_bytes(volume.free)} free"


def judge_limits(limits: Limits, need: Need) -> Iterator[Check]:
    """Judge what ulimit reports."""
    for name, judge in _LIMITS.items():
        soft = limits.soft[name]
        yield ok(f"limit: {name}", "unlimited") if soft is None else judge(f"limit: {name}", soft, limits, need)
    soft = limits.soft["CPU time"]
    if soft is not None and soft < SHORT_CPU_TIME:
        yield warn("limit: CPU time", f"the kernel kills each job after {soft} s of CPU time", "ulimit -t unlimited")
    locked = limits.soft["locked memory"]
    shown = "unlimited" if locked is None else format_bytes(locked)
    yield ok("limit: locked memory", f"{shown}; no build needs it, NCCL over InfiniBand does when it runs")


def _open_files(name: str, soft: int, limits: Limits, _need: Need) -> Check:
    hard = limits.hard["open files"]
    if soft >= OPEN_FILES:
        return ok(name, str(soft))
    wanted = OPEN_FILES if hard is None else min(OPEN_FILES, hard)
    judge = fail if soft < FEW_OPEN_FILES else warn
    return judge(name, f"{soft}; linkers and ninja want {OPEN_FILES}", f"ulimit -n {wanted}")


def _processes(name: str, soft: int, limits: Limits, _need: Need) -> Check:
    if limits.privileged:
        return ok(name, f"{soft}, which does not count for root")
    why = f"{soft}, of which {limits.processes} are taken"
    if soft - limits.processes < FEW_PROCESSES:
        return warn(name, f"{why}; each job takes 3 to 6", "ulimit -u unlimited")
    return ok(name, why)


def _stack(name: str, soft: int, _limits: Limits, _need: Need) -> Check:
    if soft >= USUAL_STACK:
        return ok(name, format_bytes(soft))
    why = f"{format_bytes(soft)}; compilers recurse deeply and want {format_bytes(USUAL_STACK)}"
    return warn(name, why, f"ulimit -s {USUAL_STACK // 1024}")


def _file_size(name: str, soft: int, _limits: Limits, need: Need) -> Check:
    if need.largest_file and soft < need.largest_file:
        why = f"{format_bytes(soft)}; {need.what} writes files of {format_bytes(need.largest_file)}"
        return fail(name, why, "ulimit -f unlimited")
    why = f"files cannot grow beyond {format_bytes(soft)}"
    return warn(name, why, "ulimit -f unlimited") if soft < LARGE_FILE else ok(name, why)


def _address_space(name: str, soft: int, _limits: Limits, need: Need) -> Check:
    job = need.job
    if job is not None and job.measured and job.bytes > soft:
        why = f"{format_bytes(soft)}; the heaviest known job takes {format_bytes(job.bytes)} ({job.name})"
        return fail(name, why, "ulimit -v unlimited")
    why = f"{format_bytes(soft)}: a compiler that wants more ends with 'virtual memory exhausted'"
    return warn(name, why, "ulimit -v unlimited")


_LIMITS = {
    "open files": _open_files,
    "processes": _processes,
    "stack": _stack,
    "file size": _file_size,
    "address space": _address_space,
}
