"""A build's RAM disk, as its specification has it. Unaware of who made it and of what the jobs put there."""

from __future__ import annotations

from stoker.act import ramdisk
from stoker.contract.spec_file import BuildSpec
from stoker.model.events import Event, Noticed
from stoker.sense.machine.ramdisk import RamDiskReader
from stoker.sense.proc.processes import read_cmdline


def reader_of(spec: BuildSpec) -> RamDiskReader | None:
    """What measures it, None for a build without one."""
    disk = spec.ramdisk
    return RamDiskReader(ramdisk.tmpdir(disk.folder), disk.size) if disk is not None else None


def let_go(spec: BuildSpec) -> list[Event]:
    """The build is over: remove the folder, as the supervisor did if it was alive, and say so if it must stay."""
    if spec.ramdisk is None:
        return []
    folder = spec.ramdisk.folder
    users = ramdisk.users(folder)
    if not users and ramdisk.remove(folder):
        return []
    if not users:
        text = f"{folder} cannot be removed: files of other users are in it, or something is mounted there"
        return [Noticed("warning", text)]
    names = ", ".join(sorted({f"{' '.join(read_cmdline(pid)[:1])} (process {pid})" for pid in users[:3]}))
    text = f"{folder} stays: {names} still runs with its TMPDIR there; the first build after its end removes it"
    return [Noticed("info", text)]
