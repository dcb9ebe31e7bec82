"""Where device code lies and what it says of itself: in nvcc's section, among other data, in files and in wheels."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.verify.binary.byte_source import Deadline, MemorySource
from stoker.verify.binary.device_code import ReadFile
from stoker.verify.binary.read_binary import read_binary
from stoker.verify.pipeline import VerifyRequest, verify

Compile = Callable[..., Path]


def read(data: bytes) -> ReadFile:
    return read_binary("x", MemorySource(data), Deadline()).report


@pytest.fixture
def embedding(cc: Compile, nvcc: Compile) -> Path:
    """A library with two containers as plain data, as XLA and MLIR embed them, beside the magic by itself."""
    fatbin = nvcc("embedded.fatbin", "-fatbin", "-gencode", "arch=compute_80,code=[sm_80,compute_80]")
    data = f"""
        __asm__(".section .rodata\\n.ascii \\"odd\\"\\n.incbin \\"{fatbin}\\"\\n.ascii \\"between\\"\\n"
                ".incbin \\"{fatbin}\\"\\n.long 0xBA55ED50\\n.text");
        unsigned magic(void) {{ static const unsigned value[40] = {{0xBA55ED50, 1}}; return value[0]; }}
    """
    return cc("embedding.so", data)


def test_containers_among_other_data_are_found(embedding: Path) -> None:
    report = read(embedding.read_bytes())

    assert report.problems == ()
    assert {a.arch: a.count for a in report.archs} == {"sm_80": 2, "compute_80": 2}
    assert report.modules == 2


def test_they_are_found_in_a_wheel_as_well(embedding: Path, nvcc: Compile, wheel: Callable[..., Path]) -> None:
    plain = nvcc("plain.so", "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90")
    path = wheel({"pack/embedding.so": embedding.read_bytes(), "pack/plain.so": plain.read_bytes()})

    inside = {f.path.rpartition("/")[2]: f for f in verify(VerifyRequest([str(path)], environment={})).files}

    assert inside["embedding.so"].archs == read(embedding.read_bytes()).archs
    assert inside["plain.so"].archs == read(plain.read_bytes()).archs


def test_code_that_was_never_device_linked_is_none_in_a_wheel_either(
    nvcc: Compile, wheel: Callable[..., Path], tmp_path: Path
) -> None:
    library = tmp_path / "unlinked.so"
    made = nvcc("unlinked.o", "-c", "-rdc=true", "-arch=sm_80", "-Xcompiler", "-fPIC")
    subprocess.run(["gcc", "-shared", str(made), "-o", str(library), "-Wl,--unresolved-symbols=ignore-all"], check=True)

    [inside] = verify(VerifyRequest([str(wheel({"pack/unlinked.so": library.read_bytes()}))], environment={})).files

    assert inside.archs == read(library.read_bytes()).archs == ()
    assert any("-rdc=true and never linked" in p.what for p in inside.problems)


def test_device_code_is_found_without_section_headers(embedding: Path, nvcc: Compile) -> None:
    for path in (embedding, nvcc("plain.so", "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90")):
        data = bytearray(path.read_bytes())
        struct.pack_into("<Q", data, 40, 0)
        struct.pack_into("<HHH", data, 58, 0, 0, 0)

        stripped = read(bytes(data))

        assert stripped.problems == ()
        assert stripped.archs == read(path.read_bytes()).archs


def test_a_host_library_without_section_headers_is_no_cause_for_a_warning(cc: Compile) -> None:
    data = bytearray(cc("host.so").read_bytes())
    struct.pack_into("<Q", data, 40, 0)

    assert read(bytes(data)).problems == ()


def test_dynamic_strings_may_be_larger_than_memory_should_be(cc: Compile) -> None:
    """libtensorflow_cc.so.2 has 87 MB of them."""
    data = bytearray(cc("big.so", "int f(void) { return 1; }", "-Wl,-soname,libbig.so.1").read_bytes())
    size = struct.pack("<QQ", 10, 90 << 20)  # DT_STRSZ
    at = next(i for i in range(0, len(data) - 16, 8)
              if data[i : i + 8] == size[:8] and 0 < int.from_bytes(data[i + 8 : i + 16], "little") < 4096)  # fmt: skip
    data[at : at + 16] = size

    binary = read_binary("x", MemorySource(bytes(data) + bytes(90 << 20)), Deadline())

    assert binary.report.problems == ()
    assert binary.dynamic is not None
    assert binary.dynamic.soname == "libbig.so.1"


def test_ptxas_says_which_cuda_it_is_from(nvcc: Compile) -> None:
    raw = read(
        nvcc("raw.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_100,code=sm_100").read_bytes()
    )
    packed = read(nvcc("packed.fatbin", "-fatbin", "-arch=sm_80", "-Xfatbin", "-compress-all").read_bytes())
    alone = read(nvcc("alone.cubin", "-cubin", "-arch=sm_90a").read_bytes())

    assert raw.toolkit is not None
    assert raw.toolkit[0] == alone.toolkit[0] == 13  # type: ignore[index]
    assert packed.toolkit == (13, 0), "by its format"


def test_a_blackwell_build_by_cuda_13_needs_its_driver(nvcc: Compile) -> None:
    """The runtime is linked in, so no library that it needs names CUDA 13."""
    library = nvcc("raw.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_100,code=sm_100")

    old, new = (
        verify(VerifyRequest([str(library)], devices=["B200"], driver_cuda=cuda)).devices[0]
        for cuda in ("12.8", "13.0")
    )

    assert (old.verdict, new.verdict) == ("no", "native")
    assert "needs CUDA 13" in old.why


def test_ptx_says_its_version_and_the_driver_that_it_needs(nvcc: Compile) -> None:
    [held] = read(nvcc("k.fatbin", "-fatbin", "-gencode", "arch=compute_90,code=compute_90").read_bytes()).archs

    assert (held.arch, held.ptx, held.driver) == ("compute_90", "9.0", "580.65.06")


def test_a_file_of_ptx_is_read(nvcc: Compile, tmp_path: Path) -> None:
    path = nvcc("kernels.ptx", "-ptx", "-arch=compute_90a")

    report = verify(VerifyRequest([str(path)], devices=["H100", "B200"], environment={}))

    [file] = report.files
    assert [(a.arch, a.ptx) for a in file.archs] == [("compute_90a", "9.0")]
    assert [d.verdict for d in report.devices] == ["ptx-jit", "no"]


@pytest.mark.parametrize("text", ["", "// nothing\n", ".version 8.0\n", "/*" * 3000, ".version 8.0 .target gfx942"])
def test_a_file_that_is_only_called_ptx_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fake.ptx"
    path.write_text(text)

    assert verify(VerifyRequest([str(path)], environment={})).exit_status() == 2


@pytest.mark.parametrize(("section", "toolkit"), [(".nvFatBinSegment", (12, 8)), (".rodata.wrapper", None)])
def test_a_runtime_that_is_linked_in_is_dated_by_the_ptx_that_it_registers(
    cc: Compile, section: str, toolkit: tuple[int, int] | None
) -> None:
    """Its machine code says nothing where it is compressed; a program without a runtime loads PTX by the driver."""
    text = b".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k()\n{ret;}\n".ljust(128, b"\0")
    entry = bytearray(64)
    struct.pack_into("<HHIQ", entry, 0, 1, 0x101, len(entry), len(text))
    struct.pack_into("<HHI", entry, 24, 7, 8, 80)
    container = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(text)) + entry + text
    bytes_of = ",".join(map(str, container))
    source = f"""
        __asm__(".section .nv_fatbin,\\"a\\"\\n.align 8\\nfat: .byte {bytes_of}\\n"
                ".section {section},\\"aw\\"\\n.long 0x466243b1, 1\\n.quad fat, 0\\n.text");
    """

    report = read(cc("registering.so", source).read_bytes())

    assert [a.arch for a in report.archs] == ["compute_80"]
    assert report.toolkit == toolkit


@pytest.mark.parametrize("many", [1, 300])
def test_ptx_that_lies_as_text_in_a_library_is_code(cc: Compile, wheel: Callable[..., Path], many: int) -> None:
    """Mojo hands it to the driver. A compiler's own words, and functions to link with, are none."""
    lines = [".version 8.7", ".target sm_120a", ".address_size 64", ".visible .entry k()", "{ret;}"]
    kernel = "//\\n" + "\\n".join(lines)
    words = ".version \\0.target sm_\\0.version 8.0\\n.target sm_80\\n.func f()\\n{ret;}"
    texts = [f'const char text{i}[] = "{kernel} // {i}";' for i in range(many)]
    library = cc("mojo.so", "\n".join([*texts, f'const char words[] = "{words}";']))

    report = read(library.read_bytes())
    [inside] = verify(VerifyRequest([str(wheel({"pack/mojo.so": library.read_bytes()}))], environment={})).files

    assert [(a.arch, a.ptx) for a in report.archs] == [("compute_120a", "8.7")]
    assert report.archs[0].count == many
    assert inside.archs == report.archs
