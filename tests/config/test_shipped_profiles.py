"""The shipped profiles: without fault, with sources, and right about both eras of PyTorch's build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stoker.config.paths import data_dir
from stoker.config.profiles.conditions import obstacle
from stoker.config.profiles.load import load_profile, read_profile

FILES = sorted(f for f in data_dir("profiles").glob("*.yaml") if f.name != "priors.yaml")
NAMES = [
    "flash-attention", "llvm", "make", "ninja", "pytorch", "pytorch-32gb", "pytorch-bundle", "pytorch-cpu",
    "pytorch-fleet", "pytorch-manylinux", "pytorch-pypi", "vllm", "xformers",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_profiles_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_they_are_all_there() -> None:
    assert sorted(file.stem for file in FILES) == NAMES


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_each_is_without_fault_and_says_what_it_is(file: Path) -> None:
    profile, faults = read_profile(file)
    assert faults == []
    assert profile is not None
    assert profile.description
    assert profile.steps


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_figure_has_its_source_beside_it(file: Path) -> None:
    for before, line in zip(["", *(lines := file.read_text().splitlines())], lines, strict=False):
        if re.match(r"  (disk|memory|cores|cuda|cmake|heavy_level|nvcc_threads): ", line):
            assert "#" in line or before.lstrip().startswith("#"), f"{file.name}: no source beside {line.strip()!r}"


@pytest.mark.parametrize("name", ["pytorch", "pytorch-32gb", "vllm", "xformers"])
def test_architectures_reach_the_build_only_if_there_are_some(name: str) -> None:
    assert load_profile(name).env["TORCH_CUDA_ARCH_LIST"] == ""
    asked = load_profile(name, {"arch": "8.0;9.0+PTX"})
    assert asked.env["TORCH_CUDA_ARCH_LIST"] == "8.0;9.0+PTX"
    assert "TORCH_CUDA_ARCH_LIST" in asked.chosen


def steps(folder: Path, **settings: str) -> list[str]:
    profile = load_profile("pytorch-32gb", settings)
    return [step.name for step in profile.steps if not obstacle(step.when, profile, folder)]


def test_heavy_kernels_come_first_in_both_eras_of_pytorch(tmp_path: Path) -> None:
    assert steps(tmp_path) == ["heavy-objects", "wheel"]
    (tmp_path / "tools" / "setup_helpers").mkdir(parents=True)
    (tmp_path / "tools" / "setup_helpers" / "cmake.py").touch()
    assert steps(tmp_path) == ["configure", "heavy", "wheel"]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "build.ninja").touch()
    assert steps(tmp_path) == ["heavy", "wheel"]
    assert steps(tmp_path, heavy="") == ["wheel"]


def test_few_heavy_kernels_run_at_once_and_the_rest_as_memory_allows() -> None:
    levels = {step.name: step.level for step in load_profile("pytorch-32gb").steps}
    assert levels == {"configure": None, "heavy": 4, "heavy-objects": 4, "wheel": None}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_no_wheel_that_fails_takes_its_objects_along(file: Path) -> None:
    """pip has setup.py clean up behind it, unless it builds as PEP 517 says."""
    profile = load_profile(file.stem)
    if any("pip" in step.command for step in profile.steps):
        assert profile.env.get("PIP_USE_PEP517") == "1"
        assert all("--no-build-isolation" in step.command for step in profile.steps if "pip" in step.command)


@pytest.mark.parametrize("mode", ["pypi", "bundle"])
def test_pytorch_is_packaged_in_both_modes(mode: str) -> None:
    profile = load_profile(f"pytorch-{mode}", {"arch": "8.6;12.0+PTX", "dist": "out"})
    wheel, package = profile.steps
    assert wheel.command == load_profile("pytorch", {"dist": "out"}).steps[0].command
    assert package.words[:5] == ("stoker", "package", "out/torch-*.whl", "--mode", mode)
    assert profile.verify == (f"dist/{mode}/torch-*.whl",)
    # Linked in, or shared: what the mode is about.
    linked = {name: profile.env[name] for name in ("ATEN_STATIC_CUDA", "USE_CUDA_STATIC_LINK", "USE_STATIC_NCCL")}
    assert set(linked.values()) == {"1" if mode == "bundle" else "0"}
