"""Of failures to link or configure that look like a common one, the log's other words say which one they are."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import shipped_rules
from stoker.model.diagnosis import Cause

RULES = shipped_rules()
END = "collect2: error: ld returned 1 exit status\nmake[2]: *** [app] Error 1\n"
LINK = "/usr/bin/c++ main.cc.o fleet.pb.cc.o -o bin/fleet /usr/lib/aarch64-linux-gnu/libprotobuf.so -lpthread\n"
INTERNAL = "main.cc:(.text+0x{}): undefined reference to `google::protobuf::internal::{}'\n"
OLD_STRING = "/usr/bin/ld: a.o: in function `main':\na.cpp:(.text+0x{}): undefined reference to `{}'\n"


def first(log: str) -> Cause:
    return read_log(io.BytesIO(log.encode()), RULES, has_failed=True).causes[0]


def test_parts_from_inside_protobuf_are_missing_because_of_another_version() -> None:
    with_string = INTERNAL.format("9a", "AssignDescriptors(std::string const&, char const*)")
    cause = first(LINK + INTERNAL.format("1c", "fixed_address_empty_string") + with_string + END)
    assert cause.rule == "protobuf-library-of-other-version"
    assert cause.general
    assert "CXX11_ABI" not in cause.remedy


def test_the_old_string_is_the_cause_only_where_nothing_else_is_missing() -> None:
    strings = OLD_STRING.format("5", "bank::open(std::string const&)") + OLD_STRING.format(
        "9", "bank::fail(int, std::string const&)"
    )
    assert first(strings + END).rule == "string-of-old-abi"
    assert first(strings + OLD_STRING.format("c", "bank::close(int)") + END).rule == "undefined-reference"
    assert first(OLD_STRING.format("5", "bank::open(std::string const&)") + END).rule == "undefined-reference"
    chinese = "a.cpp:(.text+0x{}):对‘bank::{}(std::string const&)’未定义的引用\n"
    assert first(chinese.format("5", "open") + chinese.format("9", "fail") + END).rule == "string-of-old-abi"


def test_a_library_that_the_build_made_is_not_called_an_installed_one() -> None:
    missing = "/usr/bin/ld: {}/libcore.so: undefined reference to `fleet::plan(int)'\n"
    assert first(missing.format("/usr/lib") + END).rule == "shared-library-unsatisfied"
    for folder in ("/home/ada/ws/devel/lib", "/home/ada/x/build/lib", "/srv/x/cmake-build-release"):
        assert first(missing.format(folder) + END).rule == "undefined-reference"


@pytest.mark.parametrize("symbol", ["cv::cuda::createBoxFilter(int, int)", "cv::xfeatures2d::SURF::create(double)"])
def test_an_opencv_without_the_module_is_named(symbol: str) -> None:
    cause = first(f"/usr/bin/ld: /home/ada/ws/devel/lib/libeye.so: undefined reference to `{symbol}'\n{END}")
    assert cause.rule == "opencv-without-module"
    assert "-DWITH_CUDA=ON" in cause.remedy
    assert first(f"a.cpp:(.text+0x1): undefined reference to `cv::imread(cv::String const&)'\n{END}").rule != cause.rule


def test_a_missing_target_of_llvm_is_switched_on_and_not_installed() -> None:
    missing = "/usr/bin/ld: cannot find -lLLVMAMDGPUCodeGen: No such file or directory\n"
    cause = first(f"[100%] Linking CXX executable ../bin/opt\n{missing}{END}")
    assert 'LLVM_TARGETS_TO_BUILD="Native;AMDGPU"' in cause.remedy
    assert "-dev" not in cause.remedy


def test_a_link_of_a_linkers_path_alone_has_its_rule_replaced() -> None:
    failed = "FAILED: bin/tool\n: && /opt/bin/ld.lld && :\nld.lld: error: no input files\n"
    given = "+ cmake -G Ninja -DCMAKE_CXX_LINK_EXECUTABLE=/opt/bin/ld.lld ..\n"
    assert first(f"{given}[1/2] Building CXX object a.o\n{failed}").rule == "cmake-link-rule-replaced"
    assert first(failed).general


def test_nvccs_own_words_come_before_cmakes_check_of_the_architectures() -> None:
    check = (
        "CMake Error at /usr/share/cmake/Modules/CMakeDetermineCUDACompiler.cmake:311 (message):\n"
        "  CMAKE_CUDA_ARCHITECTURES must be valid if set.\n\n-- Configuring incomplete, errors occurred!\n"
    )
    refused = "host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not"
    assert first(f"{check}{refused} supported!\n").rule == "host-compiler-too-new"
    alone = first(check)
    assert alone.general
    assert "unsupported GNU version" in alone.remedy


def test_an_option_that_bazel_itself_names_is_the_cause() -> None:
    said = "Use --incompatible_load_argument_is_label=false to temporarily disable this check."
    follows = (
        "ERROR: error loading package '': Encountered error while reading extension file 'a/defs.bzl': "
        "no such package '@rules//a': Extension file 'a/b.bzl' has errors\n"
    )
    cause = first(f"ERROR: /x/a/b.bzl:17:1: First argument of 'load' must be a label. {said}\n{follows}")
    assert cause.rule == "bazel-newer-than-files"
    assert "--incompatible_load_argument_is_label=false" in cause.remedy
    assert "https_proxy" not in cause.remedy
    network = "ERROR: /x/BUILD:1:1: no such package '@fmt//': java.io.IOException\n"
    assert first(network).rule == "bazel-fetch"
    broken = "ERROR: /x/BUILD:1:1: Target '//:a' depends on a bad package\n"
    assert first(follows + broken).rule == "unknown-failure"


def test_a_module_that_llvm_brings_along_is_not_to_be_had_from_apt_alone() -> None:
    cause = first(
        'CMake Error at cmake/FindLLVM.cmake:156 (find_package):\n  By not providing "Findzstd.cmake" in '
        "CMAKE_MODULE_PATH this project has\n  asked CMake to find a package configuration file\n"
    )
    assert cause.general
    assert "llvm-config --cmakedir" in cause.remedy


def test_advice_for_an_older_standard_speaks_of_what_the_log_has() -> None:
    asked = "all.h:4:2: error: #error C++20 or later compatible compiler is required to use PyTorch.\n"
    assert "c++20 in place of the older one" in first(asked).remedy
    other = first("signal.hpp:109:79: error: 'decay_t' is not a member of 'std'; did you mean 'decay'?\n")
    assert "PyTorch" not in other.remedy
    assert "CMakeLists.txt" in other.remedy


def test_a_newer_compiler_is_one_that_the_toolkit_takes() -> None:
    nvcc = "/usr/local/cuda-11.4/bin/nvcc -c a.cu -o a.o\n"
    cause = first(f"{nvcc}a.h:44:10: fatal error: filesystem: No such file or directory\n")
    assert "g++-10" in cause.remedy
    assert "13" not in cause.remedy


def test_carriage_returns_in_the_log_decide_why_a_script_does_not_start() -> None:
    refused = "bash: line 3: ./gen.sh: cannot execute: required file not found\n"
    assert first(f"{refused}gen.sh: line 2: $'\\r': command not found\n").rule == "script-line-ends"
    assert first(refused).rule == "interpreter-missing"


def test_gits_refusal_is_why_a_version_is_empty_and_a_host_why_a_crate_is_missing() -> None:
    empty = (
        "CMake Error at /usr/share/cmake/Modules/WriteBasicConfigVersionFile.cmake:43 (message):\n"
        "  No VERSION specified for WRITE_BASIC_CONFIG_VERSION_FILE()\n"
    )
    refusal = "fatal: detected dubious ownership in repository at '/home/ada/gears'\n-- gears version:  ()\n"
    status = "-- The C compiler identification is GNU 12.2.0\n-- Detecting C compiler ABI info - done\n"
    for between in ("", status):
        cause = first(refusal + between + empty)
        assert cause.rule == "version-of-refused-git"
        assert "safe.directory /home/ada/gears" in cause.remedy
    assert first(empty).rule == "cmake-version-empty"
    crate = "error: failed to get `rayon` as a dependency of package `gears v0.1.0 (/tmp/gears)`\n"
    host = "  [6] Could not resolve hostname (Could not resolve host: index.invalid)\n"
    assert first(f"{crate}\nCaused by:\n{host}").rule == "no-name-resolution"
    assert first(crate).rule == "cargo-resolve"


def test_condas_linker_is_named_where_gcc_takes_it_by_itself() -> None:
    said = "{}/ld: b/a.o: unable to initialize decompress status for section .debug_info\n"
    conda = first(said.format("/home/ada/conda/envs/x/compiler_compat") + END)
    assert "compiler_compat/ld.off" in conda.remedy
    assert first(said.format("/usr/bin") + END).rule == "binutils-too-old"


def test_a_crash_of_what_nvcc_runs_is_told_from_others() -> None:
    nvcc = "/usr/local/cuda/bin/nvcc -c a.cu -o a.o -gencode arch=compute_90a,code=sm_90a -O3\n"
    crash = "Segmentation fault (core dumped)\nninja: build stopped: subcommand failed.\n"
    cause = first(f"FAILED: [code=255] a.o\n{nvcc}{crash}")
    assert cause.rule == "nvcc-crashed"
    assert cause.general
    assert first(f"FAILED: [code=139] tables.h\n./gen >tables.h\n{crash}").rule == "crashed-in-step"


def test_a_header_of_an_earlier_configuration_is_not_defined_by_hand() -> None:
    line = 'common.h:78:2: error: #error ( "You found a build system error: __AVX2__ is defined (via e.g. -mavx2) "\n'
    assert "clean tree" in first(line).remedy
    assert first('common.h:78:2: error: #error "Unknown platform"\n').rule == "hash-error"


def test_a_raw_string_that_does_not_end_asks_for_the_compilers_version() -> None:
    cause = first('defs.cc:22:15: error: unterminated raw string\n         doc = R"DOC(\n')
    assert cause.general
    assert "g++ --version" in cause.remedy
