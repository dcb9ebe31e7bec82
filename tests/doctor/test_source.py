"""Source trees: submodules of real git repositories, dates in the future, and what CMake left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from stoker.doctor.find_source import look_at_dates, submodules
from stoker.doctor.recognise import recognise
from support.clinic import Clinic, one


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, *modules: tuple[str, Path]) -> Path:
    """A git repository with a file, and submodules: (path, repository)."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "file.c").write_text("int x;\n")
    for path, module in modules:
        git(folder, "submodule", "-q", "add", str(module), path)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    return folder


@pytest.fixture
def upstream(clinic: Clinic) -> Path:
    """A repository with a submodule that has one of its own."""
    inner = repository(clinic.root / "inner")
    outer = repository(clinic.root / "outer", ("nested", inner))
    return repository(clinic.root / "upstream", ("third_party/outer", outer), ("third_party/inner", inner))


def clone(clinic: Clinic, upstream: Path, *options: str) -> None:
    shutil.rmtree(clinic.tree)
    git(clinic.root, "clone", "-q", *options, str(upstream), str(clinic.tree))


def test_submodules_that_were_not_fetched(clinic: Clinic, upstream: Path) -> None:
    clone(clinic, upstream)
    check = clinic.check("submodules")
    assert check.status == "warn"
    assert "2 of 2 missing" in check.why
    assert "third_party/outer" in check.why
    assert check.remedy == f"git -C {clinic.tree} submodule update --init --recursive"
    clinic.wants(submodules="must")
    assert clinic.check("submodules").status == "fail"


def test_the_remedy_repairs_it(clinic: Clinic, upstream: Path) -> None:
    clone(clinic, upstream)
    clinic.wants(submodules="must")
    words = clinic.check("submodules").remedy.split()
    git(clinic.root, *words[1:])
    check = clinic.check("submodules")
    assert check.status == "ok"
    assert "3" in check.why


def test_a_nested_submodule_that_was_not_fetched(clinic: Clinic, upstream: Path) -> None:
    clone(clinic, upstream)
    git(clinic.tree, "submodule", "-q", "update", "--init")
    clinic.wants(submodules="must")
    check = clinic.check("submodules")
    assert check.status == "warn", "a build may do without"
    assert "1 of 3 missing: third_party/outer/nested" in check.why


def test_an_archive_without_git_is_to_be_cloned_anew(clinic: Clinic, upstream: Path) -> None:
    clone(clinic, upstream)
    shutil.rmtree(clinic.tree / ".git")
    check = clinic.check("submodules")
    assert "not a git checkout" in check.why
    assert check.remedy.startswith("git clone --recursive")


def test_submodules_stay_inside_the_tree(tmp_path: Path) -> None:
    (tmp_path / ".gitmodules").write_text('[submodule "a"]\n\tpath = ../../etc\n[submodule "b"]\n\tpath = /etc\n')
    assert list(submodules(str(tmp_path))) == []


def test_a_file_dated_in_the_future(clinic: Clinic) -> None:
    day = time.time() + 86400
    os.utime(clinic.file("src/late.c"), (day, day))
    clinic.file("src/fine.c")
    check = clinic.check("clock")
    assert check.status == "warn"
    assert "src/late.c" in check.why
    assert "1 of 2 files" in check.why
    assert "24 h" in check.why
    subprocess.run(["sh", "-c", check.remedy], check=True)
    assert clinic.check("clock").status == "ok"


def test_a_cmake_file_far_in_the_future_fails_for_ninja_would_never_end(clinic: Clinic) -> None:
    day = time.time() + 86400
    os.utime(clinic.file("cmake/deep/Options.cmake"), (day, day))
    check = clinic.check("clock")
    assert check.status == "warn"
    assert "if the build reads it" in check.why
    assert "cmake/deep/Options.cmake" in check.why
    os.utime(clinic.file("CMakeLists.txt"), (day, day))
    check = clinic.check("clock")
    assert check.status == "fail"
    assert "CMakeLists.txt" in check.why


def test_a_clock_a_second_off_is_nothing(clinic: Clinic) -> None:
    path = clinic.file("a.c")
    now = path.stat().st_mtime - 1.5
    assert look_at_dates(str(clinic.tree), now).future == 0
    assert look_at_dates(str(clinic.tree), now - 60).future == 1


def test_a_walk_without_time_says_that_it_is_not_complete(clinic: Clinic) -> None:
    clinic.file("a.c")
    found = look_at_dates(str(clinic.tree), 0.0, seconds=0.0)
    assert not found.complete


def test_links_are_not_followed_round_and_round(clinic: Clinic) -> None:
    (clinic.tree / "loop").symlink_to(clinic.tree)
    clinic.file("a.c")
    assert look_at_dates(str(clinic.tree), time.time()).looked_at == 1


def test_a_build_folder_that_was_configured_for_another_tree(clinic: Clinic) -> None:
    other = clinic.root / "other"
    other.mkdir()
    (other / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.5...3.30)\nproject(x NONE)\n")
    subprocess.run(["cmake", "-S", str(other), "-B", str(clinic.tree / "build")], check=True, capture_output=True)
    check = clinic.check("CMake cache")
    assert check.status == "fail"
    assert str(other) in check.why
    subprocess.run(["sh", "-c", check.remedy], check=True)
    assert all(check.name != "CMake cache" for check in clinic.examine().checks)


def test_a_compiler_that_was_configured_and_is_gone(clinic: Clinic) -> None:
    own = clinic.root / "g++-old"
    own.symlink_to("/usr/bin/g++")
    clinic.file("CMakeLists.txt", "cmake_minimum_required(VERSION 3.5...3.30)\nproject(x CXX)\n")
    words = ["cmake", "-S", str(clinic.tree), "-B", str(clinic.tree / "build"), f"-DCMAKE_CXX_COMPILER={own}"]
    subprocess.run(words, check=True, capture_output=True)
    assert clinic.check("CMake cache").status == "ok"
    own.unlink()
    check = clinic.check("CMake cache")
    assert check.status == "warn"
    assert f"was configured with {own}, no longer there" in check.why


def test_another_generator_than_before(clinic: Clinic) -> None:
    clinic.file("CMakeLists.txt", "cmake_minimum_required(VERSION 3.5...3.30)\nproject(x NONE)\n")
    build = ["cmake", "-G", "Unix Makefiles", "-S", str(clinic.tree), "-B", str(clinic.tree / "build")]
    subprocess.run(build, check=True, capture_output=True)
    assert clinic.check("CMake cache").status == "ok"
    clinic.env["CMAKE_GENERATOR"] = "Ninja"
    assert clinic.check("CMake cache").status == "warn", "CMake goes by its cache"
    clinic.wants(knobs="pytorch")
    check = clinic.check("CMake cache")
    assert check.status == "fail"
    assert "Unix Makefiles" in check.why


def test_files_of_the_need(clinic: Clinic) -> None:
    clinic.file("there.txt")
    clinic.wants(files=("there.txt", "gone.txt", "gone-too"))
    found = clinic.examine()
    assert "no gone.txt and no gone-too in" in one(found, "file gone.txt").why
    assert one(found, "file gone.txt").status == "fail"
    assert all(check.name != "file there.txt" for check in found.checks)


def test_a_file_of_a_submodule_that_was_not_fetched_has_the_remedy_that_fetches_it(
    clinic: Clinic, upstream: Path
) -> None:
    clone(clinic, upstream)
    clinic.wants(files=("third_party/inner/file.c",))
    check = clinic.check("file third_party/inner/file.c")
    assert check.status == "fail"
    assert "the submodule third_party/inner was not fetched" in check.why
    git(clinic.root, *check.remedy.split()[1:])
    assert all(check.name != "file third_party/inner/file.c" for check in clinic.examine().checks)


def pytorch(clinic: Clinic, standard: int = 17) -> None:
    for folder in ("aten/src/ATen", "torch/csrc"):
        (clinic.tree / folder).mkdir(parents=True)
    clinic.file("CMakeLists.txt", f"cmake_minimum_required(VERSION 3.10)\nset(CMAKE_CXX_STANDARD {standard} CACHE)\n")


def test_pytorchs_tree_is_known_by_its_folders(clinic: Clinic) -> None:
    pytorch(clinic)
    need = recognise(str(clinic.tree), {})
    assert (need.what, need.knobs, need.cuda, need.gcc) == ("PyTorch", "pytorch", "may", (9, 3))
    assert need.job is not None
    assert "flash" in need.job.name
    pytorch_20 = clinic.root / "twenty"
    shutil.copytree(clinic.tree, pytorch_20)
    (pytorch_20 / "CMakeLists.txt").write_text("set(CMAKE_CXX_STANDARD 20)\n")
    assert recognise(str(pytorch_20), {}).gcc == (11, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.11,<3.15"\n'),
        ("setup.py", "python_min_version = (3, 11, 0)\n"),
    ],
)
def test_what_pytorch_needs_changes_with_its_releases_and_is_read_from_the_tree(
    clinic: Clinic, name: str, text: str
) -> None:
    pytorch(clinic)
    assert (recognise(str(clinic.tree), {}).cuda_version, recognise(str(clinic.tree), {}).python) == ((), ())
    clinic.file("cmake/public/cuda.cmake", 'message(FATAL_ERROR "PyTorch requires CUDA 11.0 or above.")\n')
    clinic.file(name, text)
    need = recognise(str(clinic.tree), {})
    assert (need.cuda_version, need.python) == ((11, 0), (3, 11))


@pytest.mark.parametrize(("value", "cuda", "heavy"), [("1", "must", True), ("OFF", "no", False)])
def test_its_switches_say_what_it_needs(clinic: Clinic, value: str, cuda: str, heavy: bool) -> None:
    pytorch(clinic)
    need = recognise(str(clinic.tree), {"USE_CUDA": value})
    assert need.cuda == cuda
    assert need.job is not None
    assert ("flash" in need.job.name) == heavy


def test_an_extension_of_torch_is_known_by_its_setup(clinic: Clinic) -> None:
    clinic.file("setup.py", "from torch.utils.cpp_extension import CUDAExtension\n")
    need = recognise(str(clinic.tree), {"TMPDIR": "/var/tmp"})
    assert (need.knobs, need.python_headers, need.temporary) == ("extension", "must", "/var/tmp")


SETUP = """from torch.utils.cpp_extension import CUDAExtension
def cuda_archs():
    return os.getenv("FLASH_ATTN_CUDA_ARCHS", "80;90;100").split(";")
if "80" in cuda_archs():
    pass
if bare_metal_version >= Version("11.8") and "90" in cuda_archs():
    pass
"""


def test_flash_attentions_own_list_is_read_from_its_setup(clinic: Clinic) -> None:
    clinic.file("setup.py", SETUP)
    (clinic.tree / "csrc/flash_attn").mkdir(parents=True)
    need = recognise(str(clinic.tree), {})
    assert (need.arch_variable, need.arch_choice) == ("FLASH_ATTN_CUDA_ARCHS", ("80", "90"))
    assert need.arch_default == "80;90;100"
    clinic.file("setup.py", SETUP.replace("FLASH_ATTN_CUDA_ARCHS", "OTHER"))
    need = recognise(str(clinic.tree), {})
    assert (need.arch_variable, need.arch_choice) == ("TORCH_CUDA_ARCH_LIST", ())


def test_any_other_tree_and_a_build_folder_itself(clinic: Clinic) -> None:
    assert recognise(str(clinic.tree), {}).build == f"{clinic.tree}/build"
    clinic.file("CMakeCache.txt")
    assert recognise(str(clinic.tree), {}).build == str(clinic.tree)
