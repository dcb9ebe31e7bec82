"""Measures the engine's cost of following icecream: a hundred hosts that compile four jobs each. See bench/README.md.

    python -m bench.icecream_hosts [--hosts 100] [--seconds 30] [--quick] [--json FILE] [--write]

Target: at most 1 % of one core (user and system). The scheduler is another process that answers like icecream 1.4; the
jobs' clients are files of a fake process table. One look per second, as in the engine, and 20 glances per second at
jobs that may be about to go elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import socket
import tempfile
import time
from pathlib import Path

from bench.figures import add_arguments, machine, publish, spread
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.remote.icecream import IcecreamReader
from stoker.sense.remote.icecream_scheduler import SchedulerAddress

JOBS_EACH = 4
LEAVING = 16
"""Jobs of the level, which are looked at 20 times a second until they are elsewhere."""

PARENT = "/home/me/pytorch/build/../aten/src/ATen/native/cpu"


def listing(hosts: int) -> bytes:
    """What the scheduler says."""
    lines = []
    for h in range(hosts):
        lines.append(f" host{h:03} (10.1.{h // 250}.{h % 250}:10245) [x86_64] speed=63.75 jobs=4/8 load=111")
        for n in range(JOBS_EACH):
            job = h * JOBS_EACH + n
            lines.append(f"   {job} COMP sub:me on:host{h:03} native/cpu/Kernel{job}.cpp.AVX2.cpp")
    return "".join(line + "\n" for line in lines).encode() + b"200 done\n"


def serve(listener: socket.socket, answer: bytes) -> None:
    """Answer one client after the other until this process is ended."""
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"200-ICECC 1.4.0: 25s uptime\n200 Use 'help' for help and 'quit' to quit.\n")
            while connection.recv(4096):
                connection.sendall(answer)


def clients(proc: Path, count: int) -> list[JobUse]:
    """So many jobs, each with a client that waits."""
    uses = []
    for job in range(count):
        pid = 10_000 + job
        place = proc / str(pid)
        (place / "task" / str(pid)).mkdir(parents=True)
        (place / "task" / str(pid) / "children").touch()
        (place / "cwd").symlink_to("/home/me/pytorch/build")
        words = ("icecc", "g++", "-O2", "-c", f"{PARENT}/Kernel{job}.cpp.AVX2.cpp", "-o", f"{job}.o")
        (place / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        known = JobProcess(pid - 1, 1, (1, 1), 0.0, words, f"{job}.o", "cxx", "icecream")
        uses.append(JobUse(known, 0, 0, 0.0, 0.0, "icecc", "running", sends="icecream", launchers=((pid, 1),)))
    return uses


async def follow(proc: Path, address: SchedulerAddress, uses: list[JobUse], seconds: float) -> tuple[float, int]:
    """CPU seconds a second, and the jobs that were seen elsewhere at the last look."""
    reader = IcecreamReader(proc, lambda _: address)
    leaving = [key for use in uses[:LEAVING] for key in use.launchers]
    reader.look(uses, time.time())
    await asyncio.sleep(1)  # the first look meets everybody for the first time
    began, spent, waits = time.monotonic(), time.process_time(), 0
    while time.monotonic() - began < seconds:
        waits = len(reader.look(uses, time.time()).waits)
        for _ in range(20):
            reader.glance(leaving, time.time())
            await asyncio.sleep(0.05)
    share = (time.process_time() - spent) / (time.monotonic() - began)
    reader.close()
    return share, waits


def measure(hosts: int, seconds: float) -> tuple[float, int]:
    """One round."""
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        server = multiprocessing.Process(target=serve, args=(listener, listing(hosts)), daemon=True)
        server.start()
        try:
            uses = clients(Path(folder), hosts * JOBS_EACH)
            address = SchedulerAddress("127.0.0.1", int(listener.getsockname()[1]) - 1)
            return asyncio.run(follow(Path(folder), address, uses, seconds))
        finally:
            server.kill()
            server.join()


async def _idle(seconds: float) -> float:
    """CPU seconds a second of a loop that only wakes as often."""
    began, spent = time.monotonic(), time.process_time()
    for _ in range(round(seconds * 20)):
        await asyncio.sleep(0.05)
    return (time.process_time() - spent) / (time.monotonic() - began)


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of 8 seconds")
    add_arguments(parser)
    args = parser.parse_args()
    seconds, rounds = (8.0, 1) if args.quick else (args.seconds, args.rounds)
    found = [measure(args.hosts, seconds) for _ in range(rounds)]
    share = spread([100 * each for each, _ in found])
    idle = 100 * asyncio.run(_idle(min(seconds, 8)))
    jobs = f"{args.hosts} hosts, {args.hosts * JOBS_EACH} jobs elsewhere, {found[-1][1]} of them recognised"
    loop = f"{idle:.2f} % of which are a loop that wakes 20 times a second"
    text = f"{machine()}.\n\n{jobs}: {share.text()} % of one core, {loop}.\n"
    publish("icecream_hosts", [list(f) for f in found], text, out=args.json, write=args.write, summary={"share": share})


if __name__ == "__main__":
    main()
