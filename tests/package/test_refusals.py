"""What a wheel nobody vouches for, a full disk and a person's Ctrl-C do: one line, no half wheel."""

from __future__ import annotations

import random
import resource
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from package.conftest import TAG, Machine
from stoker.package.write_wheel import new_archive
from support.wheels import distribution, record, zipped

INFO = "pack-1.0.dist-info"


def stoker(machine: Machine, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stoker", "package", *words, "-o", str(machine.root / "out")]
    environment = machine.environment.variables
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


def left_in(machine: Machine) -> list[str]:
    folder = machine.root / "out"
    return [p.name for p in folder.iterdir()] if folder.exists() else []


def refused(machine: Machine, wheel: Path, *words: str) -> str:
    """The one line of a refusal; nothing is left of the attempt."""
    before = wheel.read_bytes()
    done = stoker(machine, str(wheel), "--mode", "bundle", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert wheel.read_bytes() == before
    assert not (machine.root / "out").exists()
    [line] = done.stderr.splitlines()
    return line


Change = Callable[[dict[str, bytes]], dict[Any, bytes]]


def with_link(files: dict[str, bytes]) -> dict[Any, bytes]:
    link = zipfile.ZipInfo("pack/link.so")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return {**files, link: b"/etc/passwd"}


def with_record(name: str) -> Change:
    return lambda files: files | {f"{INFO}/RECORD": files[f"{INFO}/RECORD"] + f"{name},,\n".encode()}


HOSTILE: dict[str, tuple[Change, str]] = {
    "up": (lambda files: files | {"../../etc/x.py": b""}, "outside the folder meant for it"),
    "absolute": (lambda files: files | {"/etc/x.py": b""}, "outside the folder meant for it"),
    "backslash": (lambda files: files | {"pack\\..\\x.py": b""}, "outside the folder meant for it"),
    "link": (with_link, "is a symbolic link"),
    "record": (with_record("/etc/passwd"), "its RECORD names '/etc/passwd'"),
    "changed": (lambda files: files | {"pack/__init__.py": b"import os"}, "pack/__init__.py: has 9 bytes, RECORD says"),
    "metadata": (lambda files: files | {f"{INFO}/METADATA": b"x" * (2 << 20)}, "its METADATA has 2.0 MiB"),
    "no-metadata": (lambda files: {k: v for k, v in files.items() if "METADATA" not in k}, "it has no METADATA"),
    "no-info": (lambda files: {k: v for k, v in files.items() if INFO not in k}, "has no .dist-info folder"),
    "half-elf": (
        lambda files: {k: v[:9000] if k.endswith(".so") else v for k, v in files.items()},
        "pack/deep/libkernels.so: ",
    ),
    "elf-of-nothing": (lambda files: files | {"pack/x.so": b"\x7fELF" + b"\xff" * 200}, "pack/x.so: ELF class 255"),
    "python": (lambda files: {k: v for k, v in files.items() if ".so" not in k}, "it holds no shared library"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_wheel_that_is_not_as_wheels_are_is_refused(machine: Machine, case: str) -> None:
    change, words = HOSTILE[case]
    files = {"pack/__init__.py": b"", "pack/deep/libkernels.so": machine.kernels().read_bytes()}
    if case in ("half-elf", "elf-of-nothing", "metadata"):  # with a RECORD that is true
        made = {k: v for k, v in change(distribution("pack-1.0", files, TAG)).items() if not k.endswith("RECORD")}
        made[f"{INFO}/RECORD"] = record(made, INFO)
    else:
        made = change(distribution("pack-1.0", files, TAG))

    assert words in refused(machine, zipped(machine.root / f"pack-1.0-{TAG}.whl", made))


def test_a_bomb_is_refused_before_it_is_unpacked(machine: Machine) -> None:
    wheel = machine.wheel()
    bomb = zipfile.ZipInfo("pack/zeros.bin")
    bomb.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(bomb, b"\0" * (20 << 20))
    data = bytearray(wheel.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"pack/zeros.bin"))
    data[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    wheel.write_bytes(data)

    line = refused(machine, wheel)

    assert "more than" in line or "unpacks to" in line


def test_bytes_that_do_not_have_their_checksum_are_refused(machine: Machine) -> None:
    wheel = machine.wheel()
    data = bytearray(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        checksum = archive.getinfo("pack/deep/libkernels.so").CRC.to_bytes(4, "little")
    data[data.rindex(checksum)] ^= 1
    wheel.write_bytes(data)

    assert "pack/deep/libkernels.so: it is damaged: its checksum is another" in refused(machine, wheel)


def test_what_cannot_be_a_wheel_is_refused(machine: Machine) -> None:
    text = machine.root / f"pack-1.0-{TAG}.whl"
    text.write_text("no zip file")
    assert "not a zip file" in refused(machine, text)
    done = stoker(machine, str(machine.root / "*.nothing"), "--mode", "pypi")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "there is no such wheel" in done.stderr


def test_a_wheel_is_not_replaced_by_what_is_made_of_it(machine: Machine) -> None:
    wheel = machine.wheel()
    done = stoker(machine, str(wheel), "--mode", "bundle")
    assert done.returncode == 0
    [made] = (machine.root / "out").glob("*.whl")
    before = made.read_bytes()

    again = stoker(machine, str(made), "--mode", "bundle")

    assert again.returncode == 1
    assert "name another folder with -o" in again.stderr
    assert made.read_bytes() == before


def test_a_full_disk_leaves_no_half_wheel(machine: Machine) -> None:
    wheel = machine.wheel({"pack/deep/libkernels.so": machine.kernels().read_bytes(), "pack/noise.bin": noise(3 << 20)})
    before = wheel.read_bytes()

    def as_if_full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = stoker(machine, str(wheel), "--mode", "bundle", preexec_fn=as_if_full)

    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"stoker: {machine.root / 'out'}: File too large; no wheel was written")
    assert left_in(machine) == []
    assert wheel.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_leaves_no_half_wheel(machine: Machine, number: int) -> None:
    files = {"pack/deep/libkernels.so": machine.kernels().read_bytes(), "pack/noise.bin": noise(40 << 20)}
    wheel = machine.wheel(files)
    out = machine.root / "out"
    command = [sys.executable, "-m", "stoker", "package", str(wheel), "--mode", "bundle", "-o", str(out)]
    process = subprocess.Popen(
        command, env=machine.environment.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list(out.glob(".stoker-package-*/*.whl")):
        assert process.poll() is None
        time.sleep(0.01)

    process.send_signal(number)
    process.communicate()

    assert process.returncode == 130
    assert left_in(machine) == []


def interrupted_with_an_open_member(path: Path, members: list[Any]) -> None:
    with new_archive(path, 6) as archive:
        members.append(archive.open("member", "w"))
        raise KeyboardInterrupt


def test_an_interrupt_while_a_member_is_opened_stays_an_interrupt(tmp_path: Path) -> None:
    members: list[Any] = []  # kept, since a member that nobody holds closes itself
    with pytest.raises(KeyboardInterrupt):
        interrupted_with_an_open_member(tmp_path / "w.whl", members)
    members[0].close()


def noise(size: int) -> bytes:
    """Bytes that deflate cannot shorten."""
    return random.Random(1).randbytes(size)
