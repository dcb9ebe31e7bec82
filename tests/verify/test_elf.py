"""ELF headers and the dynamic section, against readelf and by hand."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.verify.binary.byte_source import FileSource, MemorySource, UnreadableError
from stoker.verify.binary.elf import Dynamic, read_dynamic, read_elf

Compile = Callable[..., Path]


def dynamic_of(path: Path) -> Dynamic:
    with FileSource(path) as source:
        found = read_dynamic(source, read_elf(source))
    assert found is not None
    return found


def test_what_the_linker_is_told_is_read(cc: Compile) -> None:
    cc("libneeded.so.3", "int g(void) { return 2; }", "-Wl,-soname,libneeded.so.3")
    source = "int g(void); int f(void) { return g(); }"
    path = cc("libuser.so", source, "-Wl,-soname,libuser.so.1", "-Wl,-rpath,$ORIGIN/a:/b", "-Wl,--enable-new-dtags",
              str(cc("libneeded.so.3", "int g(void) { return 2; }", "-Wl,-soname,libneeded.so.3")))  # fmt: skip

    found = dynamic_of(path)

    assert found.soname == "libuser.so.1"
    assert found.needed[0] == "libneeded.so.3"
    assert found.runpath == ("$ORIGIN/a", "/b")
    assert found.rpath == ()


def test_the_old_search_path_is_told_from_the_new(cc: Compile) -> None:
    found = dynamic_of(cc("lib.so", "int f(void) { return 1; }", "-Wl,-rpath,/old", "-Wl,--disable-new-dtags"))

    assert (found.rpath, found.runpath) == (("/old",), ())


@pytest.mark.parametrize("path", ["/usr/bin/gcc", "/usr/bin/ld", "/usr/bin/cmake"])
def test_symbol_versions_agree_with_readelf(path: str) -> None:
    real = Path(path).resolve()
    if not real.exists():
        pytest.skip(f"{path} is not installed")
    text = subprocess.run(["readelf", "-V", str(real)], capture_output=True, text=True, check=True).stdout
    section = text.partition(".gnu.version_r")[2]
    expected = {
        library: set(re.findall(r"Name: (\S+)", body))
        for library, body in re.findall(r"File: (\S+)\s+Cnt: \d+\n(.*?)(?=\n[^\n]*File: |\Z)", section, re.DOTALL)
    }

    found = {library: set(versions) for library, versions in dynamic_of(real).versions}

    assert found == expected
    assert any(v.startswith("GLIBC_") for versions in found.values() for v in versions)


def test_a_statically_linked_file_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "object.o"
    subprocess.run(["gcc", "-c", "-x", "c", "-", "-o", str(path)], input=b"int f(void){return 1;}", check=True)

    with FileSource(path) as source:
        elf = read_elf(source)
        assert read_dynamic(source, elf) is None
    assert elf.machine_name in ("x86_64", "aarch64")
    assert any(s.name == ".text" for s in elf.sections)


def small_elf(order: str, *, wide: bool, machine: int) -> bytes:
    """An ELF file with a null section, a string table and one section named `.nv_fatbin`."""
    header_size, entry = (64, 64) if wide else (52, 40)
    names = b"\0.nv_fatbin\0.shstrtab\0"
    body = b"payload!"
    table = header_size + len(names) + len(body)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    fields = (1, machine, 1, 0, 0, table, 0, header_size, 0, 0, entry, 3, 1)
    header = ident + struct.pack(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"), *fields)

    def section(name: int, kind: int, offset: int, size: int) -> bytes:
        return struct.pack(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"), name, kind, 0, 0, offset, size, 0, 0, 0, 0)

    sections = (
        bytes(entry) + section(12, 3, header_size, len(names)) + section(1, 1, header_size + len(names), len(body))
    )
    return header + names + body + sections


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("order", "machine", "name"), [("<", 40, "armv7l"), (">", 22, "s390x"), (">", 9999, "9999")])
def test_both_sizes_and_both_byte_orders_are_read(order: str, machine: int, name: str, *, wide: bool) -> None:
    source = MemorySource(small_elf(order, wide=wide, machine=machine))

    elf = read_elf(source)

    assert elf.bits == (64 if wide else 32)
    assert name in elf.machine_name
    [section] = elf.named(".nv_fatbin")
    assert source.read(section.offset, section.size) == b"payload!"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\x7fELF", "cut off"),
        (b"MZ" + bytes(100), "not a program"),
        (b"\x7fELF" + bytes(12), "ELF class 0"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "cut off"),
    ],
)
def test_what_is_no_elf_file_is_told(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableError, match=words):
        read_elf(MemorySource(data))


def test_lying_section_headers_are_refused_before_memory_is_spent() -> None:
    good = bytearray(small_elf("<", wide=True, machine=62))
    for offset, value, words in ((60, 0xFFFF, "cut off"), (58, 8, "section headers of 8")):
        data = bytearray(good)
        struct.pack_into("<H", data, offset, value)
        with pytest.raises(UnreadableError, match=words):
            read_elf(MemorySource(bytes(data)))
    data = bytearray(good)
    struct.pack_into("<H", data, 60, 0)
    table = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, table + 32, 1 << 40)
    with pytest.raises(UnreadableError, match="at most"):
        read_elf(MemorySource(bytes(data)))
