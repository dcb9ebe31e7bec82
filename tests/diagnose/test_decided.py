"""What the log shows elsewhere decides what a general line means: a path that was given, a folder, every other line."""

from __future__ import annotations

import io
import re

import pytest

from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import Rule, shipped_rules
from stoker.model.diagnosis import Cause

RULES = shipped_rules()
EXPORTED = re.compile(r"export (?:CFLAGS|CXXFLAGS)=[^\s,;]")

NOT_GIT = "      fatal: not a git repository (or any of the parent directories): .git\n"
PIP_ENDS = """      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for gears
Failed to build gears
"""
WHEEL = "https://dl.invalid/v2/gears-2.0+cu118torch2.0cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
NO_TORCH_FITS = """      RuntimeError:
      The detected CUDA version (11.8) mismatches the version that was used to compile
      PyTorch (12.1). Please make sure to use the same CUDA versions.
"""
CXX11 = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
LINK = """/usr/bin/ld: main.o: in function `main':
main.cpp:(.text+0x55): undefined reference to `bank::open({0} const&)'
main.cpp:(.text+0x6c): undefined reference to `bank::name[abi:cxx11]()'
"""
TRACE = """Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/pip/_vendor/pyproject_hooks/_in_process.py", line 335, in main
    json_out['return_val'] = hook(**hook_input['kwargs'])
  File "{}", line 868, in metadata
    core.headers['Version'] = [self.version]
AttributeError: 'Message' object has no attribute 'headers'
"""
DEVICE_LINK = "a.cpp:(.text+0x1d): undefined reference to `__cudaRegisterLinkedBinary_2645be13_4_a_cu_f1e14bba'\n"


def first(log: str) -> Cause:
    return read_log(io.BytesIO(log.encode()), RULES, has_failed=True).causes[0]


def test_a_note_of_gits_is_not_the_cause_of_what_stopped_the_step() -> None:
    assert "no gears" in first(f"{NOT_GIT}      running bdist_wheel\n      error: no gears\n{PIP_ENDS}").text
    assert first(f"{NOT_GIT}      error: gears.h: no such file\n{PIP_ENDS}").rule != "git-no-repository"
    assert first(NOT_GIT).rule == "git-no-repository"


def test_a_ready_wheel_that_was_not_fetched_is_named() -> None:
    closed = "      error: Remote end closed connection without response\n"
    cause = first(f"{NOT_GIT}      Guessing wheel URL:  {WHEEL}\n{closed}{PIP_ENDS}")
    assert cause.rule == "ready-wheel-not-fetched"
    assert f"curl -LO {WHEEL}" in cause.remedy
    assert first(closed).rule == "fetch-failed"


@pytest.mark.parametrize(
    "folder", ["/tmp/pip-build-env-b1l5/overlay/lib/python3.8", "/root/.cache/uv/builds-v0/.tmpQ/lib/python3.12"]
)
def test_the_torch_of_an_isolated_build_is_told_from_the_installed_one(folder: str) -> None:
    frame = f'File "{folder}/site-packages/torch/utils/cpp_extension.py", line 413, in _check_cuda_version\n'
    installed = "Requirement already satisfied: torch>=2.0.0 in /venv (2.0.1+cu118)\n"
    cause = first(f"{installed}        {frame}{NO_TORCH_FITS}")
    assert "--no-build-isolation" in cause.remedy
    assert "CUDA_HOME=/usr/local/cuda-12.1" in cause.remedy
    assert "built for CUDA 12.1, and nvcc is of 11.8" in cause.why
    cause = first(f"{installed}{NO_TORCH_FITS}")
    assert cause.rule == "cuda-torch-mismatch"
    assert "CUDA_HOME=/usr/local/cuda-12.1" in cause.remedy


@pytest.mark.parametrize(
    ("given", "said", "remedy"),
    [
        (
            "$ LLVM_SYSPATH=../llvm/build pip install -e python",
            "error: [Errno 2] No such file or directory: '../llvm/build/version.txt'",
            "LLVM_SYSPATH=$(realpath ../llvm/build)",
        ),
        (
            "$ cmake -DTBB_LIBRARY:FILEPATH=../tbb/libtbb.so ..",
            "make[2]: *** No rule to make target '../tbb/libtbb.so', needed by 'app'.  Stop.",
            "TBB_LIBRARY=$(realpath ../tbb/libtbb.so)",
        ),
        (
            "$ cmake -G Ninja -DTBB_LIBRARY=../tbb/libtbb.so ..",
            "ninja: error: '../tbb/libtbb.so', needed by 'app', missing and no known rule to make it",
            "TBB_LIBRARY=$(realpath ../tbb/libtbb.so)",
        ),
    ],
)
def test_a_relative_path_that_was_given_is_named(given: str, said: str, remedy: str) -> None:
    assert remedy in first(f"{given}\n{said}\n").remedy
    other = given.replace("=../", "=../other/")
    assert first(f"{other}\n{said}\n").rule == first(f"{said}\n").rule != "relative-path-given"


@pytest.mark.parametrize("path", ["usr/local/cuda/lib64/libcudart.so.11.3", "opt/tbb/lib/libtbb.so"])
def test_a_path_without_its_slash_is_named(path: str) -> None:
    for said in (
        f"make[2]: *** No rule to make target '{path}', needed by 'out/libplugin.so'.  Stop.",
        f"ninja: error: '{path}', needed by 'out/libplugin.so', missing and no known rule to make it",
    ):
        assert f"ls -l /{path}" in first(f"{said}\n").remedy
        assert "slash" not in first(f"{said.replace(path, 'usr/gen_init.c')}\n").title


def test_the_abi_of_strings_is_blamed_only_if_no_other_name_is_missing() -> None:
    names = LINK.format(CXX11)
    assert first(names).rule == "string-of-two-abis"
    without = "main.cpp:(.text+0x7c): undefined reference to `bank::close()'\n"
    assert first(names + without).rule == "undefined-reference"
    assert first(names.splitlines()[1]).rule == "undefined-reference"


def test_a_package_that_is_older_than_what_it_calls_is_raised() -> None:
    backend = first(TRACE.format("/venv/lib/python3.11/site-packages/mesonpy/__init__.py"))
    assert "pip install -U meson-python" in backend.remedy
    for path in ("/venv/lib/python3.11/site-packages/gears/__init__.py", "/src/gears/setup.py"):
        assert "pip install -U raises it" in first(TRACE.format(path)).remedy


def test_a_device_link_is_for_the_gpus_of_the_compile_commands() -> None:
    assert "nvcc -arch=sm_80 -dlink" in first(f"nvcc -O3 -arch=sm_80 -rdc=true -c a.cu -o a.o\n{DEVICE_LINK}").remedy
    both = "nvcc -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[compute_90,sm_90] -dc a.cu -o a.o\n"
    options = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"
    assert f"nvcc {options} -dlink" in first(f"{both}{DEVICE_LINK}").remedy
    assert "nvcc -dlink" in first(DEVICE_LINK).remedy


def test_the_folder_of_a_toolkit_without_its_compiler_is_named() -> None:
    cause = first(
        '-- Found CUDAToolkit: /opt/cuda-12.4/include (found version "12.4.131")\n'
        "CMake Error at CMakeLists.txt:26 (enable_language):\n  No CMAKE_CUDA_COMPILER could be found.\n"
    )
    assert "export PATH=/opt/cuda-12.4/bin:$PATH" in cause.remedy
    assert "was not found" not in cause.title.removesuffix("its compiler nvcc was not")


def test_a_full_file_system_is_looked_at_by_its_name() -> None:
    for said in (
        "a.cpp:6:2: fatal error: error writing to /mnt/scratch/ccdiS5DA.s: No space left on device",
        "OSError: [Errno 28] No space left on device: '/mnt/scratch/a.o'",
    ):
        assert "df -h /mnt/scratch . /tmp" in first(f"{said}\n").remedy
    assert "df -h . /tmp" in first("OSError: [Errno 28] No space left on device\n").remedy


def test_an_installed_library_is_replaced_and_an_object_built_again() -> None:
    said = "/usr/bin/ld: {}: error adding symbols: file in wrong format\n"
    assert "file -L /usr/local/cuda/lib64/libcudnn.so" in first(said.format("/usr/local/cuda/lib64/libcudnn.so")).remedy
    for built in ("libgear.so", "/home/dev/gears/build/libgear.so", "/opt/gears/build/libgear.so"):
        assert first(said.format(built)).rule == "wrong-file-format"


def test_wheels_that_the_command_forbids_are_not_said_to_be_missing() -> None:
    no_rust = "      error: can't find Rust compiler\n"
    assert "Leave out --no-binary" in first(f"$ pip install --no-binary tokens tokens==0.13\n{no_rust}").remedy
    assert "wheel" in first(no_rust).why


@pytest.mark.parametrize("rule", [rule for rule in RULES if EXPORTED.search(rule.remedy)], ids=lambda rule: rule.id)
def test_flags_that_are_exported_do_not_reach_a_makefile_with_its_own(rule: Rule) -> None:
    assert re.search(r"make (?:CFLAGS|CXXFLAGS|CC|CXX)=", rule.remedy)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("loop.c:4:5: error: implicit declaration of function ‘_PyInterpreterState_GetConfig’; did you mean", "python"),
        ("dec.c:9:5: error: implicit declaration of function ‘avcodec_decode_video2’", "ffmpeg"),
        ("k.cpp:9:5: error: ‘cudnnSetRNNDescriptor_v6’ was not declared in this scope", "cudnn"),
    ],
)
def test_who_knows_the_interface_comes_before_who_knows_the_compilers_option(said: str, rule: str) -> None:
    for option in ("-Wimplicit-function-declaration", "-Werror=implicit-function-declaration", "-fpermissive"):
        assert first(f"{said} [{option}]\n   4 | call();\n").rule.startswith(rule)


def test_what_python_took_away_explains_the_stricter_compilers_errors_above_it() -> None:
    strict = "loop.c:4:5: error: implicit declaration of function ‘_PyGen_Send’ [-Wimplicit-function-declaration]\n"
    assert first(strict).rule == "c-too-strict"
    gone = "loop.c:9:27: error: too few arguments to function ‘_PyLong_AsByteArray’\n"
    assert first(strict + gone).rule == "python-c-api-313"


def test_an_isolated_build_does_not_see_a_tool_that_pip_installs_outside() -> None:
    said = "  CMake 3.26 or higher is required.  You are running version 3.25.1\n"
    for isolated in ("  Installing build dependencies: started\n", "/root/.cache/uv/builds-v0/.tmpQ/bin/python\n"):
        assert "--no-build-isolation" in first(isolated + said).remedy
    assert first(said).remedy.startswith("pip install -U cmake")


def test_a_static_librarys_needs_are_not_said_of_configure_without_one() -> None:
    missing = "/usr/bin/ld: libstore.a(store.o): in function `sum':\nstore.c:5: undefined reference to `crc_update'\n"
    assert first(missing).rule == "static-library-order"
    assert "-lstore -lOTHER -lm" in first(missing).remedy
    link = "gcc -L. m.o -lm -lcrc -lstore -o app\n"
    assert "LDLIBS='-lstore -lcrc -lstore -lm'" in first(link + missing).remedy
    assert "configure" in first(f"{missing}ERROR: store not found using pkg-config\n").why


def test_the_architectures_own_set_is_the_same_card() -> None:
    said = "ptxas a.ptx, line 32; error   : Instruction '{}' not supported on .target '{}'\n"
    assert "-gencode arch=compute_90a,code=sm_90a" in first(said.format("setmaxnreg.inc", "sm_90")).remedy
    assert "Leave sm_80 out" in first(said.format("wgmma.fence", "sm_80")).remedy


@pytest.mark.parametrize(
    ("system", "remedy"),
    [
        ("gcc (GCC) 11.5.0 20240719 (Red Hat 11.5.0-2)", "dnf install gcc-toolset-13"),
        ('PRETTY_NAME="Rocky Linux 9.4"', "dnf install gcc-toolset-13"),
        ('PRETTY_NAME="AlmaLinux 9.4"', "dnf install gcc-toolset-13"),
        ("[u@rocky9 app]$ make", "dnf install gcc-toolset-13"),
        ("GNU assembler version 2.27-44.base.el7_9", "devtoolset-11"),
        ("libstdc++-8.5.0-22.el8.x86_64", "dnf install gcc-toolset-13"),
        ("GNU assembler version 2.35.2-54.el9.1", "dnf install gcc-toolset-13"),
        ("gcc (Debian 12.2.0-14) 12.2.0", "apt install binutils"),
    ],
)
def test_newer_tools_come_from_the_distribution_of_the_log(system: str, remedy: str) -> None:
    assert remedy in first(f"/tmp/ccA.s:7: Error: unsupported instruction `vpdpbusd'\n{system}\n").remedy


def test_a_compiler_that_is_too_old_is_named_as_cmake_found_it() -> None:
    found = "-- The CXX compiler identification is GNU 7.3.0\n"
    assert "(GNU 7.3.0)" in first(f"{found}cc1plus: error: invalid feature modifier in ‘-march=armv8.2-a+sve’\n").why


def test_a_function_of_c_is_called_by_its_c_name_where_it_is_in_the_symbol_table() -> None:
    table = "0000000000000000 T compute\n"
    undefined = "main.cpp:(.text+0xa): undefined reference to `{}'\n"
    assert first(undefined.format("compute(int)") + table).rule == "c-function-without-extern-c"
    assert first(undefined.format("compute") + table).rule == "undefined-reference"
    assert first(undefined.format("bank::compute(int)") + table).rule == "undefined-reference"


def test_what_find_package_did_not_find_is_named_where_its_own_target_is_missing() -> None:
    target = """CMake Error at CMakeLists.txt:6 (target_link_libraries):
  The link interface of target "base" contains:

    zstd::libzstd_shared

  but the target was not found.  Possible reasons include:
"""
    assert first(f"-- Could NOT find CURL (missing: CURL_LIBRARY)\n{target}").rule == "cmake-target-of-package"
    cause = first(f"-- Could NOT find zstd (missing: zstd_LIBRARY)\n{target}")
    assert cause.rule == "cmake-target-not-found-of-table"
    assert "apt install libzstd-dev" in cause.remedy
