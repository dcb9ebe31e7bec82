"""Libraries of relocatable device code, whose PTX the driver links at run time. What is expected here happened on an
H100 and an H200 with driver 580 (`python -m bench.gpu`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from stoker.model.report import Report
from stoker.verify.pipeline import VerifyRequest, verify

Compile = Callable[..., Path]
PLAIN = {"LD_LIBRARY_PATH": ""}


def gencode(*targets: str) -> list[str]:
    """`80` for machine code, `ptx80` for PTX."""
    return [
        f"-gencode=arch=compute_{name.removeprefix('ptx')},code={'compute' if 'ptx' in name else 'sm'}_"
        f"{name.removeprefix('ptx')}"
        for name in targets
    ]


def linked(nvcc: Compile, name: str, *modules: Sequence[str]) -> Path:
    """A shared library of a few sources, each for its own targets; the device link is for those of the first."""
    objects = [
        nvcc(f"{name}-{number}.o", "-c", "-rdc=true", "-Xcompiler", "-fPIC", *gencode(*targets), sources=(source,))
        for number, (targets, source) in enumerate(zip(modules, ("k.cu", "m.cu"), strict=False))
    ]
    link = ("-shared", "-rdc=true", *gencode(*modules[0]))
    return nvcc(f"{name}.so", *link, sources=tuple(map(str, objects)))


def judged(path: Path, *devices: str) -> Report:
    return verify(VerifyRequest([str(path)], devices=list(devices), environment=PLAIN))


@pytest.mark.long
@pytest.mark.parametrize(
    ("modules", "verdict"),
    [
        ([["ptx80"]], "ptx-jit"),
        ([["ptx80"], ["ptx75"]], "ptx-jit"),
        ([["80", "ptx80"]], "ptx-jit"),
        ([["100", "ptx75"]], "ptx-jit"),
        ([["80", "ptx80"], ["80", "ptx100"]], "part"),
        ([["80", "ptx80"], ["80"]], "part"),
        ([["90"], ["ptx80"]], "native"),
        ([["80"]], "no"),
    ],
    ids=str,
)
def test_the_driver_links_the_ptx_of_each_source(nvcc: Compile, modules: Sequence[Sequence[str]], verdict: str) -> None:
    path = linked(nvcc, "-".join("_".join(targets) for targets in modules), *modules)

    [device] = judged(path, "H100").devices

    assert device.verdict == verdict


@pytest.mark.long
def test_nvccs_own_device_code_does_not_save_a_gpu(nvcc: Compile) -> None:
    """Every library holds libcudadevrt's machine code for all GPUs."""
    [device] = judged(linked(nvcc, "only-later", ["ptx80"]), "T4").devices

    assert device.verdict == "no"


@pytest.mark.long
def test_ptx_that_was_requested_is_present(nvcc: Compile) -> None:
    path = linked(nvcc, "requested", ["80", "ptx80"])

    report = verify(VerifyRequest([str(path)], devices=["H100"], arch_list="8.0+PTX", environment=PLAIN))

    assert {r.arch: r.state for r in report.requested} == {"sm_80": "present", "compute_80": "present"}


def test_a_wheels_library_is_judged_in_the_same_way(nvcc: Compile, wheel: Callable[..., Path]) -> None:
    path = linked(nvcc, "in-a-wheel", ["80", "ptx80"], ["80"])

    report = judged(wheel({"pack/lib.so": path.read_bytes()}), "H100")

    assert [d.verdict for d in report.devices] == ["part"]
    assert report.files[0].archs == judged(path, "H100").files[0].archs


def test_where_only_a_relocation_has_the_address_the_only_container_is_the_result(
    nvcc: Compile, tmp_path: Path
) -> None:
    """As lld writes it."""
    data = bytearray(linked(nvcc, "without-address", ["80", "ptx80"]).read_bytes())
    wrapper = data.index(b"\xb1\x43\x62\x46\x02\0\0\0")
    data[wrapper + 8 : wrapper + 16] = bytes(8)
    path = tmp_path / "lib.so"
    path.write_bytes(data)

    assert [d.verdict for d in judged(path, "H100").devices] == ["ptx-jit"]
