"""What compiles device code when it runs is told from what is merely linked with NVRTC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.verify.pipeline import VerifyRequest, verify

Compile = Callable[..., Path]
Write = Callable[..., Path]
KERNEL = "__global__ void first(int *p) { *p = 1; }\n"
CALL = 'extern "C" int CALLED(void); extern "C" int f(void) { return CALLED(); }\n'
ONLY = ("-gencode", "arch=compute_90a,code=sm_90a")
PLAIN = {"PATH": "/usr/bin:/bin"}


def verdict(path: Path, gpu: str) -> str:
    return verify(VerifyRequest([str(path)], devices=[gpu], environment=PLAIN)).verdict


@pytest.mark.parametrize(("call", "judged"), [("", "no"), ("nvrtcVersion", "part"), ("cuModuleLoadData", "part")])
@pytest.mark.parametrize("packed", [True, False])
def test_a_library_for_other_gpus_runs_in_part_only_if_it_calls_a_compiler(
    tmp_path: Path, nvcc: Compile, cc: Compile, wheel: Write, call: str, judged: str, packed: bool
) -> None:
    """Torch's link line has every extension need libnvrtc.so, as it has sglang-kernel's."""
    stub = cc("libnvrtc.so.12", f"int {call or 'other'}(void) {{ return 12; }}", "-Wl,-soname,libnvrtc.so.12")
    source = tmp_path / "calling.cu"
    source.write_text(f"{KERNEL}{CALL.replace('CALLED', call) if call else ''}")
    link = ("-Xlinker", f"--no-as-needed,{stub},-rpath,$ORIGIN")
    made = nvcc(f"{call}ops.so", "-shared", "-Xcompiler", "-fPIC", *ONLY, *link, sources=(str(source),))
    user = tmp_path / "ops.so"
    user.write_bytes(made.read_bytes())
    place = {"pack/ops.so": user.read_bytes(), "pack/libnvrtc.so.12": stub.read_bytes()}

    report = verify(VerifyRequest([str(wheel(place) if packed else user)], devices=["T4"], environment=PLAIN))

    read = next(f for f in report.files if f.path.endswith("ops.so"))
    assert read.loads, report.problems
    assert report.devices[0].verdict == judged, (report.devices[0].why, report.problems)


@pytest.mark.parametrize("packed", [True, False])
def test_lto_code_among_the_data_of_a_host_library_lacks_no_device_link(
    nvcc: Compile, cc: Compile, wheel: Write, packed: bool
) -> None:
    """nvidia-libmathdx-cu12 hands such code to the linker that it calls."""
    code = nvcc("lto.fatbin", "-fatbin", "-gencode", "arch=compute_90,code=lto_90")
    library = cc("libdx.so", f'asm(".section .rodata\\n.incbin \\"{code}\\"\\n.text"); int f(void) {{ return 1; }}')

    assert verdict(wheel({"pack/libdx.so": library.read_bytes()}) if packed else library, "H100") == "none"


def test_lto_code_in_an_object_still_needs_its_device_link(nvcc: Compile) -> None:
    made = nvcc("lto.o", "-c", "-rdc=true", "-gencode", "arch=compute_90,code=lto_90")

    assert verdict(made, "H100") == "no"
