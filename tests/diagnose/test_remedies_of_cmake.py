"""Remedies of what CMake does not find or is told wrongly, and of configure scripts: each repairs a small project."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, MAIN, NONE, C, Case, check_that_it_repairs

CONFIGURE = "rm -rf b; cmake -G 'Unix Makefiles' -B b "
BUILD = " >log && cmake --build b"
LLVM = (
    f"{NONE}set(LLVM_ALL_PROJECTS clang;lld;mlir)\nset(LLVM_ALL_TARGETS AArch64;NVPTX;X86)\n"
    "foreach(proj ${LLVM_ENABLE_PROJECTS})\n  if(NOT proj IN_LIST LLVM_ALL_PROJECTS)\n"
    "    message(FATAL_ERROR \"${proj} isn't a known project: ${LLVM_ALL_PROJECTS}."
    ' Did you mean to enable it as a runtime in LLVM_ENABLE_RUNTIMES?")\n  endif()\nendforeach()\n'
    'foreach(t ${LLVM_TARGETS_TO_BUILD})\n  if(NOT t IN_LIST LLVM_ALL_TARGETS)\n    message(FATAL_ERROR "The target'
    " `${t}' is not a core tier target. It may be experimental, if so it must be passed via"
    ' LLVM_EXPERIMENTAL_TARGETS_TO_BUILD.")\n  endif()\nendforeach()\n'
)
"""LLVM's own checks of these lists."""

AUTOMAKE = "AC_INIT([p], [1])\nAM_INIT_AUTOMAKE([foreign])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n"
EXPORTED = (
    f"{C}include_directories(include)\nadd_library(core a.c)\n"
    "target_include_directories(core PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)\n"
    "install(TARGETS core EXPORT p DESTINATION lib)\ninstall(EXPORT p DESTINATION lib)\n"
)

CASES = [
    Case(
        "cmake-link-rule-replaced",
        {"CMakeLists.txt": f"{C}add_executable(app m.c)\n", "m.c": MAIN},
        'rm -rf b; eval "cmake -G Ninja -B b ${FIRST--DCMAKE_C_LINK_EXECUTABLE=/usr/bin/ld} -S ." >log;'
        ' test -n "${FIRST-x}" && echo cmake -DCMAKE_C_LINK_EXECUTABLE=/usr/bin/ld; ninja -C b',
        "Take -DCMAKE_C_LINK_EXECUTABLE and its like",
        "export FIRST=; {}  # Take -DCMAKE_C_LINK_EXECUTABLE and its like",
        "cmake ninja gcc",
    ),
    Case(
        "cmake-unknown-command",
        {
            "CMakeLists.txt": f"{NONE}function(project_add_library)\nendfunction()\nadd_subdirectory(lib)\n",
            "lib/CMakeLists.txt": "project_add_library(x)\n",
        },
        "cmake -S lib -B b",
        "cmake -S ROOT -B build",
        "grep -rni -e 'function(project_add_library' -e 'macro(project_add_library' . && cmake -S . -B build"
        "  # cmake -S ROOT -B build",
        "cmake",
    ),
    Case(
        "cmake-include-missing",
        {"CMakeLists.txt": f"{NONE}include(BuildUtils)\n", "scripts/BuildUtils.cmake": ""},
        CONFIGURE + "$OPTIONS",
        "-DCMAKE_MODULE_PATH=/that/folder",
        "export OPTIONS=-DCMAKE_MODULE_PATH=$PWD/scripts; {}  # -DCMAKE_MODULE_PATH=/that/folder",
        "cmake",
    ),
    Case(
        "cmake-exported-source-path",
        {"CMakeLists.txt": EXPORTED, "a.c": ""},
        CONFIGURE,
        "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>",
        "sed -i 's,[$]{CMAKE_CURRENT_SOURCE_DIR}/include,$<BUILD_INTERFACE:& $<INSTALL_INTERFACE:include>,;"
        "s,include [$]<I,include> $<I,' CMakeLists.txt; {}"
        "  # $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>",
        "cmake gcc",
    ),
    Case(
        "cmake-old-option",
        {
            "CMakeLists.txt": f"{NONE}if(LLAMA_CUBLAS)\n"
            '  message(FATAL_ERROR "LLAMA_CUBLAS is deprecated and will be removed in the future.\n'
            'Use GGML_CUDA instead\n")\nendif()\n'
        },
        CONFIGURE + "${OPTIONS--DLLAMA_CUBLAS=ON}",
        "-DGGML_CUDA=ON",
        "export OPTIONS=-DGGML_CUDA=ON; {}",
        "cmake",
    ),
    Case(
        "cmake-fetch-disconnected",
        {
            "CMakeLists.txt": f"{NONE}include(FetchContent)\nFetchContent_Declare(fmt URL file:///nowhere.tar)\n"
            "FetchContent_MakeAvailable(fmt)\nif(NOT EXISTS ${fmt_SOURCE_DIR}/CMakeLists.txt)\n"
            '  message(FATAL_ERROR "FETCHCONTENT_FULLY_DISCONNECTED is true, but ${fmt_SOURCE_DIR} does not exist")\n'
            "endif()\n",
            "fmt/CMakeLists.txt": "",
        },
        CONFIGURE + "-DFETCHCONTENT_FULLY_DISCONNECTED=ON $OPTIONS",
        "-DFETCHCONTENT_SOURCE_DIR_NAME=/path",
        "export OPTIONS=-DFETCHCONTENT_SOURCE_DIR_FMT=$PWD/fmt; {}  # -DFETCHCONTENT_SOURCE_DIR_NAME=/path",
        "cmake",
    ),
    Case(
        "cmake-fetched-tag",
        {
            "CMakeLists.txt": f"{NONE}include(FetchContent)\nFetchContent_Declare(fmt GIT_REPOSITORY"
            " file://${CMAKE_SOURCE_DIR}/fmt GIT_TAG v9)\nFetchContent_MakeAvailable(fmt)\n"
        },
        f"test -e fmt || {{ {GIT} init -q fmt; {GIT} -C fmt commit -qm a --allow-empty; }}; " + CONFIGURE + "$OPTIONS",
        "-DFETCHCONTENT_SOURCE_DIR_NAME=/path",
        "export OPTIONS=-DFETCHCONTENT_SOURCE_DIR_FMT=$PWD/fmt; {}  # -DFETCHCONTENT_SOURCE_DIR_NAME=/path",
        "cmake git",
    ),
    Case(
        "cmake-target-as-library",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 2.8)\nproject(p LANGUAGES C)\nfind_package(Foo QUIET)\n"
            "add_executable(app m.c)\ntarget_link_libraries(app Foo::foo)\n",
            "m.c": MAIN,
            "found/FooConfig.cmake": "add_library(Foo::foo INTERFACE IMPORTED)\n",
        },
        CONFIGURE + "-Wno-deprecated $OPTIONS" + BUILD,
        "-DCMAKE_PREFIX_PATH=/path",
        "export OPTIONS=-DCMAKE_PREFIX_PATH=$PWD/found; {}  # -DCMAKE_PREFIX_PATH=/path",
        "cmake gcc",
    ),
    Case(
        "cmake-imported-target-absent",
        {
            "CMakeLists.txt": f"{C}find_package(Foo REQUIRED)\nadd_executable(app m.c)\n"
            "if(FOO_SHARED)\n  target_link_libraries(app Foo::foo_shared)\nelse()\n"
            "  target_link_libraries(app Foo::foo_static)\nendif()\n",
            "m.c": MAIN,
            "found/FooConfig.cmake": "add_library(Foo::foo_shared INTERFACE IMPORTED)\n",
        },
        CONFIGURE + "-DFoo_DIR=$PWD/found $OPTIONS",
        "the project mostly has an option for it",
        "export OPTIONS=-DFOO_SHARED=ON; {}  # the project mostly has an option for it",
        "cmake gcc",
    ),
    Case(
        "boost-components-missing",
        {
            "CMakeLists.txt": f"{NONE}find_package(Boost REQUIRED COMPONENTS filesystem)\n",
            "old/lib/cmake/Boost-1.74.0/BoostConfig.cmake": "",
            "old/lib/cmake/Boost-1.74.0/BoostConfigVersion.cmake": "set(PACKAGE_VERSION 1.74.0)\n"
            "set(PACKAGE_VERSION_COMPATIBLE TRUE)\n",
            "new/lib/cmake/Boost-1.74.0/BoostConfig.cmake": "set(Boost_filesystem_FOUND ON)\n",
            "new/lib/cmake/Boost-1.74.0/BoostConfigVersion.cmake": "set(PACKAGE_VERSION 1.74.0)\n"
            "set(PACKAGE_VERSION_COMPATIBLE TRUE)\n",
        },
        f'export Boost_ROOT=$PWD/old; eval "$FIRST"; {CONFIGURE} -DCMAKE_PREFIX_PATH=$PWD/new',
        "unset BOOST_ROOT Boost_ROOT BOOST_LIBRARYDIR",
        "export FIRST='unset BOOST_ROOT Boost_ROOT BOOST_LIBRARYDIR'; {}",
        "cmake",
    ),
    Case(
        "program-path-gone",
        {
            "CMakeLists.txt": f"{NONE}find_program(GENERATOR generate PATHS ${{CMAKE_SOURCE_DIR}}/old/bin"
            " ${CMAKE_SOURCE_DIR}/new/bin NO_DEFAULT_PATH)\nadd_custom_target(all-files ALL COMMAND ${GENERATOR} x)\n",
            "old/bin/generate": "#!/bin/sh\n",
        },
        f"chmod +x old/bin/*; test -e new || {{ {CONFIGURE}>log; mv old new; }}; cmake -B b >log; cmake --build b",
        "delete the build folder (or CMakeCache.txt)",
        "rm -r b; cmake -G 'Unix Makefiles' -B b; {}  # delete the build folder (or CMakeCache.txt)",
        "cmake make",
    ),
    Case(
        "exec-format",
        {
            "CMakeLists.txt": f"{NONE}find_program(Protobuf_PROTOC_EXECUTABLE protoc PATHS ${{CMAKE_SOURCE_DIR}}/cross"
            " NO_DEFAULT_PATH)\nadd_custom_target(all-files ALL COMMAND ${Protobuf_PROTOC_EXECUTABLE} x)\n",
            "own/protoc": "#!/bin/sh\n",
            "a.s": "",
        },
        "mkdir -p cross; clang --target=riscv64-linux-gnu -c a.s -o cross/protoc; chmod +x cross/protoc own/protoc; "
        + CONFIGURE
        + "$OPTIONS"
        + BUILD,
        "-DProtobuf_PROTOC_EXECUTABLE=/usr/bin/protoc",
        "export OPTIONS=-DProtobuf_PROTOC_EXECUTABLE=$PWD/own/protoc; {}"
        "  # -DProtobuf_PROTOC_EXECUTABLE=/usr/bin/protoc",
        "cmake clang",
    ),
    Case(
        "cpm-not-loaded",
        {
            "CMakeLists.txt": f"{NONE}set(file ${{CMAKE_BINARY_DIR}}/cmake/CPM_0.40.2.cmake)\n"
            "if(NOT EXISTS ${file})\n"
            "  file(DOWNLOAD ${SOURCE}/CPM.cmake ${file})\nendif()\ninclude(${file})\nCPMAddPackage(x)\n",
            "served/CPM.cmake": "function(CPMAddPackage)\nendfunction()\n",
        },
        "cmake -B b -DSOURCE=file://$PWD/${FOLDER-gone}",
        "find . -name 'CPM*.cmake' -size 0 -delete",
        "find . -name 'CPM*.cmake' -size 0 -delete; export FOLDER=served; {}",
        "cmake",
    ),
    Case(
        "vcpkg-root-unset",
        {
            "CMakeLists.txt": C,
            "CMakePresets.json": '{"version": 3, "configurePresets": [{"name": "x", "generator": "Unix Makefiles",'
            ' "binaryDir": "b", "toolchainFile": "$env{VCPKG_ROOT}/scripts/buildsystems/vcpkg.cmake"}]}\n',
            "vcpkg/scripts/buildsystems/vcpkg.cmake": "",
        },
        "rm -rf b; cmake --preset x",
        "export VCPKG_ROOT=/path/to/vcpkg",
        "export VCPKG_ROOT=$PWD/vcpkg; {}  # export VCPKG_ROOT=/path/to/vcpkg",
        "cmake gcc",
    ),
    Case(
        "relative-path-given",
        {"Makefile": "all:\n\tpython3 gen.py\n", "gen.py": "", "llvm/version.txt": "", "build/x": ""},
        "echo \"import os; open(os.environ['LLVM_BUILD_DIR'] + '/version.txt')\" >gen.py; cd build; set -x;"
        " export LLVM_BUILD_DIR=${LLVM-../llvm}; cd ..; make",
        "LLVM_BUILD_DIR=$(realpath ../llvm)",
        "cd build; LLVM_BUILD_DIR=$(realpath ../llvm); export LLVM=$LLVM_BUILD_DIR; cd ..; {}",
        "make python3",
    ),
    Case(
        "ninja-two-rules",
        {
            "CMakeLists.txt": f"{NONE}foreach(one a b)\n  add_custom_command(OUTPUT ${{CMAKE_BINARY_DIR}}/x.h"
            " COMMAND ${CMAKE_COMMAND} -E touch x.h COMMENT ${one})\nendforeach()\n"
            "file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/l)\nadd_subdirectory(s)\n"
            "add_custom_target(t ALL DEPENDS ${CMAKE_BINARY_DIR}/x.h)\n",
            "s/CMakeLists.txt": "add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/x.h"
            " COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/x.h)\n"
            "add_custom_target(u ALL DEPENDS ${CMAKE_BINARY_DIR}/x.h)\n",
        },
        'rm -rf b; cmake -B b -G "${G-Ninja}" >log; cmake --build b',
        "cmake -G 'Unix Makefiles' in an empty build folder",
        "export G='Unix Makefiles'; {}  # cmake -G 'Unix Makefiles' in an empty build folder",
        "cmake ninja make",
    ),
    Case(
        "fortran-compiler-missing",
        {
            "CMakeLists.txt": f"{NONE}option(ENABLE_FORTRAN yes ON)\nif(ENABLE_FORTRAN)\n"
            "  enable_language(Fortran)\nendif()\n"
        },
        "cmake=$(command -v cmake); rm -rf b; PATH=/nowhere $cmake -G 'Unix Makefiles' -B b"
        " -DCMAKE_MAKE_PROGRAM=/usr/bin/make -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF $OPTIONS",
        "-DENABLE_FORTRAN=OFF",
        'rm() { /bin/rm "$@"; }; export OPTIONS=-DENABLE_FORTRAN=OFF; {}',
        "cmake make",
    ),
    Case(
        "cmake-python-numpy",
        {
            "CMakeLists.txt": f"{C}find_package(Python3 REQUIRED COMPONENTS Interpreter NumPy)\n",
            "s/numpy/__init__.py": "__version__ = '1'\ndef get_include():\n    return __path__[0]\n",
            "s/numpy/numpy/arrayobject.h": "",
            "bin/python3": '#!/bin/sh\nPYTHONPATH=$NUMPY exec /usr/bin/python3 "$@"\n',
        },
        "chmod +x bin/*; " + CONFIGURE + "${OPTIONS--DPython3_EXECUTABLE=/usr/bin/python3} $MORE",
        "-DPython3_EXECUTABLE=$(which python)",
        "chmod +x bin/*; export NUMPY=$PWD/s; python() { :; }; export OPTIONS=-DPython3_EXECUTABLE=$PWD/bin/python3;"
        " {}  # -DPython3_EXECUTABLE=$(which python)",
        "cmake gcc",
    ),
    Case(
        "llvm-projects-list",
        {"CMakeLists.txt": LLVM},
        CONFIGURE + '"${LIST--DLLVM_ENABLE_PROJECTS=clang,lld}"',
        '-DLLVM_ENABLE_PROJECTS="clang;lld"',
        'export LIST=-DLLVM_ENABLE_PROJECTS="clang;lld"; {}',
        "cmake",
    ),
    Case(
        "llvm-runtime-in-projects",
        {"CMakeLists.txt": LLVM},
        CONFIGURE + '"${LIST--DLLVM_ENABLE_PROJECTS=clang;libcxx}" "${MORE--DX=}"',
        '-DLLVM_ENABLE_RUNTIMES="libcxx;libcxxabi;libunwind"',
        'export LIST=-DLLVM_ENABLE_PROJECTS=clang MORE=-DLLVM_ENABLE_RUNTIMES="libcxx;libcxxabi;libunwind"; {}',
        "cmake",
    ),
    Case(
        "llvm-target-experimental",
        {"CMakeLists.txt": LLVM},
        CONFIGURE + '"${LIST--DLLVM_TARGETS_TO_BUILD=x86}"',
        '-DLLVM_TARGETS_TO_BUILD="X86;NVPTX"',
        'export LIST=-DLLVM_TARGETS_TO_BUILD="X86;NVPTX"; {}',
        "cmake",
    ),
    Case(
        "mysql-boost",
        {
            "CMakeLists.txt": f'{NONE}if(NOT DOWNLOAD_BOOST)\n  message(STATUS "You can download it with'
            ' -DDOWNLOAD_BOOST=1 -DWITH_BOOST=<directory>")\n  message(FATAL_ERROR "Could not find boost")\nendif()\n'
        },
        CONFIGURE + "$OPTIONS",
        "-DDOWNLOAD_BOOST=1 -DWITH_BOOST=$HOME/boost",
        "export OPTIONS='-DDOWNLOAD_BOOST=1 -DWITH_BOOST=$HOME/boost'; {}",
        "cmake",
    ),
    Case(
        "library-of-sources-not-built",
        {
            "CMakeLists.txt": f"{C}add_library(decoder SHARED x.c)\n"
            "set_target_properties(decoder PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR}/pydecoder)\n",
            "x.c": "",
            "pydecoder/__init__.py": "",
            "setup.py": "from setuptools import setup\nsetup(name='p', packages=['pydecoder'],"
            " data_files=[('pydecoder', ['pydecoder/libdecoder.so'])])\n",
        },
        "/usr/bin/python3 setup.py -q build install_data -d out",
        "cmake -B build && cmake --build build",
        "export CMAKE_GENERATOR='Unix Makefiles'; cmake -B build && cmake --build build; {}",
        "cmake gcc pip",
    ),
    Case(
        "autoconf-macro-left",
        {"configure.ac": "AC_INIT([p], [1])\nAX_LOCAL_CHECK(17, [a])\nAC_OUTPUT\n"},
        "test -e configure || autoconf 2>log; ./configure",
        "autoreconf -fi",
        "mkdir m4; echo 'AC_DEFUN([AX_LOCAL_CHECK], [])' >m4/a.m4; export ACLOCAL_PATH=$PWD/m4; autoreconf -fi; {}",
        "autoreconf",
    ),
    Case(
        "autoconf-auxiliary-files",
        {"configure.ac": AUTOMAKE, "Makefile.am": ""},
        "test -e configure || { aclocal; autoconf; } >log 2>&1; ./configure",
        "autoreconf -fi",
        "autoreconf -fi; {}",
        "autoreconf",
    ),
    Case(
        "configure-clock",
        {"configure.ac": AUTOMAKE, "Makefile.am": ""},
        "test -e configure || { autoreconf -fi; touch -d '1 hour' configure; } >log 2>&1; ./configure",
        "find . -exec touch {} +",
        "find . -exec touch {} +; sleep 0.01; ./configure",
        "autoreconf",
    ),
    Case(
        "module-command-missing",
        {"build.sh": "#!/bin/bash\nmodule load gcc\n", "modules/init/bash": "module() { true; }\nexport -f module\n"},
        "unset -f module; export MODULESHOME=$PWD/modules; bash -e build.sh",
        "$MODULESHOME/init/bash",
        "unset -f module; export MODULESHOME=$PWD/modules; source $MODULESHOME/init/bash; bash -e build.sh",
        "bash",
    ),
    Case(
        "sccache-failed",
        {"CMakeLists.txt": C + "add_library(a OBJECT a.c)\n", "a.c": ""},
        "export CMAKE_C_COMPILER_LAUNCHER=sccache SCCACHE_DIR=/proc/cache SCCACHE_SERVER_PORT=9 SCCACHE_NO_DAEMON=;"
        f' eval "$FIRST"; {CONFIGURE}{BUILD}',
        "unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CUDA_COMPILER_LAUNCHER",
        "export FIRST='unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CUDA_COMPILER_LAUNCHER'; {}",
        "sccache cmake gcc",
    ),
    Case(
        "cmake-no-lists",
        {"src/CMakeLists.txt": NONE},
        "cmake -S . -B build",
        "cmake -S SOURCE -B build",
        "cmake -S src -B build  # cmake -S SOURCE -B build",
        "cmake",
    ),
    Case(
        "kernel-config-missing",
        {
            "Makefile": "all: .config\n\ttest -e .config\n.config:\n"
            "\t@echo '***'; echo '*** Configuration file \".config\" not found!'; exit 1\n"
            "defconfig:\n\ttouch .config\n",
        },
        "make",
        "make defconfig",
        "make defconfig; {}",
        "make",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
