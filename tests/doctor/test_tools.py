"""Compilers and build tools: each is falsified by a program on PATH that is old, broken, mute or missing."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import pytest

from stoker.doctor.recognise import recognise
from support.clinic import Clinic, one

OLD_GCC = "g++ (Debian 4.8.5-1) 4.8.5\nCopyright (C) 2015 Free Software Foundation, Inc."
PACKAGED_GCC = "g++ (Ubuntu 13.3.0-6ubuntu2~24.04) 9.5.0\nCopyright (C) 2024 Free Software Foundation, Inc."


def test_the_tools_of_this_machine_will_do(clinic: Clinic) -> None:
    found = clinic.examine()
    for name in ("C++ compiler", "C compiler", "cmake", "make", "ninja", "git"):
        check = one(found, name)
        assert check.status == "ok", check
        assert "/" in check.why
        assert any(c.isdigit() for c in check.why)
    assert found.ok


def test_an_old_compiler_is_reported_with_its_version(clinic: Clinic) -> None:
    clinic.says("g++", OLD_GCC)
    check = clinic.check("C++ compiler")
    assert check.status == "warn"
    assert "4.8.5" in check.why
    assert check.remedy.startswith("export CXX=g++-")


def test_a_compiler_older_than_the_build_needs_fails(clinic: Clinic) -> None:
    clinic.says("g++", OLD_GCC)
    clinic.wants(gcc=(9, 3), what="PyTorch")
    check = clinic.check("C++ compiler")
    assert check.status == "fail"
    assert "4.8.5" in check.why
    assert "9.3" in check.why
    assert check.remedy == "export CXX=g++-9"


def test_the_version_is_the_compilers_and_not_the_packages(clinic: Clinic) -> None:
    clinic.says("g++", PACKAGED_GCC)
    assert "9.5.0" in clinic.check("C++ compiler").why


def test_cxx_goes_before_path(clinic: Clinic) -> None:
    other = clinic.says("my-compiler", OLD_GCC)
    clinic.env["CXX"] = f"ccache {other} -m64"
    clinic.program("ccache", '#!/bin/sh\nexec "$@"\n')
    assert "my-compiler 4.8.5" in clinic.check("C++ compiler").why
    (clinic.root / "bin/ccache").unlink()
    clinic.env["PATH"] = str(clinic.root / "bin")
    check = clinic.check("C++ compiler")
    assert check.status == "fail"
    assert "CXX names ccache" in check.why


def test_a_variable_that_names_no_compiler_fails(clinic: Clinic) -> None:
    clinic.env["CXX"] = "g++-999"
    check = clinic.check("C++ compiler")
    assert check.status == "fail"
    assert "g++-999" in check.why
    assert check.remedy == "unset CXX"


def test_no_compiler_at_all_fails(clinic: Clinic) -> None:
    clinic.only("cmake", "make", "ninja", "git")
    assert clinic.check("C++ compiler").status == "fail"
    assert clinic.check("C compiler").status == "fail"


def test_a_driver_without_its_compiler_proper_fails(clinic: Clinic) -> None:
    """What a machine with gcc, but without g++'s package says."""
    clinic.program("g++", '#!/bin/sh\nexec /usr/bin/g++ -B/nowhere -no-canonical-prefixes --broken-flag-here "$@"\n')
    check = clinic.check("C++ compiler")
    assert check.status == "fail"
    assert "--broken-flag-here" in check.why
    assert check.remedy


def test_a_hanging_compiler_is_a_warning_and_holds_nothing_up(clinic: Clinic) -> None:
    clinic.program("g++", "#!/bin/sh\nsleep 600 &\nwait\n")
    began = time.monotonic()
    check = one(clinic.examine(patience=1.0), "C++ compiler")
    assert time.monotonic() - began < 60
    assert check.status == "warn"
    assert "no answer" in check.why


def test_a_compiler_that_says_nothing_useful_is_no_end(clinic: Clinic) -> None:
    clinic.program("g++", "#!/bin/sh\nhead -c 3000000 /dev/urandom\n")
    found = clinic.examine()
    assert one(found, "C++ compiler").status in ("ok", "warn", "fail")
    assert one(found, "cmake").status == "ok"


def test_two_families_are_reported(clinic: Clinic) -> None:
    clinic.says("clang++", "clang version 16.0.6\nTarget: x86_64")
    clinic.env["CXX"] = "clang++"
    check = clinic.check("compiler pair")
    assert check.status == "warn"
    assert "clang 16.0.6" in check.why


def test_headers_are_looked_for_as_the_compiler_does(clinic: Clinic) -> None:
    clinic.wants(headers=("stdio.h", "no_such_header.h"))
    check = clinic.check("header no_such_header.h")
    assert check.status == "fail"
    assert check.remedy
    (clinic.root / "include").mkdir()
    (clinic.root / "include/no_such_header.h").touch()
    clinic.env["CPATH"] = str(clinic.root / "include")
    assert clinic.check("headers").status == "ok"


def test_a_header_of_cuda_is_found_where_its_toolkit_is(clinic: Clinic) -> None:
    clinic.wants(headers=("cuda.h",))
    clinic.env["CUDA_HOME"] = str(clinic.toolkit())
    assert clinic.check("headers").status == "ok"


def test_an_old_cmake_is_held_against_the_tree(clinic: Clinic) -> None:
    clinic.says("cmake", "cmake version 3.16.3")
    clinic.file("CMakeLists.txt", "cmake_minimum_required(VERSION 3.27 FATAL_ERROR)\nproject(x)\n")
    clinic.need = recognise(str(clinic.tree), clinic.env)
    check = clinic.check("cmake")
    assert check.status == "fail"
    assert "3.16.3" in check.why
    assert "3.27" in check.why
    assert "cmake" in check.remedy


def test_a_python_tree_may_bring_its_own_cmake(clinic: Clinic) -> None:
    clinic.says("cmake", "cmake version 3.16.3")
    clinic.file("CMakeLists.txt", "cmake_minimum_required(VERSION 3.27)\n")
    clinic.file("pyproject.toml")
    clinic.need = recognise(str(clinic.tree), clinic.env)
    assert clinic.check("cmake").status == "warn"


@pytest.mark.parametrize(("asked", "status"), [("2.8.12", "fail"), ("2.8.12...3.20", "ok"), ("3.5", "ok")])
def test_cmake_4_refuses_old_projects(clinic: Clinic, asked: str, status: str) -> None:
    clinic.says("cmake", "cmake version 4.1.2")
    clinic.file("CMakeLists.txt", f"# old\ncmake_minimum_required( VERSION {asked} )\n")
    clinic.need = recognise(str(clinic.tree), clinic.env)
    check = clinic.check("cmake")
    assert check.status == status
    assert ("CMAKE_POLICY_VERSION_MINIMUM" in check.remedy) == (status == "fail")


def test_without_ninja_it_is_make_and_without_both_nothing(clinic: Clinic) -> None:
    clinic.only("gcc", "g++", "cmake", "make", "git")
    assert clinic.check("ninja").status == "warn"
    assert clinic.check("make").status == "ok"
    (clinic.root / "bin/make").unlink()
    assert clinic.check("ninja").status == "fail"


def test_a_broken_tool_is_reported_with_what_it_said(clinic: Clinic) -> None:
    clinic.says("ninja", "ninja: error while loading shared libraries", status=127)
    check = clinic.check("ninja")
    assert check.status == "warn"
    assert "127" in check.why
    assert "shared libraries" in check.why


def test_commands_of_the_need(clinic: Clinic) -> None:
    clinic.wants(commands=("make", "no-such-command"))
    assert clinic.check("command no-such-command").status == "fail"
    clinic.wants(commands=("make",))
    assert clinic.check("commands").status == "ok"


def test_the_interpreter_of_the_need_goes_before_the_active_one(clinic: Clinic) -> None:
    clinic.says("my-python", f"stoker\n{clinic.root}/include\n/nowhere\n3.14.1\n")
    clinic.wants(interpreter="my-python", python_headers="must")
    assert "3.14.1" in clinic.check("python headers").why


def fake_python(clinic: Clinic, version: str, include: Path, modules: str = "") -> None:
    """A virtual environment whose Python answers as one of this version would."""
    (clinic.root / "venv/bin").mkdir(parents=True)
    python = clinic.root / "venv/bin/python"
    python.write_text(f"#!/bin/sh\nprintf 'stoker\\n{include}\\n/nowhere\\n{version}\\n{modules}\\n'\n")
    python.chmod(0o755)
    clinic.env["VIRTUAL_ENV"] = str(clinic.root / "venv")


def test_missing_python_headers(clinic: Clinic) -> None:
    fake_python(clinic, "3.11.2", clinic.root / "include")
    clinic.wants(python_headers="must")
    check = clinic.check("python headers")
    assert check.status == "fail"
    assert f"{clinic.root}/include" in check.why
    (clinic.root / "include").mkdir()
    (clinic.root / "include/Python.h").touch()
    assert clinic.check("python headers").status == "ok"


def test_a_python_too_old_for_the_build(clinic: Clinic) -> None:
    fake_python(clinic, "3.8.20", clinic.root)
    clinic.wants(python=(3, 10))
    check = clinic.check("python")
    assert check.status == "fail"
    assert "3.8.20" in check.why


def test_modules_of_the_need(clinic: Clinic) -> None:
    clinic.wants(modules=("json", "no_such_module", "no_such_package.inner"))
    found = clinic.examine()
    check = one(found, "python modules")
    assert check.status == "fail"
    assert check.why.endswith("has no module no_such_module no_such_package.inner")
    assert check.remedy.endswith("-m pip install no_such_module no_such_package")
    clinic.wants(modules=("json",))
    assert clinic.check("python modules").status == "ok"


def test_packages_are_installed_by_their_own_names(clinic: Clinic) -> None:
    fake_python(clinic, "3.12.1", clinic.root)
    clinic.wants(modules=("yaml", "six"))
    assert clinic.check("python modules").remedy.endswith("pip install pyyaml six")


def test_modules_count_as_the_build_will_find_them(clinic: Clinic) -> None:
    """On PYTHONPATH they do; in the tree itself, where the question happens to be asked, they do not."""
    (clinic.root / "mine").mkdir()
    (clinic.root / "mine/only_here.py").write_text("")
    clinic.file("only_in_the_tree.py")
    clinic.wants(modules=("only_here", "only_in_the_tree"), interpreter=sys.executable)
    assert "only_here only_in_the_tree" in clinic.check("python modules").why
    clinic.env["PYTHONPATH"] = str(clinic.root / "mine")
    with contextlib.chdir(clinic.tree):
        found = clinic.examine()
    assert one(found, "python modules").why.endswith("has no module only_in_the_tree")


def test_a_profile_that_compiles_nothing_needs_no_compiler(clinic: Clinic) -> None:
    clinic.only("sh", "git")
    clinic.wants(compilers="may", scheduler="may")
    found = clinic.examine()
    assert {one(found, name).status for name in ("C compiler", "C++ compiler", "ninja")} == {"warn"}
    clinic.wants(compilers="must", scheduler="must")
    found = clinic.examine()
    assert {one(found, name).status for name in ("C compiler", "C++ compiler", "ninja")} == {"fail"}


def test_a_cmake_beside_the_python_that_builds_may_do(clinic: Clinic) -> None:
    """An environment that was not activated: the backend finds its CMake, an old setup.py does not."""
    venv = clinic.root / "venv/bin"
    venv.mkdir(parents=True)
    (venv / "python3").symlink_to(sys.executable)
    clinic.says("cmake", "cmake version 3.10.2")
    clinic.wants(cmake=(3, 27), cmake_tool="must", interpreter=str(venv / "python3"), commands=("my-tool",))
    assert clinic.check("cmake").status == clinic.check("command my-tool").status == "fail"
    for name in ("cmake", "my-tool"):
        (venv / name).symlink_to("/bin/true")
    found = clinic.examine()
    for name in ("cmake", "command my-tool"):
        assert one(found, name).status == "warn"
        assert one(found, name).remedy == f"export PATH={venv}:$PATH"


def test_a_python_that_does_not_answer_says_nothing_of_its_headers(clinic: Clinic) -> None:
    clinic.program("my-python", "#!/bin/sh\nexit 3\n")
    clinic.wants(interpreter="my-python", headers=("Python.h", "no_such.h"))
    found = clinic.examine()
    assert all(check.name != "header Python.h" for check in found.checks)
    assert one(found, "header no_such.h").status == "fail"
    assert one(found, "python headers").status == "warn"
