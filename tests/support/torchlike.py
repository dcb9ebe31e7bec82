"""A small project with the shape of a PyTorch checkout: its target names, and either era of its build."""

from __future__ import annotations

from pathlib import Path

CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(torchlike CXX)
add_library(flash_attention OBJECT EXCLUDE_FROM_ALL flash_fwd.cpp flash_bwd.cpp)
add_library(c10 SHARED c10.cpp)
add_library(torch_cuda SHARED cuda.cpp)
target_sources(torch_cuda PRIVATE $<TARGET_OBJECTS:flash_attention>)
target_link_libraries(torch_cuda c10)
"""

SETUP = """
import os, subprocess, sys
assert sys.argv[1:] == ["build", "--cmake-only"], sys.argv
subprocess.run(["cmake", "-GNinja", "-S", ".", "-B", "build"], check=True)
"""
"""What is left of the old era's setup.py: it stops behind the configure step."""

BACKEND = """
import os, pathlib, subprocess, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    subprocess.run(["cmake", "-GNinja", "-S", ".", "-B", "build"], check=True)
    target = ["--target", *settings["build.targets"].split(";")] if "build.targets" in settings else []
    subprocess.run(["cmake", "--build", "build", *target], check=True)
    name = "torch-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        if settings.get("install.components") != "none":
            wheel.write("build/libtorch_cuda.so", "torch/lib/libtorch_cuda.so")
        wheel.writestr("torch-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: torch\\nVersion: 1\\n")
        wheel.writestr("torch-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("torch-1.dist-info/RECORD", "")
    return name
"""
"""What pip calls in either era; of scikit-build-core's settings it knows the two that the profile uses."""

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "torch"
version = "1"
"""

SOURCES = ("flash_fwd", "flash_bwd", "c10", "cuda")


def write_torchlike(folder: Path, *, old: bool) -> Path:
    """The checkout; `old`: with setup.py and what belongs to it."""
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)
    for name in SOURCES:
        mend(folder, name)
    if old:
        (folder / "setup.py").write_text(SETUP)
        (folder / "tools" / "setup_helpers").mkdir(parents=True)
        (folder / "tools" / "setup_helpers" / "cmake.py").touch()
    return folder


def spoil(folder: Path, name: str) -> None:
    """Put a compile error into a source."""
    (folder / f"{name}.cpp").write_text("int x = no_such_name;\n")


def mend(folder: Path, name: str) -> None:
    """A source that compiles."""
    (folder / f"{name}.cpp").write_text(f"int {name}() {{ return 1; }}\n")
