"""Both modes, from a wheel as it was built to one that pip installs and Python imports elsewhere."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from package.conftest import KERNELS, PYTHON_WORDS, Machine
from stoker.model.packaged import Packaged
from stoker.package.package_wheel import PackageRequest, package_wheel
from stoker.package.packaging_error import PackagingError
from stoker.verify.pipeline import VerifyRequest, verify
from support.wheels import Environment, distribution, field_of, link, members_of


def packaged(machine: Machine, wheel: Path, mode: str, **words: object) -> Packaged:
    request = PackageRequest(wheel, mode, machine.root / mode, environment=machine.environment.variables, **words)  # type: ignore[arg-type]
    return package_wheel(request, lambda what, done, total: None)


def elsewhere(machine: Machine) -> Environment:
    """A fresh environment on a machine without the toolkit that the wheel was built with."""
    (machine.root / "libraries").rename(machine.root / "gone")
    return Environment.new(machine.root / "fresh")


def test_pypi_mode_requires_nvidias_packages_and_finds_them(machine: Machine) -> None:
    machine.install_nvidia()
    wheel = machine.wheel(requires=["numpy>=1", "nvidia-cublas; platform_system == 'Linux'"])
    before = hashlib.sha256(wheel.read_bytes()).digest()

    made = packaged(machine, wheel, "pypi")

    assert hashlib.sha256(wheel.read_bytes()).digest() == before
    # The symbols alone would do with manylinux_2_5; cuBLAS needs more.
    assert Path(made.output).name == "pack-1.0-py3-none-manylinux_2_27_x86_64.whl"
    assert field_of(Path(made.output), "Tag", "WHEEL") == ["py3-none-manylinux_2_27_x86_64"]
    assert field_of(Path(made.output), "Requires-Dist") == [
        "numpy>=1",
        'nvidia-cublas==13.1.0.3; platform_system == "Linux"',
        'nvidia-cuda-nvrtc==13.0.88; platform_system == "Linux"',
        'nvidia-cuda-runtime==13.0.96; platform_system == "Linux"',
    ]
    assert [(f.rpath_before, f.rpath) for f in made.files] == [
        ((str(machine.root / "libraries"),), ("$ORIGIN/../../nvidia/cu13/lib",))
    ]
    assert made.vendored == ()
    fresh = elsewhere(machine)
    machine.environment = fresh
    machine.cudart, machine.cublas, machine.nvrtc, machine.builtins = (
        machine.root / "gone" / f.name for f in (machine.cudart, machine.cublas, machine.nvrtc, machine.builtins)
    )
    machine.install_nvidia()
    fresh.install(Path(made.output))
    assert fresh.run(PYTHON_WORDS) == "321 libcublas.so.13 libcudart.so.13"


def test_bundle_mode_holds_the_libraries_and_what_they_load_by_name(machine: Machine) -> None:
    requires = ["nvidia-cublas==13.1.0.3", "cuda-toolkit[cudart]==13.0.2", "numpy"]

    made = packaged(machine, machine.wheel(requires=requires), "bundle")

    names = {Path(v.path).name for v in made.vendored}
    assert {re.sub("-[0-9a-f]{8}", "-HASH", n) for n in names} == {
        "libcudart-HASH.so.13", "libcublas.so.13", "libnvrtc-HASH.so.13", "libnvrtc-builtins.so.13.0",
    }  # fmt: skip
    assert field_of(Path(made.output), "Requires-Dist") == ["numpy"]
    assert made.dropped == ("nvidia-cublas==13.1.0.3", "cuda-toolkit[cudart]==13.0.2")
    fresh = elsewhere(machine)
    fresh.install(Path(made.output))
    [cudart] = [n for n in names if n.startswith("libcudart")]
    assert fresh.run(PYTHON_WORDS) == f"321 libcublas.so.13 {cudart}"


def test_a_bundle_of_nvrtc_without_its_builtins_is_refused(machine: Machine) -> None:
    wheel = machine.wheel()
    machine.builtins.unlink()

    with pytest.raises(PackagingError, match=r"libnvrtc\.so\.13 loads libnvrtc-builtins\.so by name"):
        packaged(machine, wheel, "bundle")


def test_beside_cudnn_nvrtc_keeps_the_name_by_which_that_loads_it(machine: Machine) -> None:
    folder = machine.root / "libraries"
    cudnn = link(folder / "libcudnn.so.9", "int cudnn(void) { return 1; }", soname="libcudnn.so.9")
    link(folder / "libcudnn_graph.so.9", "int graph(void) { return 1; }", soname="libcudnn_graph.so.9")
    kernels = machine.kernels("-Wl,--no-as-needed", str(cudnn)).read_bytes()

    made = packaged(machine, machine.wheel({"pack/_C.so": kernels}), "bundle")

    names = {Path(v.path).name for v in made.vendored}
    assert {"libcudnn.so.9", "libcudnn_graph.so.9", "libnvrtc.so.13"} <= names


def test_a_plug_in_that_cannot_load_here_is_left_out(machine: Machine) -> None:
    folder = machine.root / "libraries"
    cufile = link(folder / "libcufile.so.0", "int cufile(void) { return 1; }", soname="libcufile.so.0")
    mlx = link(machine.root / "libmlx5.so.1", "int mlx(void) { return 1; }", soname="libmlx5.so.1")
    plug_in = "int mlx(void); int r(void) { return mlx(); }"
    link(folder / "libcufile_rdma.so.1", plug_in, str(mlx), soname="libcufile_rdma.so.1")
    source = "int cufile(void); int g(void) { return cufile(); }"
    user = link(machine.root / "build/_C.so", source, str(cufile), rpath=str(folder))
    wheel = machine.wheel({"pack/_C.so": user.read_bytes()})

    made = packaged(machine, wheel, "bundle")

    assert len(made.vendored) == 1
    assert made.left_out == ("libcufile_rdma.so.1: needs libmlx5.so.1, which this machine does not have",)


@pytest.mark.parametrize("mode", ["pypi", "bundle"])
def test_the_rest_of_a_wheel_stays_as_it_is(machine: Machine, mode: str) -> None:
    machine.install_nvidia()
    wheel = machine.wheel()

    new = members_of(Path(packaged(machine, wheel, mode).output))

    old = members_of(wheel)
    assert old["pack/__init__.py"] == new["pack/__init__.py"]
    head, _, body = new["pack-1.0.dist-info/METADATA"].partition(b"\n\n")
    assert body == old["pack-1.0.dist-info/METADATA"].partition(b"\n\n")[2]
    assert "Author: Zoë".encode() in head.splitlines()


@pytest.mark.parametrize("mode", ["pypi", "bundle"])
@pytest.mark.parametrize("level", [0, 9])
def test_the_record_is_right(machine: Machine, mode: str, level: int) -> None:
    machine.install_nvidia()

    made = packaged(machine, machine.wheel(), mode, level=level)

    report = verify(VerifyRequest([made.output], environment=machine.environment.variables))
    assert [p for p in report.problems if p.severity != "info"] == []


def test_the_same_wheel_is_made_again_byte_by_byte(machine: Machine) -> None:
    wheel = machine.wheel()

    first, second = (Path(packaged(machine, wheel, "bundle").output).read_bytes() for _ in range(2))

    assert first == second


@pytest.mark.skipif(importlib.util.find_spec("auditwheel") is None, reason="auditwheel is not installed")
def test_the_tag_of_the_symbols_is_auditwheels(machine: Machine) -> None:
    machine.install_nvidia()
    source = "#include <math.h>\n#include <stdlib.h>\n" + KERNELS
    source += '{ return cudart() + (int)exp(atof(getenv("HOME"))) + arc4random(); }'
    target = link(machine.root / "build/libkernels.so", source, str(machine.cudart), "-lm", "-D_GNU_SOURCE")
    wheel = machine.wheel({"pack/deep/libkernels.so": target.read_bytes()})

    made = packaged(machine, wheel, "pypi")

    command = [sys.executable, "-W", "ignore", "-m", "auditwheel", "show", "--json", str(wheel)]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert made.tag_reasons[0].tag == shown["sym_tag"]


def test_libraries_of_the_wheel_find_each_other_at_any_depth(machine: Machine) -> None:
    machine.install_nvidia()
    kernels = machine.kernels()
    user = link(
        machine.root / "build/_C.so", "int versions(void); int both(void) { return versions(); }", str(kernels),
        rpath="$ORIGIN/deep:/opt/python/lib",
    )  # fmt: skip
    members = {
        "pack/deep/libkernels.so": kernels.read_bytes(),
        "pack-1.0.data/platlib/pack/_C.so": user.read_bytes(),
        "pack/plain.so": link(machine.root / "build/plain.so", rpath="/opt/python/lib").read_bytes(),
    }

    made = packaged(machine, machine.wheel(members), "pypi")

    assert {f.path: f.rpath for f in made.files} == {
        "pack/deep/libkernels.so": ("$ORIGIN/../../nvidia/cu13/lib",),
        "pack-1.0.data/platlib/pack/_C.so": ("$ORIGIN/deep",),
        "pack/plain.so": (),
    }


def test_what_no_package_has_is_copied_in_pypi_mode_too(machine: Machine) -> None:
    machine.install_nvidia()
    other = link(machine.root / "libraries/libother.so.4", "int other(void) { return 4; }", soname="libother.so.4")
    kernels = machine.kernels("-Wl,--no-as-needed", str(other))

    made = packaged(machine, machine.wheel({"pack/deep/libkernels.so": kernels.read_bytes()}), "pypi")

    assert [re.sub("-[0-9a-f]{8}", "-HASH", v.path) for v in made.vendored] == ["pack.libs/libother-HASH.so.4"]
    assert made.files[0].rpath == ("$ORIGIN/../../nvidia/cu13/lib", "$ORIGIN/../../pack.libs")


def test_an_extension_of_torch_requires_it_and_loads_by_itself(machine: Machine) -> None:
    machine.install_nvidia()
    torch = link(machine.root / "torch/libtorch.so", "int torch(void) { return 9; }", soname="libtorch.so")
    gomp = link(machine.root / "torch/libgomp.so.1", "int gomp(void) { return 1; }", soname="libgomp.so.1")
    members = {f"torch/lib/{f.name}": f.read_bytes() for f in (torch, gomp)}
    machine.environment.put(distribution("torch-2.11.0+cu130", members, "cp311-cp311-manylinux_2_28_x86_64"))
    source = "int torch(void), gomp(void), cudart(void); int all(void) { return torch() + gomp() + cudart(); }"
    extension = link(machine.root / "build/_C.so", source, str(torch), str(gomp), str(machine.cudart))

    made = packaged(machine, machine.wheel({"pack/_C.so": extension.read_bytes()}), "pypi")

    assert [p.requirement for p in made.requires] == ["nvidia-cuda-runtime==13.0.96", "torch==2.11.0"]
    assert made.tag == "manylinux_2_28_x86_64"
    assert made.vendored == ()  # torch's libgomp, not a second one
    (machine.root / "torch").rename(machine.root / "gone")
    machine.environment.install(Path(made.output))
    place = machine.environment.site / "pack/_C.so"
    assert machine.environment.run(f"import ctypes; print(ctypes.CDLL({str(place)!r}).all())") == "11"


def test_a_bundle_is_refused_for_an_extension_of_torch(machine: Machine) -> None:
    with pytest.raises(PackagingError, match="it requires torch, which brings a CUDA of its own"):
        packaged(machine, machine.wheel(requires=["torch>=2"]), "bundle")
    torch = link(machine.root / "torch/libtorch.so", "int torch(void) { return 9; }", soname="libtorch.so")
    extension = link(machine.root / "build/_C.so", "int torch(void); int g(void) { return torch(); }", str(torch))
    with pytest.raises(PackagingError, match=r"_C\.so needs libtorch\.so of torch"):
        packaged(machine, machine.wheel({"pack/_C.so": extension.read_bytes()}), "bundle")


def test_what_is_not_installed_is_named_with_its_package(machine: Machine) -> None:
    with pytest.raises(
        PackagingError, match=r"needs libcudart\.so\.13, and no package .* has it; install nvidia-cuda-runtime"
    ):
        packaged(machine, machine.wheel(), "pypi")


def test_a_tag_is_not_given_that_would_not_be_true(machine: Machine) -> None:
    machine.install_nvidia()
    wheel = machine.wheel()

    with pytest.raises(PackagingError, match=r"manylinux_2_17_x86_64 promises more .* nvidia-cublas 13\.1\.0\.3 needs"):
        packaged(machine, wheel, "pypi", plat="manylinux_2_17_x86_64")
    for tag, words in (("manylinux_2_28_s390x", "is for s390x"), ("musllinux_1_2_x86_64", "not a glibc tag")):
        with pytest.raises(PackagingError, match=words):
            packaged(machine, wheel, "pypi", plat=tag)
    assert packaged(machine, wheel, "pypi", plat="manylinux_2_28_x86_64").tag == "manylinux_2_28_x86_64"
    assert packaged(machine, wheel, "pypi", plat="linux_x86_64").tag == "linux_x86_64"


def test_a_pin_that_the_wheel_forbids_is_refused(machine: Machine) -> None:
    machine.install_nvidia()

    with pytest.raises(PackagingError, match=r"requires nvidia-cublas<13, and was built against 13\.1\.0\.3"):
        packaged(machine, machine.wheel(requires=["nvidia-cublas<13"]), "pypi")


def test_a_folder_whose_name_would_be_another_search_path_is_refused(machine: Machine) -> None:
    user = link(
        machine.root / "build/_C.so", "int versions(void); int g(void) { return versions(); }", str(machine.kernels())
    )
    members = {"pack/a:/tmp/b/libkernels.so": machine.kernels().read_bytes(), "pack/_C.so": user.read_bytes()}

    with pytest.raises(PackagingError, match="cannot stand in a search path"):
        packaged(machine, machine.wheel(members), "bundle")


def test_a_program_that_no_relative_path_serves_is_refused(machine: Machine) -> None:
    machine.install_nvidia()
    kernels = machine.kernels().read_bytes()

    with pytest.raises(PackagingError, match=r"data/bin/x needs libcudart\.so\.13, and is installed where"):
        packaged(machine, machine.wheel({"pack-1.0.data/data/bin/x": kernels}), "pypi")
