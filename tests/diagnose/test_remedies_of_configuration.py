"""Remedies of CMake, make, ninja and what they build: each repairs a small project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, LOCAL, MAIN, NONE, C, Case, check_that_it_repairs

CASES = [
    Case(
        "submodule-out-of-step",
        {"a.cpp": '#include "x.h"\ncutlass::New *kept;\n', "s/x.h": "namespace cutlass { struct Old; }\n"},
        LOCAL
        + f"test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a; echo 'namespace cutlass {{ struct"
        f" New; }}'"
        f" >x.h; {GIT} commit -qam b); {GIT} init -q p; cd p; git submodule --quiet add $PWD/../s third_party/s;"
        f" cp ../a.cpp .; git add .; {GIT} commit -qm a; cd ..; git clone -q --recurse-submodules p c;"
        ' git -C c/third_party/s checkout -q HEAD~1; }; cd c; eval "$FIRST"; g++ -Ithird_party/s -fsyntax-only a.cpp',
        "git submodule sync && git submodule update --init --recursive",
        "export FIRST='git submodule sync && git submodule update --init --recursive'; {}",
        "g++ git",
    ),
    Case(
        "cmake-generator-unknown",
        {"CMakeLists.txt": NONE},
        "cmake -S . -B build -G ninja",
        "cmake -S . -B build -G Ninja",
        "cmake -S . -B build -G Ninja",
        "ninja cmake",
    ),
    Case(
        "cmake-cache-damaged",
        {"CMakeLists.txt": NONE},
        "test -e build || { cmake -S . -B build >log; echo cut >>build/CMakeCache.txt; }; cmake -S . -B build",
        "rm build/CMakeCache.txt",
        "rm build/CMakeCache.txt; {}",
        "cmake",
    ),
    Case(
        "cmake-required-not-found",
        {
            "CMakeLists.txt": f"{NONE}find_program(TOOL tool-of-nobody REQUIRED)\n",
            "found/bin/tool-of-nobody": "#!/bin/sh\n",
        },
        "chmod +x found/bin/*; rm -rf b; cmake -B b $OPTIONS",
        "-DCMAKE_PREFIX_PATH=/path",
        "export OPTIONS=-DCMAKE_PREFIX_PATH=$PWD/found; {}  # -DCMAKE_PREFIX_PATH=/path",
        "cmake",
    ),
    Case(
        "make-no-folder",
        {"CMakeLists.txt": NONE},
        "make -C build",
        "cmake -S . -B build",
        "export CMAKE_GENERATOR='Unix Makefiles'; cmake -S . -B build; {}",
        "make cmake",
    ),
    Case(
        "cmake-empty-variable",
        {"CMakeLists.txt": f"{NONE}string(REPLACE a b first ${{VERSIONS}})\n"},
        "rm -rf b; cmake -B b $OPTIONS",
        "-DNAME=VALUE",
        "export OPTIONS=-DVERSIONS=1; {}  # -DNAME=VALUE",
        "cmake",
    ),
    Case(
        "cmake-target-of-others",
        {
            "CMakeLists.txt": f"{NONE}option(WITH_NOBODY no OFF)\nif(WITH_NOBODY)\n  add_library(nobody INTERFACE)\n"
            "endif()\ntarget_link_libraries(nobody INTERFACE m)\n"
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "switch that on",
        "export OPTIONS=-DWITH_NOBODY=ON; {}  # switch that on",
        "cmake",
    ),
    Case(
        "cmake-no-such-target",
        {
            "CMakeLists.txt": f"{NONE}add_subdirectory(third_party)\n"
            "set_target_properties(nobody PROPERTIES FOLDER x)\n",
            "third_party/CMakeLists.txt": "if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/s/CMakeLists.txt)\n"
            "  add_subdirectory(s)\nendif()\n",
            "s/CMakeLists.txt": "add_library(nobody INTERFACE)\n",
        },
        LOCAL + f"test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); {GIT} init -q;"
        f" git submodule --quiet add $PWD/s third_party/s; git add CMakeLists.txt third_party; {GIT} commit -qm a;"
        ' git clone -q . c; }; cd c; eval "$FIRST"; cmake -B b',
        "git submodule update --init --recursive",
        "export FIRST='git submodule update --init --recursive'; {}",
        "cmake git",
    ),
    Case(
        "cmake-source-dir-empty",
        {
            "CMakeLists.txt": f"{NONE}include(ExternalProject)\n"
            "ExternalProject_Add(s SOURCE_DIR ${CMAKE_SOURCE_DIR}/third_party/s)\n",
            "s/CMakeLists.txt": "",
        },
        LOCAL + f"test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); {GIT} init -q;"
        f" git submodule --quiet add $PWD/s third_party/s; git add CMakeLists.txt; {GIT} commit -qm a;"
        ' git clone -q . c; }; cd c; eval "$FIRST"; cmake -B b',
        "git submodule update --init --recursive",
        "export FIRST='git submodule update --init --recursive'; {}",
        "cmake git",
    ),
    Case(
        "cmake-make-missing",
        {"CMakeLists.txt": NONE},
        "cmake=$(command -v cmake); mkdir -p bin; PATH=$PWD/bin $cmake -G Ninja -B b -DCMAKE_MAKE_PROGRAM=ninja",
        "put it on PATH",
        "ln -s $(command -v ninja) bin; rm -r b; {}  # put it on PATH",
        "cmake ninja",
    ),
    Case(
        "cmake-no-build-program",
        {"CMakeLists.txt": NONE},
        "cmake=$(command -v cmake); mkdir -p bin; PATH=$PWD/bin $cmake -G Ninja -B b",
        "delete CMakeCache.txt and configure again",
        "ln -s $(command -v ninja) bin; rm b/CMakeCache.txt; {}  # delete CMakeCache.txt and configure again",
        "cmake ninja",
    ),
    Case(
        "test-discovery-failed",
        {
            "CMakeLists.txt": f"{C}include(GoogleTest)\nadd_executable(tests m.c)\ngtest_discover_tests(tests)\n",
            "m.c": "int main(void) { return 127; }\n",
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b $OPTIONS >log && cmake --build b",
        "-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST",
        "export OPTIONS=-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST; {}",
        "cmake gcc",
    ),
    Case(
        "test-discovery-timeout",
        {
            "CMakeLists.txt": f"{C}include(CTest)\ninclude(GoogleTest)\nif(BUILD_TESTING)\n  add_executable(tests"
            f" m.c)\n"
            "  gtest_discover_tests(tests DISCOVERY_TIMEOUT 1)\nendif()\n",
            "m.c": "#include <unistd.h>\nint main(void) { pause(); }\n",
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b $OPTIONS >log && cmake --build b",
        "-DBUILD_TESTING=OFF",
        "export OPTIONS=-DBUILD_TESTING=OFF; {}",
        "cmake gcc",
    ),
    Case(
        "cmake-input-file-missing",
        {"CMakeLists.txt": f"{NONE}configure_file(v.in v)\n", "v.in": ""},
        f"test -e .git || {{ {GIT} init -q; git add .; {GIT} commit -qm a; rm v.in; }}; rm -rf b; cmake -B b",
        "git restore",
        "git restore v.in; {}",
        "cmake git",
    ),
    Case(
        "cmake-unknown-argument",
        {"CMakeLists.txt": NONE},
        "cmake --source . --generator Ninja",
        "cmake -S . -B build -G Ninja -DNAME=VALUE",
        "cmake -S . -B build -G Ninja -DNAME=VALUE",
        "cmake ninja",
    ),
    Case(
        "library-path-wrong",
        {
            "CMakeLists.txt": f"{C}find_library(X x PATHS ${{CMAKE_SOURCE_DIR}}/old ${{CMAKE_SOURCE_DIR}}/new"
            " NO_DEFAULT_PATH)\nadd_executable(app m.c)\ntarget_link_libraries(app ${X})\n",
            "m.c": MAIN,
            "x.c": "",
        },
        "test -e new || { mkdir old; gcc -shared x.c -o old/libx.so;"
        " cmake -G 'Unix Makefiles' -B b >log; mv old new; };"
        " cmake -B b >log; cmake --build b",
        "configure in an empty build folder",
        "rm -r b; {}  # configure in an empty build folder",
        "cmake gcc",
    ),
    Case(
        "boost-system-gone",
        {
            "CMakeLists.txt": f"{NONE}find_package(Boost CONFIG REQUIRED COMPONENTS system headers)\n",
            "d/BoostConfig.cmake": "foreach(one ${Boost_FIND_COMPONENTS})\n"
            "  find_package(boost_${one} 1.89.0 EXACT CONFIG REQUIRED)\nendforeach()\n",
            "d/boost_headersConfig.cmake": "",
            "d/boost_headersConfigVersion.cmake": "set(PACKAGE_VERSION 1.89.0)\nset(PACKAGE_VERSION_EXACT TRUE)\n",
        },
        "rm -rf b; cmake -B b -DCMAKE_PREFIX_PATH=$PWD/d",
        r"sed -i 's/\bsystem\b//'",
        r"sed -i 's/\bsystem\b//' CMakeLists.txt; {}",
        "cmake",
    ),
    Case(
        "cmake-torch-not-found",
        {
            "CMakeLists.txt": f"{NONE}find_package(Torch REQUIRED)\n",
            "s/torch/__init__.py": "from . import utils\n",
            "s/torch/utils.py": "import os\ncmake_prefix_path = os.path.dirname(__file__) + '/share/cmake'\n",
            "s/torch/share/cmake/Torch/TorchConfig.cmake": "",
        },
        'rm -rf b; eval "cmake -B b $OPTIONS"',
        "-DCMAKE_PREFIX_PATH=\"$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')\"",
        "export PYTHONPATH=$PWD/s; export OPTIONS=-DCMAKE_PREFIX_PATH=\"$(python -c 'import torch;"
        " print(torch.utils.cmake_prefix_path)')\";"
        " rm -rf b; cmake -B b $OPTIONS",
        "cmake python",
    ),
    Case(
        "cmake-variable-of-table",
        {
            "CMakeLists.txt": f"{C}find_library(PNG_LIBRARY png-of-nobody)\nadd_executable(app m.c)\n"
            "target_link_libraries(app ${PNG_LIBRARY})\n",
            "m.c": MAIN,
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DPNG_LIBRARY=/path/to/it",
        "export OPTIONS=-DPNG_LIBRARY=m; {}  # -DPNG_LIBRARY=/path/to/it",
        "cmake",
    ),
    Case(
        "ninja-unknown-target",
        {"CMakeLists.txt": f"{NONE}if(WITH_EXTRA)\n  add_custom_target(extra)\nendif()\n"},
        "cmake -G Ninja -B b $OPTIONS >log; ninja -C b extra",
        "If an option of the project makes it, configure again with that option",
        "export OPTIONS=-DWITH_EXTRA=ON; {}  # If an option of the project makes it, configure again with that option",
        "cmake ninja",
    ),
    Case(
        "make-unknown-target",
        {"CMakeLists.txt": NONE},
        "make build-all",
        "cmake -S . -B build && cmake --build build",
        "cmake -S . -B build && cmake --build build",
        "cmake make",
    ),
    Case(
        "make-unknown-target",
        {"configure": "#!/bin/sh\nprintf 'all:\\n' >Makefile\n"},
        "make gears",
        "./configure && make",
        "chmod +x configure; ./configure && make",
        "make",
    ),
    Case(
        "make-recursive-variable",
        {"Makefile": "CFLAGS = $(CFLAGS) -O2\nall:\n\t@true $(CFLAGS)\n"},
        "make",
        "NAME := $(NAME) more",
        "sed -i 's/^CFLAGS = /CFLAGS := /' Makefile; {}  # NAME := $(NAME) more",
        "make",
    ),
    Case(
        "make-target-patterns",
        {"Makefile": "all: ; @true\n-include a.d\n", "a.d": "a.o: C:/src/a.c: b.h\n"},
        "make",
        "find . -name '*.d' -delete",
        "find . -name '*.d' -delete; {}",
        "make",
    ),
    Case(
        "cmake-rpath-as-expected",
        {
            "CMakeLists.txt": f"{C}add_library(x SHARED a.c)\n"
            "add_executable(m main.c)\ntarget_link_libraries(m x)\ninstall(TARGETS m x)\n",
            "a.c": "int x;\n",
            "main.c": MAIN,
        },
        "rm -rf b; cmake -B b -DCMAKE_INSTALL_PREFIX=$PWD/i -DCMAKE_INSTALL_RPATH=$PWD/i/lib $OPTIONS"
        ' && cmake --build b && if [ ! "$OPTIONS" ]; then cp /bin/true b/m; fi && cmake --install b',
        "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
        "export OPTIONS=-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON; {}",
        "cmake gcc make",
    ),
    Case(
        "cmake-folder-outside",
        {
            "p/CMakeLists.txt": f"{NONE}add_subdirectory(../common)\n",
            "common/CMakeLists.txt": "",
        },
        "rm -rf b; cmake -S p -B b",
        "${CMAKE_BINARY_DIR}/lib)",
        "sed -i 's,common),common ${CMAKE_BINARY_DIR}/lib),' p/CMakeLists.txt; {}  # ${CMAKE_BINARY_DIR}/lib)",
        "cmake",
    ),
    Case(
        "cmake-language-not-enabled",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nadd_library(x STATIC a.c)\n"
            "set_target_properties(x PROPERTIES LINKER_LANGUAGE C)\nproject(p LANGUAGES NONE)\n",
            "a.c": "int x;\n",
        },
        "rm -rf b; cmake -B b",
        "enable_language(C)",
        "sed -i 's/^project.*/project(p LANGUAGES NONE)\\nenable_language(C)/' CMakeLists.txt; {}",
        "cmake gcc",
    ),
    Case(
        "make-recipe-tabs",
        {"Makefile": "all:\n    true\n"},
        "make",
        "sed -i '5s/^ \\+/\\t/' Makefile",
        "sed -i 's/^ \\+/\\t/' Makefile; {}  # sed -i '5s/^ \\+/\\t/' Makefile",
        "make",
    ),
    Case(
        "make-write-error",
        {"Makefile": "all:\n\t@true\n$(info begun)\n"},
        "make >/dev/full",
        "make > build.log 2>&1",
        "make > build.log 2>&1",
        "make",
    ),
    Case(
        "build-tool-arguments",
        {"build.ninja": "build all: phony\n"},
        'eval "$FIRST"; ninja -j $JOBS all',
        "JOBS=$(nproc)",
        "export FIRST='JOBS=$(nproc)'; {}",
        "ninja",
    ),
    Case(
        "redis-dependencies",
        {
            "Makefile": "MALLOC = jemalloc\na.o: src/zmalloc.h\n\tgcc -DUSE_$(MALLOC) -I$(CURDIR)/src -c src/a.c\n"
            "distclean:\n\trm -f a.o\n",
            "src/a.c": '#include "zmalloc.h"\n',
            "src/zmalloc.h": "#ifdef USE_jemalloc\n#include <jemalloc/jemalloc.h>\n#endif\n",
        },
        "make",
        "make MALLOC=libc",
        "make MALLOC=libc",
        "make gcc",
    ),
    Case(
        "makeinfo-missing",
        {
            "Makefile": "MAKEINFO = ./missing makeinfo\na.info: a.texi\n\t$(MAKEINFO) a.texi -o a.info\n",
            "missing": "#!/bin/sh\necho \"WARNING: 'makeinfo' is missing on your system.\"\nexit 127\n",
            "a.texi": "",
        },
        "chmod +x missing; make",
        "make MAKEINFO=true",
        "make MAKEINFO=true",
        "make",
    ),
    Case(
        "openblas-target",
        {
            "Makefile": "ifndef TARGET\n$(error OpenBLAS: Detecting CPU failed. Please set TARGET explicitly, e.g."
            " make TARGET=your_cpu_target. Please read README for the detail.)\nendif\nall:\n"
        },
        "make",
        "make TARGET=HASWELL",
        "make TARGET=HASWELL",
        "make",
    ),
    Case(
        "copied-file-missing",
        {
            "Makefile": "all: made copied\nmade:\n\tcase '$(MAKEFLAGS)' in *jobserver*) until test -e failed;"
            " do sleep 0.01; done; esac; touch gen.h\n"
            "copied:\n\tmkdir -p out; cp gen.h out/ || { touch failed; false; }\n"
        },
        "rm -f gen.h failed; make ${JOBS--j 2}",
        "build again with -j 1",
        "export JOBS='-j 1'; {}  # build again with -j 1",
        "make",
    ),
    Case(
        "llvm-build-type",
        {
            "CMakeLists.txt": f'{NONE}if(NOT CMAKE_BUILD_TYPE)\n  message(FATAL_ERROR "\n'
            "No build type selected. You need to pass -DCMAKE_BUILD_TYPE=<type> in order to configure"
            ' LLVM.")\nendif()\n'
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DCMAKE_BUILD_TYPE=Release",
        "export OPTIONS=-DCMAKE_BUILD_TYPE=Release; {}",
        "cmake",
    ),
    Case(
        "java-missing",
        {
            "gradlew": '[ -n "$JAVA_HOME" ] && [ -x "$JAVA_HOME/bin/javac" ] ||'
            ' { echo "ERROR: JAVA_HOME is not set"; exit 1; }\n'
        },
        "sh gradlew",
        "export JAVA_HOME=$(dirname $(dirname $(readlink -f $(which javac))))",
        "export JAVA_HOME=$(dirname $(dirname $(readlink -f $(which javac)))); {}",
        "javac",
    ),
    Case(
        "unit-tests-failed",
        {
            "rules": "build:\nifeq (,$(filter nocheck,$(DEB_BUILD_OPTIONS)))\n"
            "\t@echo '[  FAILED  ] Foo.Bar (1 ms)'; echo ' 1 FAILED TEST'; exit 1\nendif\n"
        },
        "make -f rules",
        "DEB_BUILD_OPTIONS=nocheck",
        "export DEB_BUILD_OPTIONS=nocheck; {}",
        "make",
    ),
    Case(
        "opencv4-pkg-config",
        {"lib/opencv4.pc": "Name: o\nDescription: o\nVersion: 4.6.0\nCflags: -DFOUND\n"},
        "export HOME=$PWD PKG_CONFIG_LIBDIR=$PWD/lib; pkg-config --cflags opencv",
        "mkdir -p $HOME/pc; ln -s $(pkg-config --variable=pcfiledir opencv4)/opencv4.pc $HOME/pc/opencv.pc;"
        " export PKG_CONFIG_PATH=$HOME/pc",
        "export HOME=$PWD PKG_CONFIG_LIBDIR=$PWD/lib;"
        " mkdir -p $HOME/pc; ln -s $(pkg-config --variable=pcfiledir opencv4)/opencv4.pc $HOME/pc/opencv.pc;"
        " export PKG_CONFIG_PATH=$HOME/pc; {}",
        "pkg-config",
    ),
    Case(
        "cmake-preset",
        {
            "CMakeLists.txt": NONE,
            "CMakePresets.json": '{"version": 3, "configurePresets": [{"name": "linux-release", "generator": "Ninja",'
            ' "binaryDir": "b"}]}\n',
        },
        "cmake --preset ${NAME-release}",
        "cmake --list-presets",
        'export NAME=$(cmake --list-presets | grep -o "[a-z]*-release"); {}',
        "cmake ninja",
    ),
    Case(
        "cmake-lto-unsupported",
        {
            "CMakeLists.txt": f"{C}include(CheckIPOSupported)\nif(CMAKE_INTERPROCEDURAL_OPTIMIZATION)\n"
            "  check_ipo_supported(LANGUAGES C)\nendif()\n"
        },
        "rm -rf b; cmake -B b -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_C_COMPILER_AR=/bin/false"
        " -DCMAKE_C_COMPILER_RANLIB=/bin/false $OPTIONS",
        "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF",
        "export OPTIONS=-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF; {}",
        "cmake",
    ),
    Case(
        "no-name-resolution",
        {
            "CMakeLists.txt": f"{NONE}include(FetchContent)\n"
            "FetchContent_Declare(fmt GIT_REPOSITORY https://git.invalid/fmt)\nFetchContent_MakeAvailable(fmt)\n",
            "fmt/CMakeLists.txt": "",
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DFETCHCONTENT_SOURCE_DIR_NAME=/path/to/its/sources",
        "export OPTIONS=-DFETCHCONTENT_SOURCE_DIR_FMT=$PWD/fmt; {}"
        "  # -DFETCHCONTENT_SOURCE_DIR_NAME=/path/to/its/sources",
        "cmake git",
    ),
    Case(
        "names-a-package",
        {
            "CMakeLists.txt": f"{NONE}find_file(FOUND fftw3.h PATH_SUFFIXES include NO_CMAKE_SYSTEM_PATH)\n"
            'if(NOT FOUND)\n  message(FATAL_ERROR "libfoo needs FFTW3, please install it.")\nendif()\n',
            "found/include/fftw3.h": "",
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DCMAKE_PREFIX_PATH=/path",
        "export OPTIONS=-DCMAKE_PREFIX_PATH=$PWD/found; {}  # -DCMAKE_PREFIX_PATH=/path",
        "cmake",
    ),
    Case(
        "configure-cannot-run",
        {"configure.ac": "AC_INIT([p], [1])\nAC_PROG_CC\nAC_OUTPUT\n", "x.c": ""},
        "mkdir -p d; gcc -shared x.c -Wl,-soname,libfar.so.1 -o d/libfar.so.1; test -e configure || autoconf;"
        ' export LDFLAGS="-Wl,--no-as-needed $PWD/d/libfar.so.1"; eval "$FIRST"; ./configure',
        "Unset LDFLAGS, CFLAGS and LD_LIBRARY_PATH",
        "export FIRST='unset LDFLAGS CFLAGS LD_LIBRARY_PATH'; {}  # Unset LDFLAGS, CFLAGS and LD_LIBRARY_PATH",
        "autoconf gcc",
    ),
    Case(
        "meson-linker",
        {"meson.build": "project('p', 'c')\n"},
        'export LDFLAGS=-fuse-ld=gone; eval "$FIRST"; meson setup build',
        "unset LDFLAGS CC_LD CXX_LD",
        "export FIRST='unset LDFLAGS CC_LD CXX_LD'; rm -r build; {}",
        "meson gcc",
    ),
    Case(
        "meson-file-missing",
        {"meson.build": "project('p')\nsubdir('s')\n", "s/meson.build": ""},
        LOCAL
        + f"test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); {GIT} init -q p; cp meson.build p;"
        f" cd p; git submodule --quiet add $PWD/../s s; git add .; {GIT} commit -qm a; cd ..; git clone -q p c; }};"
        ' cd c; eval "$FIRST"; meson setup build',
        "git submodule update --init --recursive",
        "export FIRST='git submodule update --init --recursive; rm -rf build'; {}",
        "meson git",
    ),
    Case(
        "cmake-syntax",
        {"CMakeLists.txt": NONE},
        f"test -e .git || {{ {GIT} init -q; git add .; {GIT} commit -qm a; echo 'set(A' >>CMakeLists.txt; }};"
        " rm -rf b; cmake -B b",
        "git checkout --",
        "git checkout -- CMakeLists.txt; {}",
        "git cmake",
    ),
    Case(
        "make-no-makefile",
        {"CMakeLists.txt": NONE},
        "make",
        "cmake -S . -B build && cmake --build build",
        "cmake -S . -B build && cmake --build build",
        "make cmake",
    ),
    Case(
        "ninja-cycle",
        {
            "build.ninja": "rule t\n command = touch $out\n depfile = build/$out.d\n deps = gcc\nbuild a: t b\nbuild"
            " b: t a\n"
        },
        "ninja a",
        "take one arrow of the line out",
        "sed -i 's/^build b: t a/build b: t/' build.ninja; {}  # take one arrow of the line out",
        "ninja",
    ),
    Case(
        "cmake-standard-value",
        {"p/CMakeLists.txt": C, "p/a.c": MAIN},
        "rm -rf b; cmake -S p -B b ${STD:--DCMAKE_C_STANDARD=c11}",
        "-DCMAKE_C_STANDARD=11",
        "export STD=-DCMAKE_C_STANDARD=11; {}",
        "gcc cmake make",
    ),
    Case(
        "cmake-variable-without-value",
        {"CMakeLists.txt": NONE},
        "cmake -S . -B b -DFOO = 1",
        "-DFOO=",
        "cmake -S . -B b -DFOO=1",
        "cmake",
    ),
    Case(
        "ninja-target-misspelt",
        {"build.ninja": "rule t\n command = touch $out\nbuild install: t\n"},
        "ninja instal",
        "ninja install",
        "ninja install",
        "ninja",
    ),
    Case(
        "library-before-objects",
        {"a.c": "#include <math.h>\nint main(int c, char **v) { return log2(c) < 0; }\n"},
        "gcc -fno-builtin -c a.c && make LDFLAGS='-Wl,--as-needed -lm' -f /dev/null a",
        "make LDFLAGS= LDLIBS='-lm'",
        "gcc -fno-builtin -c a.c; make LDFLAGS= LDLIBS='-lm' -f /dev/null a",
        "gcc make",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
