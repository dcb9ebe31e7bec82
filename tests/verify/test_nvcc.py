"""What nvcc writes is read as NVIDIA's own cuobjdump reads it."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.model.report import FileReport
from stoker.verify.pipeline import VerifyRequest, verify

pytestmark = pytest.mark.long

Compile = Callable[..., Path]
PLAIN = {"PATH": "/usr/bin:/bin"}

SM80 = "arch=compute_80,code=sm_80"
SM90_PTX = "arch=compute_90,code=[sm_90,compute_90]"
OBJECTS = {
    "one.o": ("-c", "-arch=sm_80"),
    "several.o": ("-c", "-gencode", SM80, "-gencode", "arch=compute_120,code=sm_120"),
    "ptx.o": ("-c", "-gencode", SM80, "-gencode", SM90_PTX),
    "only-ptx.o": ("-c", "-gencode", "arch=compute_80,code=compute_80"),
    "rdc.o": ("-c", "-rdc=true", "-gencode", SM80, "-gencode", SM90_PTX),
    "none.o": ("-c", "-gencode", SM90_PTX, "--compress-mode=none"),
    "speed.o": ("-c", "-gencode", SM90_PTX, "--compress-mode=speed"),
    "size.o": ("-c", "-gencode", SM90_PTX, "--compress-mode=size"),
    "a-and-f.o": (
        "-c", "-gencode", "arch=compute_90a,code=sm_90a", "-gencode", "arch=compute_100f,code=[sm_100f,compute_100f]",
        "-gencode", "arch=compute_103a,code=[sm_103a,compute_103a]",
    ),
    "by-itself.fatbin": ("-fatbin", "-gencode", SM80, "-gencode", SM90_PTX),
}  # fmt: skip


def only_file(path: Path, *devices: str, arch_list: str = "") -> FileReport:
    report = verify(VerifyRequest([str(path)], arch_list=arch_list, devices=devices or ["9.0"], environment=PLAIN))
    assert len(report.files) == 1
    return report.files[0]


def counts(file: FileReport) -> Counter[str]:
    return Counter({a.arch: a.count for a in file.archs})


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_read_as_cuobjdump_reads_it(
    nvcc: Compile, cuobjdump: Callable[[Path], Counter[str]], name: str
) -> None:
    path = nvcc(name, *OBJECTS[name])

    file = only_file(path)

    assert file.problems == ()
    assert counts(file) == cuobjdump(path)
    assert sum(counts(file).values()) > 0


@pytest.mark.parametrize("rdc", ["false", "true"])
def test_static_and_shared_libraries_are_read_as_cuobjdump_reads_them(
    nvcc: Compile, cuobjdump: Callable[[Path], Counter[str]], rdc: str
) -> None:
    both = {"sources": ("k.cu", "m.cu")}
    archive = nvcc(f"lib-{rdc}.a", "-lib", f"-rdc={rdc}", "-gencode", SM80, "-gencode", SM90_PTX, **both)
    shared = nvcc(f"lib-{rdc}.so", "-shared", "-Xcompiler", "-fPIC", f"-rdc={rdc}", "-gencode", SM90_PTX, **both)

    # What cuobjdump leaves out: the PTX of each source, which the driver may link at run time.
    relinked = Counter({"compute_90": 2} if rdc == "true" else {})
    assert counts(only_file(archive)) == cuobjdump(archive)
    assert counts(only_file(shared)) == cuobjdump(shared) + relinked
    assert counts(only_file(archive))["sm_80"] == 2


def test_the_numbers_of_an_object(nvcc: Compile) -> None:
    file = only_file(nvcc("a-and-f.o", *OBJECTS["a-and-f.o"]))

    found = {a.arch: a for a in file.archs}
    assert sorted(found) == ["compute_100f", "compute_103a", "sm_100f", "sm_103a", "sm_90a"]
    assert found["sm_90a"].kernels == 2
    assert found["sm_90a"].bytes > 2856 - 64
    assert found["compute_100f"].kind == "ptx"


def test_compression_hides_the_kernels_and_not_the_architecture(nvcc: Compile) -> None:
    squeezed = {a.arch: a for a in only_file(nvcc("size.o", *OBJECTS["size.o"])).archs}
    plain = {a.arch: a for a in only_file(nvcc("none.o", *OBJECTS["none.o"])).archs}

    assert squeezed["sm_90"].kernels is None
    assert plain["sm_90"].kernels == 2
    assert squeezed["sm_90"].bytes < plain["sm_90"].bytes
    assert squeezed["sm_90"].empty == plain["sm_90"].empty == 0


@pytest.mark.parametrize("mode", ["none", "speed", "size"])
def test_the_stub_that_the_linker_adds_is_no_code_for_its_architecture(nvcc: Compile, mode: str) -> None:
    """Linking without -arch adds an empty cubin for nvcc's default architecture, 7.5 in CUDA 13."""
    made = nvcc("pic.o", "-c", "-Xcompiler", "-fPIC", "-arch=sm_80")
    path = nvcc(f"stub-{mode}.so", "-shared", f"--compress-mode={mode}", sources=(str(made),))

    report = verify(VerifyRequest([str(path)], devices=["7.5", "8.0"], arch_list="7.5;8.0+PTX", environment=PLAIN))

    assert [d.verdict for d in report.devices] == ["no", "native"]
    assert {r.arch: r.state for r in report.requested} == {
        "sm_75": "missing", "sm_80": "present", "compute_80": "present",
    }  # fmt: skip
    assert report.exit_status() == 1


def test_the_larger_stub_of_a_debug_link_is_no_code_either(nvcc: Compile) -> None:
    made = nvcc("debug.o", "-c", "-G", "-Xcompiler", "-fPIC", "-gencode", SM80)
    path = nvcc("debug.so", "-shared", "-G", "-arch=sm_100", sources=(str(made),))

    report = verify(VerifyRequest([str(path)], devices=["8.0", "B200"], arch_list="8.0;10.0", environment=PLAIN))

    assert [d.verdict for d in report.devices] == ["native", "no"]
    assert {r.arch: r.state for r in report.requested} == {"sm_80": "present", "sm_100": "missing"}


def test_a_kernel_that_only_the_ptx_holds_is_there_for_the_gpus_that_compile_it(nvcc: Compile) -> None:
    """A source that defines its kernels from some architecture on leaves empty machine code for older ones."""
    gencode = ("-gencode", SM80, "-gencode", "arch=compute_90,code=compute_90")
    path = nvcc("newer.so", "-shared", "-Xcompiler", "-fPIC", *gencode, sources=("newer.cu",))

    report = verify(VerifyRequest([str(path)], devices=["8.0", "H100"], environment=PLAIN))

    assert [d.verdict for d in report.devices] == ["no", "ptx-jit"]


def test_a_library_without_any_kernel_has_none(nvcc: Compile) -> None:
    path = nvcc("host.so", "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90", sources=("host.cu",))

    assert not only_file(path).has_code


@pytest.mark.parametrize(
    "flags",
    [("-G", "-arch=sm_80"), ("-rdc=true", "-lineinfo", "-gencode=arch=compute_90,code=sm_90"),
     ("-rdc=true", "-gencode=arch=compute_100,code=sm_100"), ("-G", "-gencode=arch=compute_120,code=sm_120")],
)  # fmt: skip
def test_a_compressed_object_without_any_kernel_has_none_however_it_was_compiled(
    nvcc: Compile, flags: tuple[str, ...]
) -> None:
    name = "-".join(flags).replace("=", "-").replace(",", "-")

    empty = only_file(nvcc(f"host{name}.o", "-c", "--compress-mode=size", *flags, sources=("host.cu",)))
    full = only_file(nvcc(f"full{name}.o", "-c", "--compress-mode=size", *flags))

    assert empty.archs
    assert not empty.has_code
    assert full.has_code


def test_device_code_that_was_never_linked_is_told(nvcc: Compile, tmp_path: Path) -> None:
    import subprocess

    made = nvcc("rdc-pic.o", "-c", "-rdc=true", "-Xcompiler", "-fPIC", "-arch=sm_90")
    path = tmp_path / "forgotten.so"
    undefined = ["-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run(["gcc", "-shared", "-nostdlib", *undefined, str(made), "-o", str(path)], check=True)

    problems = only_file(path).problems

    assert any(p.severity == "error" and "never linked" in p.what for p in problems)


def test_device_code_that_was_never_linked_is_told_beside_code_that_was(nvcc: Compile, tmp_path: Path) -> None:
    """Such a library cannot even be loaded, whatever else is in it."""
    import subprocess

    relocatable = nvcc("rdc-pic.o", "-c", "-rdc=true", "-Xcompiler", "-fPIC", "-arch=sm_90")
    plain = nvcc("plain-pic.o", "-c", "-Xcompiler", "-fPIC", "-arch=sm_90", sources=("m.cu",))
    path = tmp_path / "half.so"
    undefined = ["-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run(
        ["gcc", "-shared", "-nostdlib", *undefined, str(plain), str(relocatable), "-o", str(path)], check=True
    )
    assert any("never linked" in p.what for p in only_file(path).problems)

    linked = nvcc("linked.so", "-shared", "-arch=sm_90", sources=(str(plain), str(relocatable)))
    assert only_file(linked).problems == ()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_library_in_a_wheel_is_read_as_on_disk(nvcc: Compile, wheel: Callable[..., Path], compression: int) -> None:
    path = nvcc("in-wheel.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", SM80, "-gencode", SM90_PTX)
    packed = wheel({"pack/lib.so": path.read_bytes()}, compression=compression)

    inside = only_file(packed)

    assert inside.path.endswith(".whl::pack/lib.so")
    assert inside.archs == only_file(path).archs


def test_a_cubin_by_itself_knows_its_variant(nvcc: Compile) -> None:
    for name in ("90", "90a", "100f", "120a"):
        file = only_file(nvcc(f"by-itself-{name}.cubin", "-cubin", f"-arch=sm_{name}"))
        assert counts(file) == {f"sm_{name}": 1}
        assert file.archs[0].kernels == 2
