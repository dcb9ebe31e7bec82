"""What architectures cost: from the shipped classes of kernels, from what is remembered, and from what was built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from stoker.config.paths import history_path
from stoker.config.priors import load_priors, shipped_priors
from stoker.doctor.need import Need
from stoker.launch.costs import with_cost
from stoker.record.history import History


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


def tree(folder: Path, *sources: str) -> Need:
    for name in sources:
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return Need(knobs="pytorch", source=str(folder / "tree"), build=str(folder / "tree/build"))


FLASH = "third_party/flash-attention/csrc/flash_attn/src"


def test_kernels_of_the_tree_are_counted_by_the_shipped_classes(tmp_path: Path) -> None:
    known = [f"{FLASH}/flash_bwd_hdim256_fp16_sm80.cu", f"{FLASH}/flash_fwd_hdim256_fp16_sm80.cu"]
    need = tree(tmp_path, *known, "aten/src/ATen/native/cuda/Sort.cu", "aten/src/ATen/native/cuda/Sort.cpp")
    cost = with_cost(need, {}).cost
    classes = {prior.name: prior for prior in load_priors([shipped_priors()])[0].classes}
    expected = sum(classes[name].curve.duration for name in ("flash-bwd-hdim256", "flash-fwd-hdim256"))
    assert (cost.files, cost.seconds, cost.rest) == (2, expected, 1)
    assert "priors.yaml" in cost.origin
    off = with_cost(need, {"USE_FLASH_ATTENTION": "0"}).cost
    assert (off.files, off.rest) == (0, 1), "a file of no known kind gets no figure"


def test_nothing_is_looked_for_where_no_kernel_is_built(tmp_path: Path) -> None:
    need = tree(tmp_path, f"{FLASH}/flash_bwd_hdim256_fp16_sm80.cu")
    for other in (Need(source=need.source, build=need.build), Need(source=need.source, knobs="pytorch", cuda="no")):
        assert with_cost(other, {}) == other


@pytest.mark.long
def test_what_this_folder_took_counts_before_what_others_took(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH: the CUDA toolkit is not installed")
    need = tree(tmp_path, f"{FLASH}/flash_bwd_hdim256_fp16_sm80.cu")
    build = Path(need.build)
    (build / "lib").mkdir(parents=True)
    (build / "k.cu").write_text("__global__ void k(int *p) { *p = 1; }\n")
    archs = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"]
    for more, name in ((["-c"], "k.cu.o"), (["-shared", "-Xcompiler", "-fPIC"], "lib/libtorch_cuda.so")):
        subprocess.run([nvcc, *archs, *more, "k.cu", "-o", name], cwd=build, check=True, capture_output=True)
    (build / "lib/other.so").write_text("no library\n" * 100_000)
    history = History(history_path())
    history.add("nvcc", "k.cu.o", "some", [(100.0, 2.0**30, "cicc")])
    history.add("nvcc", "gone.cu.o", "some", [(1000.0, 2.0**30, "cicc")])
    history.add("cxx", "k.cu.o", "some", [(1000.0, 2.0**30, "cc1plus")])
    history.close()
    cost = with_cost(need, {}).cost
    assert cost.files == 1
    assert cost.seconds == pytest.approx(50.0), "100 s for two architectures"
    assert cost.origin == "remembered of this folder, for 8.0 9.0"
    assert cost.library == "libtorch_cuda.so"
    assert [arch for arch, size in cost.sizes if size > 0] == ["8.0", "9.0"]
