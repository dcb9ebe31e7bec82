"""Remedies that are a command or a variable, each against a small project that fails just so: then it builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, NONE, C, Case, check_that_it_repairs

CMAKE = "rm -rf b && cmake -B b -G 'Unix Makefiles' {} >/dev/null && cmake --build b"
CXX = "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
OPENMP = C + "add_library(a OBJECT a.c)\ntarget_compile_options(a PRIVATE -fopenmp)\nadd_executable(app m.c)\n"


def cxx(source: str, options: str = "") -> tuple[dict[str, str], str]:
    """A program of one C++ source in CMake."""
    lists = f"{CXX}add_executable(app main.cpp)\ntarget_compile_options(app PRIVATE {options})\n"
    return {"CMakeLists.txt": lists, "main.cpp": source}, CMAKE.format("")


CASES = [
    Case(
        "warnings-as-errors",
        *cxx("int main() { int x; }\n", "-Wall -Werror"),
        'CXXFLAGS="-Wno-error=unused-variable"',
        'export CXXFLAGS="-Wno-error=unused-variable"; {}',
    ),
    Case(
        "cstdint-missing",
        *cxx("struct Header { uint32_t size; };\nint main() {}\n"),
        'CXXFLAGS="-include cstdint"',
        'export CXXFLAGS="-include cstdint"; {}',
    ),
    Case(
        "std-include-missing",
        *cxx("#include <vector>\nint main() { return std::numeric_limits<int>::max(); }\n"),
        'CXXFLAGS="-include limits"',
        'export CXXFLAGS="-include limits"; {}',
    ),
    Case(
        "std-include-missing",
        {
            "Makefile": "CXXFLAGS = -std=c++17 -Iinc\na.o: a.cpp\n\t$(CXX) $(CXXFLAGS) -c a.cpp\n",
            "a.cpp": '#include "a.h"\nauto a = std::numeric_limits<int>::max();\n',
            "inc/a.h": "#include <vector>\nextern std::vector<int> b;\n",
        },
        "make",
        'make CXX="g++ -include limits"',
        'make CXX="g++ -include limits"',
        "g++ make",
    ),
    Case(
        "permissive-needed",
        *cxx("const char *q;\nint main() { char *p = q; return *p; }\n"),
        "export CXXFLAGS=-fpermissive",
        "export CXXFLAGS=-fpermissive; {}",
    ),
    Case(
        "old-cxx-enforced",
        *cxx("int main() { char a[] = {300}; return a[0]; }\n"),
        "export CXXFLAGS=-Wno-narrowing",
        "export CXXFLAGS=-Wno-narrowing; {}",
    ),
    Case(
        "standard-too-new",
        *cxx("void f() throw(int);\nint main() {}\n"),
        "-DCMAKE_CXX_STANDARD=14",
        CMAKE.format("-DCMAKE_CXX_STANDARD=14"),
    ),
    Case(
        "cxx-standard-of-name",
        {
            "CMakeLists.txt": f"{CXX}add_executable(app main.cpp)\n",
            "main.cpp": "#include <optional>\nint main() { return std::optional<int>(0).value(); }\n",
        },
        CMAKE.format("-DCMAKE_CXX_STANDARD=14"),
        "-DCMAKE_CXX_STANDARD=17",
        CMAKE.format("-DCMAKE_CXX_STANDARD=17"),
    ),
    Case(
        "compile-limit",
        *cxx(
            "template <int n> struct A { static const int v = A<n - 1>::v; };\n"
            "template <> struct A<0> { static const int v = 0; };\nint main() { return A<2000>::v; }\n"
        ),
        "-ftemplate-depth=4096",
        "export CXXFLAGS=-ftemplate-depth=4096; {}",
    ),
    Case(
        "target-option-missing",
        *cxx("#include <immintrin.h>\n__m256i f(__m256i a) { return _mm256_add_epi32(a, a); }\nint main() {}\n"),
        "-mavx2",
        "export CXXFLAGS=-mavx2; {}",
    ),
    Case(
        "missing-fpic",
        {
            "CMakeLists.txt": f"{C}add_library(a STATIC a.c)\nadd_library(b SHARED b.c)\n"
            "target_compile_options(a PRIVATE $<$<NOT:$<BOOL:${CMAKE_POSITION_INDEPENDENT_CODE}>>:-fno-pic>)\n"
            "target_link_libraries(b a)\n",
            "a.c": "int counter; int next(void) { return ++counter; }\n",
            "b.c": "int next(void); int over(void) { return next(); }\n",
        },
        CMAKE.format(""),
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        CMAKE.format("-DCMAKE_POSITION_INDEPENDENT_CODE=ON"),
    ),
    Case(
        "undefined-system-library",
        {
            "CMakeLists.txt": f"{C}add_executable(app m.c)\n",
            "m.c": "#include <math.h>\nint main(int n, char **v) { return (int)pow(n, n + 0.5); }\n",
        },
        CMAKE.format(""),
        '-DCMAKE_C_STANDARD_LIBRARIES="-lm -lpthread -ldl -lrt"',
        CMAKE.format('-DCMAKE_C_STANDARD_LIBRARIES="-lm -lpthread -ldl -lrt"'),
    ),
    Case(
        "undefined-atomic",
        {
            "CMakeLists.txt": f"{C}add_executable(app m.c)\n",
            "m.c": "struct s { long a, b; };\nstruct s x, y;\n"
            "int main(void) { __atomic_load(&x, &y, __ATOMIC_SEQ_CST); return 0; }\n",
        },
        CMAKE.format(""),
        "-DCMAKE_C_STANDARD_LIBRARIES=-latomic",
        CMAKE.format("-DCMAKE_C_STANDARD_LIBRARIES=-latomic"),
    ),
    Case(
        "undefined-openmp",
        {
            "CMakeLists.txt": OPENMP + "target_link_libraries(app a)\n",
            "a.c": "#include <omp.h>\nint most(void) { return omp_get_max_threads(); }\n",
            "m.c": "int most(void); int main(void) { return most(); }\n",
        },
        CMAKE.format(""),
        "-DCMAKE_EXE_LINKER_FLAGS=-fopenmp",
        CMAKE.format("-DCMAKE_EXE_LINKER_FLAGS=-fopenmp"),
    ),
    Case(
        "undefined-cxx-library",
        {"a.cpp": "#include <string>\nint main(int n, char **) { return std::string(n, 1).size(); }\n"},
        "g++ -c a.cpp && gcc a.o $LDFLAGS -o app",
        "LDFLAGS=-lstdc++",
        "export LDFLAGS=-lstdc++; {}",
    ),
    Case(
        "dso-missing",
        {
            "a.c": "int next(void) { return 1; }\n",
            "b.c": "int next(void); int over(void) { return next(); }\n",
            "m.c": "int next(void), over(void); int main(void) { return next() + over(); }\n",
        },
        "gcc -shared -fPIC a.c -o liba.so && gcc -shared -fPIC b.c -L. -la -o libb.so"
        " && gcc $LDFLAGS m.c -L. -lb -Wl,-rpath-link,. -o app",
        "LDFLAGS=-Wl,--copy-dt-needed-entries",
        "export LDFLAGS=-Wl,--copy-dt-needed-entries; {}",
    ),
    Case(
        "linker-libraries-order",
        {
            "a.c": "int next(void) { return 1; }\n",
            "b.c": "int next(void); int over(void) { return next(); }\n",
            "m.c": "int over(void); int main(void) { return over(); }\n",
        },
        "mkdir -p d && gcc -shared -fPIC a.c -o d/liba.so && gcc -shared -fPIC b.c -Ld -la -o libb.so"
        " && gcc $LDFLAGS m.c -L. -lb -o app",
        "LDFLAGS=-Wl,-rpath-link,",
        "export LDFLAGS=-Wl,-rpath-link,d; {}",
    ),
    Case(
        "shared-library-missing",
        {"a.c": "int next(void) { return 0; }\n", "m.c": "int next(void); int main(void) { return next(); }\n"},
        "mkdir -p d && gcc -shared -fPIC a.c -o d/liba.so && gcc m.c -Ld -la -o app && ./app",
        "export LD_LIBRARY_PATH=",
        "export LD_LIBRARY_PATH=d; {}",
    ),
    Case(
        "lto-objects",
        {
            "f.c": "int f(void) { return 0; }\n",
            "m.c": "int f(void); int main(void) { return f(); }\n",
            "ar-without-plugin": '#!/bin/sh\nexec ar --plugin /bin/true "$@"\n',
        },
        "gcc -flto -c f.c && rm -f l.a && ${AR:-sh ar-without-plugin} rc l.a f.o && gcc -flto m.c l.a -o app",
        "export AR=gcc-ar",
        "export AR=gcc-ar; {}",
    ),
    Case(
        "c-too-strict",
        {"m.c": "int main(void) { return helper(3); }\nint helper(int n) { return n; }\n"},
        "clang-19 $CFLAGS -c m.c",
        'export CFLAGS="-Wno-error=implicit-function-declaration"',
        'export CFLAGS="-Wno-error=implicit-function-declaration"; {}',
        "clang-19",
    ),
    Case(
        "fortran-mismatch",
        {"p.f": "      program p\n      real x\n      integer i\n      call f(x)\n      call f(i)\n      end\n"},
        "gfortran $FFLAGS -c p.f",
        "export FFLAGS=-fallow-argument-mismatch",
        "export FFLAGS=-fallow-argument-mismatch; {}",
        "gfortran",
    ),
    Case(
        "python-headers-missing",
        {"p.c": "#include <Python.h>\n"},
        "gcc -c p.c",
        'export CPATH="$(python3 -c \'import sysconfig; print(sysconfig.get_path("include"))\')"',
        'export CPATH="$(python3 -c \'import sysconfig; print(sysconfig.get_path("include"))\')"; {}',
    ),
    Case(
        "git-submodule-config",
        {".keep": ""},
        "rm -rf r; git init -q r; git -C r -c user.name=a -c user.email=a@x.invalid commit -q --allow-empty -m a"
        ' && cd r && git submodule add "$PWD" s',
        "git -c protocol.file.allow=always submodule",
        "cd r && git -c protocol.file.allow=always submodule add $PWD s",
        "git",
    ),
    Case(
        "script-line-ends",
        {"b.sh": "#!/bin/bash\ncd /tmp\r\n"},
        "bash b.sh",
        r"sed -i 's/\r$//' ",
        r"sed -i 's/\r$//' b.sh; {}",
        "bash",
    ),
    Case(
        "shell-not-bash",
        {"run.sh": "x=(1 2)\n"},
        "dash run.sh",
        "bash run.sh;",
        "bash run.sh;",
        "dash",
    ),
    Case(
        "nvcc-warning-as-error",
        {"k.cu": "__global__ void kernel(float *x) { int unused; x[0] = 1; }\n"},
        "nvcc -Werror all-warnings -ptx k.cu",
        'export NVCC_APPEND_FLAGS="-diag-suppress=',
        'export NVCC_APPEND_FLAGS="-diag-suppress=177"; {}',
        "nvcc",
    ),
    Case(
        "half-operators",
        {"k.cu": "#include <cuda_fp16.h>\n__global__ void kernel(__half *x) { x[0] = x[1] + x[2]; }\n"},
        "nvcc -arch=sm_80 -D__CUDA_NO_HALF_OPERATORS__ -ptx k.cu",
        "-U__CUDA_NO_HALF_OPERATORS__",
        "export NVCC_APPEND_FLAGS=-U__CUDA_NO_HALF_OPERATORS__; {}",
        "nvcc",
    ),
    Case(
        "unsupported-gpu-architecture",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CUDA)\n",
        },
        "rm -rf b && cmake -B b -DCMAKE_CUDA_ARCHITECTURES=150",
        "-DCMAKE_CUDA_ARCHITECTURES=",
        "rm -rf b && cmake -B b -DCMAKE_CUDA_ARCHITECTURES=80",
        "nvcc",
    ),
    Case(
        "gpu-architecture-dropped",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CUDA)\n",
        },
        "rm -rf b && cmake -B b -DCMAKE_CUDA_ARCHITECTURES=50",
        "-DCMAKE_CUDA_ARCHITECTURES",
        'rm -rf b && cmake -B b -DCMAKE_CUDA_ARCHITECTURES="75;90"',
        "nvcc",
    ),
    Case(
        "cmake-generator-mismatch",
        {"CMakeLists.txt": NONE},
        "test -e b || cmake -B b -G 'Unix Makefiles' >/dev/null; cmake -B b -G ${G-Ninja}",
        "Delete CMakeCache.txt and CMakeFiles",
        "rm -r b/CMakeCache.txt b/CMakeFiles; {}  # Delete CMakeCache.txt and CMakeFiles",
        "cmake",
    ),
    Case(
        "cmake-folder-moved",
        {"a/CMakeLists.txt": NONE},
        "test -e c || { cmake -S a -B a/build >/dev/null && mv a c; }; cd c; cmake -S . -B build",
        "cmake --fresh -S . -B build",
        "cd c; cmake --fresh -S . -B build",
        "cmake",
    ),
    Case(
        "cmake-package-missing",
        {"CMakeLists.txt": f"{NONE}find_package(Foo REQUIRED)\n", "d/FooConfig.cmake": ""},
        "cmake -B b $OPTIONS",
        "-DFoo_ROOT=",
        "export OPTIONS=-DFoo_ROOT=$PWD/d; rm -r b; {}",
        "cmake",
    ),
    Case(
        "cmake-package-missing",
        {"CMakeLists.txt": f"{NONE}find_package(Foo REQUIRED)\n", "d/FooConfig.cmake": ""},
        "cmake -B b $OPTIONS",
        "-DCMAKE_PREFIX_PATH=",
        "export OPTIONS=-DCMAKE_PREFIX_PATH=$PWD/d; rm -r b; {}",
        "cmake",
    ),
    Case(
        "cmake-package-version",
        {
            "CMakeLists.txt": f"{NONE}find_package(Foo 2 REQUIRED)\n",
            **{f"d{n}/FooConfig.cmake": "" for n in (1, 2)},
            "d1/FooConfigVersion.cmake": "set(PACKAGE_VERSION 1)\nset(PACKAGE_VERSION_COMPATIBLE FALSE)\n",
            "d2/FooConfigVersion.cmake": "set(PACKAGE_VERSION 2)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n",
        },
        "cmake -B b -DCMAKE_PREFIX_PATH=$PWD/d1 $OPTIONS",
        "-DFoo_DIR=",
        "export OPTIONS=-DFoo_DIR=$PWD/d2; rm -r b; {}",
        "cmake",
    ),
    Case(
        "cmake-openmp",
        {"CMakeLists.txt": f"{C}find_package(OpenMP REQUIRED)\n"},
        "rm -rf b; export CC=${CC-clang} CXX=${CXX-clang++}; cmake -B b",
        "CC=gcc CXX=g++",
        "export CC=gcc CXX=g++; {}",
        "clang",
    ),
    Case(
        "cmake-no-cache",
        {"CMakeLists.txt": NONE},
        "mkdir -p build; cmake --build build",
        "cmake -S . -B build, then cmake --build build",
        "cmake -S . -B build; {}  # cmake -S . -B build, then cmake --build build",
        "cmake",
    ),
    Case(
        "cmake-in-source",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\n"
            "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_BINARY_DIR)\n"
            '  message(FATAL_ERROR "In-source builds are not allowed")\nendif()\nproject(p LANGUAGES C)\n'
        },
        "cmake .",
        "rm -rf CMakeCache.txt CMakeFiles",
        "rm -rf CMakeCache.txt CMakeFiles; cmake -S . -B build",
        "cmake",
    ),
    Case(
        "cmake-no-lists", {"src/CMakeLists.txt": NONE}, "cmake -B build", "cmake -S ", "cmake -S src -B build", "cmake"
    ),
    Case(
        "tests-failed",
        {"CMakeLists.txt": f"{NONE}include(CTest)\nif(BUILD_TESTING)\n  add_test(NAME t COMMAND false)\nendif()\n"},
        "cmake -B b $OPTIONS >/dev/null && cd b && ctest",
        "-DBUILD_TESTING=OFF in an empty build folder",
        "export OPTIONS=-DBUILD_TESTING=OFF; rm -r b; {}  # -DBUILD_TESTING=OFF in an empty build folder",
        "ctest",
    ),
    Case(
        "ninja-no-manifest",
        {"CMakeLists.txt": NONE},
        "ninja $IN",
        "cmake -G Ninja -S . -B build",
        "cmake -G Ninja -S . -B build; export IN='-C build'; {}",
        "ninja",
    ),
    Case(
        "ninja-no-folder",
        {"CMakeLists.txt": NONE},
        "ninja -C build",
        "cmake -G Ninja -S . -B build",
        "cmake -G Ninja -S . -B build; {}",
        "ninja",
    ),
    Case(
        "ninja-missing-input",
        {
            "CMakeLists.txt": f"{C}file(GLOB SOURCES *.c)\nadd_library(a STATIC ${{SOURCES}})\n",
            "a.c": "",
            "b.c": "",
        },
        "test -e build || { cmake -B build -G Ninja >/dev/null && rm b.c; }; ninja -C build",
        "cmake -B build",
        "cmake -B build; {}",
        "ninja",
    ),
    Case(
        "ninja-dirty-loop",
        {"build.ninja": "rule again\n command = touch build.ninja\n generator = 1\nbuild build.ninja: again input\n"},
        "test -e input || touch -d tomorrow input; ninja",
        "find . -newermt now -exec touch {} +",
        "find . -newermt now -exec touch {} +; {}",
        "ninja",
    ),
    Case(
        "make-stale-header",
        {
            "Makefile": "a.o: a.c\n\tgcc -MMD -c a.c\n-include a.d\n",
            "a.c": '#if __has_include("old.h")\n#include "old.h"\n#endif\n',
            "old.h": "",
        },
        "test -e a.o || { test -e mended || { make a.o; rm old.h; touch mended; }; }; make",
        "rm -f *.d *.o",
        "rm -f *.d *.o; {}",
        "make",
    ),
    Case(
        "variable-not-set",
        {"Makefile": "ifndef CUDA_PATH\n$(error CUDA_PATH is not set)\nendif\nall:\n\ttrue\n"},
        "make",
        "export CUDA_PATH=VALUE",
        "export CUDA_PATH=/usr; {}  # export CUDA_PATH=VALUE",
        "make",
    ),
    Case(
        "shell-not-bash",
        {"Makefile": "all:\n\tset -o pipefail; true\n"},
        "make SHELL=/bin/dash $OPTIONS",
        "SHELL=/bin/bash on make's command line",
        "export OPTIONS=SHELL=/bin/bash; {}  # SHELL=/bin/bash on make's command line",
        "dash",
    ),
    Case(
        "bsd-make",
        {"Makefile": "ifeq (1,1)\nall:\n\ttrue\nendif\n"},
        "bmake",
        "gmake in place of make",
        "gmake  # gmake in place of make",
        "bmake",
    ),
    Case(
        "output-folder-missing",
        {"a.c": ""},
        "gcc -c a.c -o out/a.o",
        "mkdir -p",
        "mkdir -p out; {}",
        "gcc",
    ),
    Case(
        "permission-denied",
        {"run.sh": "#!/bin/sh\n"},
        "sh -c ./run.sh",
        "chmod +x run.sh",
        "chmod +x run.sh; {}",
        "sh",
    ),
    Case(
        "too-many-files",
        {"open.py": "files = [open('/dev/null') for _ in range(200)]\n"},
        'ulimit -Sn 50; eval "$FIRST"; python3 open.py',
        "ulimit -n $(ulimit -Hn)",
        "export FIRST='ulimit -n $(ulimit -Hn)'; {}",
        "python3",
    ),
    Case(
        "no-space-left",
        {"a.c": "char a[1 << 20] = {1};\n"},
        "mkdir -p full space; unshare -m sh -c 'mount -t tmpfs -o size=64k none full &&"
        " TMPDIR=${TMPDIR-$PWD/full} gcc a.c -shared -o a.so'",
        "TMPDIR=/path/with/space",
        "export TMPDIR=$PWD/space; {}  # TMPDIR=/path/with/space",
        "unshare",
    ),
    Case(
        "missing-header",
        {"a.c": "#include <of_nobody.h>\n", "include/of_nobody.h": ""},
        "gcc -c a.c",
        "export CPATH=",
        "export CPATH=$PWD/include; {}",
        "gcc",
    ),
    Case(
        "missing-library",
        {"a.c": "int main(void) { return 0; }\n", "b.c": ""},
        "mkdir -p lib; gcc -shared b.c -o lib/libofnobody.so; gcc a.c -lofnobody -o a",
        "export LIBRARY_PATH=",
        "export LIBRARY_PATH=$PWD/lib; {}",
        "gcc",
    ),
    Case(
        "pkg-config-package",
        {"d/ofnobody.pc": "Name: o\nDescription: o\nVersion: 1\n"},
        "pkg-config --cflags ofnobody",
        "export PKG_CONFIG_PATH=",
        "export PKG_CONFIG_PATH=$PWD/d; {}",
        "pkg-config",
    ),
    Case(
        "meson-dependency",
        {
            "d/ofnobody.pc": "Name: o\nDescription: o\nVersion: 1\n",
            "meson.build": "project('p')\ndependency('ofnobody')\n",
        },
        "test -e build || meson setup build",
        "rm -r build; meson setup build",
        "export PKG_CONFIG_PATH=$PWD/d; rm -r build; meson setup build",
        "meson",
    ),
    Case(
        "meson-option",
        {"meson.build": "project('p')\n"},
        "rm -rf build; meson setup build ${OPTIONS--Dof_nobody=1}",
        "drop -Dof_nobody",
        "export OPTIONS=; {}  # drop -Dof_nobody",
        "meson",
    ),
    Case(
        "multiple-definition",
        {"a.c": "int counter;\nint main(void) { return counter; }\n", "b.c": "int counter;\n"},
        "gcc $CFLAGS a.c b.c -o app",
        "-fcommon",
        "export CFLAGS=-fcommon; {}",
        "gcc",
    ),
    Case(
        "undefined-reference",
        {
            "CMakeLists.txt": f"{CXX}link_directories(${{CMAKE_SOURCE_DIR}})\nadd_executable(app m.cpp)\n",
            "m.cpp": "int over(); int main() { return over(); }\n",
            "a.cpp": "int over() { return 0; }\n",
        },
        "g++ -shared -fPIC a.cpp -o libover.so; " + CMAKE.format("$OPTIONS"),
        "-DCMAKE_CXX_STANDARD_LIBRARIES",
        "export OPTIONS=-DCMAKE_CXX_STANDARD_LIBRARIES=-lover; {}",
    ),
    Case(
        "undefined-known-library",
        {
            "CMakeLists.txt": f"{CXX}add_executable(app m.cpp)\n",
            "m.cpp": "#include <zlib.h>\nint main() { return zlibVersion() == nullptr; }\n",
        },
        'rm -rf b && cmake -B b "$OPTIONS" >/dev/null && cmake --build b',
        '-DCMAKE_CXX_STANDARD_LIBRARIES="-lz"',
        'export OPTIONS=-DCMAKE_CXX_STANDARD_LIBRARIES="-lz"; {}',
    ),
    Case(
        "undefined-instrumentation",
        {"m.c": "int main(void) { return 0; }\n"},
        "gcc --coverage -c m.c && gcc $LDFLAGS m.o -o app",
        "LDFLAGS=--coverage",
        "export LDFLAGS=--coverage; {}",
        "gcc",
    ),
    Case(
        "undefined-instrumentation",
        {"m.c": "int main(int n, char **v) { return v[n] != 0; }\n"},
        "gcc -fsanitize=address -c m.c && gcc $LDFLAGS m.o -o app",
        "LDFLAGS=-fsanitize=address",
        "export LDFLAGS=-fsanitize=address; {}",
        "gcc",
    ),
    Case(
        "undefined-main",
        {"f.c": "int f(void) { return 0; }\n"},
        "gcc -fPIC $LDFLAGS f.c -o libf.so",
        "Add -shared for a library",
        "export LDFLAGS=-shared; {}  # Add -shared for a library",
        "gcc",
    ),
    Case(
        "undefined-python",
        {"m.c": "#include <Python.h>\nint main(void) { Py_Initialize(); return 0; }\n"},
        "gcc $(python3-config --embed --cflags) m.c $LIBS -o app",
        "python3-config --embed --ldflags",
        'export LIBS="$(python3-config --embed --ldflags)"; {}',
        "python3-config",
    ),
    Case(
        "linker-option",
        {"m.c": "int main(void) { return 0; }\n"},
        "gcc -Wl,--icf=all $LDFLAGS m.c -o app",
        "LDFLAGS=-fuse-ld=lld",
        "export LDFLAGS=-fuse-ld=lld; {}",
        "ld.lld",
    ),
    Case(
        "wrong-ar",
        {
            "Makefile": "l.a: a.o\n\t$(AR) rc l.a a.o\n",
            "a.c": "",
            "bin/ar": '#!/bin/sh\necho "ar: invalid option -- r" >&2\nexit 1\n',
        },
        "chmod +x bin/ar; PATH=$PWD/bin:$PATH make $OPTIONS",
        "export AR=/usr/bin/ar",
        "export AR=/usr/bin/ar OPTIONS=-e; {}",
        "make",
    ),
    Case(
        "cuda-library-shadowed",
        {
            "a.c": "int compute(void) { return 0; }\n",
            "v.map": "V1 { *; };\n",
            "b.c": "int other(void) { return 0; }\n",
            "m.c": "int compute(void); int main(void) { return compute(); }\n",
        },
        "mkdir -p d e; library='gcc -shared -fPIC -Wl,--version-script=v.map'; $library a.c -o e/liba.so;"
        " $library b.c -o d/liba.so; gcc m.c -Le -la -Wl,--enable-new-dtags,-rpath,$PWD/e -o app;"
        ' export LD_LIBRARY_PATH=$PWD/d; eval "$FIRST"; ./app',
        "unset LD_LIBRARY_PATH",
        "export FIRST='unset LD_LIBRARY_PATH'; {}",
        "gcc",
    ),
    Case(
        "compiler-broken",
        {"CMakeLists.txt": C},
        'rm -rf b; export LDFLAGS=-Wl,--dynamic-list=$PWD/CMakeLists.txt; eval "$FIRST"; cmake -B b',
        "unset CFLAGS, CXXFLAGS and LDFLAGS",
        "export FIRST='unset CFLAGS CXXFLAGS LDFLAGS'; {}  # unset CFLAGS, CXXFLAGS and LDFLAGS",
        "cmake",
    ),
    Case(
        "protoc-import",
        {
            "m.proto": 'syntax = "proto3";\nimport "t.proto";\nmessage M { T t = 1; }\n',
            "d/t.proto": 'syntax = "proto3";\nmessage T {}\n',
        },
        "protoc -I . $OPTIONS --cpp_out=. m.proto",
        "protoc -I . -I ",
        'export OPTIONS="-I d"; {}  # protoc -I . -I d',
        "protoc",
    ),
    Case(
        "patch-failed",
        {"f": "one\n", "x.patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n"},
        f"test -e .git || {{ git init -q; git add f; {GIT} commit -qm a; git apply x.patch; }}; git apply x.patch",
        "git checkout .",
        "git checkout .; {}",
        "git",
    ),
    Case(
        "git-working-tree",
        {"f": "one\n"},
        f"test -e .git || {{ {GIT} init -q; git add f; {GIT} commit -qm a; git checkout -qb other; echo 2 >f;"
        f" {GIT} commit -qam b; echo 3 >f; }}; git checkout main",
        "git stash",
        "git config user.name a; git config user.email a@x.invalid; git stash; {}",
        "git",
    ),
    Case(
        "git-working-tree",
        {"f": "one\n"},
        "test -e .git || { git init -q; touch .git/index.lock; }; git add f",
        "rm .git/index.lock",
        "rm .git/index.lock; {}",
        "git",
    ),
    Case(
        "git-no-revision",
        {"f": "one\n"},
        f"test -e c || {{ {GIT} init -q a; cd a; {GIT} commit -qm a --allow-empty;"
        f" {GIT} commit -qm b --allow-empty; cd ..;"
        " git clone -q --depth 1 file://$PWD/a c; }; git -C c checkout -q $(git -C a rev-parse HEAD~1)",
        "git fetch --unshallow --tags",
        'git() { command git "$@"; }; (cd c; git fetch --unshallow --tags); {}',
        "git",
    ),
    Case(
        "git-dubious-ownership",
        {".keep": ""},
        "export HOME=$PWD; test -e r || { git init -q r; chown -R 12345 r; }; git -C r status",
        "git config --global --add safe.directory '*'",
        "export HOME=$PWD; git config --global --add safe.directory '*'; {}",
        "git",
    ),
    Case(
        "missing-submodule",
        {"CMakeLists.txt": f"{NONE}add_subdirectory(third_party/s)\n", "s/CMakeLists.txt": ""},
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always;"
        f" test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); {GIT} init -q;"
        f" git submodule --quiet add $PWD/s third_party/s; git add CMakeLists.txt; {GIT} commit -qm a;"
        " git clone -q . c; };"
        ' cd c; eval "$FIRST"; cmake -B b',
        "git submodule sync && git submodule update --init --recursive",
        "export FIRST='git submodule sync && git submodule update --init --recursive'; {}",
        "git",
    ),
    Case(
        "proxy-failed",
        {"index.html": "found\n"},
        # The port of the build before must go first: the shell of the server empties the file, maybe after we look.
        "rm -f port; python3 -u -m http.server 0 --bind 127.0.0.1 >port 2>&1 & server=$!; trap 'kill $server' EXIT;"
        " until grep -q 'port [1-9]' port 2>/dev/null; do sleep 0.1; done; export http_proxy=http://proxy.invalid:3128;"
        " eval \"$FIRST\"; curl -sSf http://127.0.0.1:$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' port)/",
        "unset https_proxy http_proxy",
        "export FIRST='unset https_proxy http_proxy'; {}",
        "curl",
    ),
    Case(
        "go-module",
        {
            "go.mod": "module x\n\ngo 1.19\n\nreplace local.invalid/y => ./y\n",
            "m.go": 'package main\n\nimport _ "local.invalid/y"\n\nfunc main() {}\n',
            "y/go.mod": "module local.invalid/y\n\ngo 1.19\n",
            "y/y.go": "package y\n",
        },
        "export GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; GOFLAGS= go build -o app .",
        "go mod tidy",
        "export GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD; go mod tidy; {}",
        "go",
    ),
    Case(
        "cargo-resolve",
        {"Cargo.toml": '[package]\nname = "p"\nversion = "1.0.0"\nedition = "2021"\n', "src/main.rs": "fn main() {}\n"},
        "cargo build --offline ${LOCKED---locked}",
        "leave out --locked",
        "export LOCKED=; {}  # leave out --locked",
        "cargo",
    ),
    Case(
        "nvcc-unknown-option",
        {"k.cu": "__global__ void kernel(float *x) { x[0] = 1; }\n"},
        "nvcc $BEHIND -march=native -E k.cu -o k.i",
        "-Xcompiler",
        "export BEHIND=-Xcompiler; {}",
        "nvcc",
    ),
    Case(
        "cuda-device-link",
        {
            "a.cu": "__device__ int next() { return 1; }\n",
            "b.cu": "__device__ int next();\n__global__ void kernel(int *x) { x[0] = next(); }\n"
            "int main() { kernel<<<1, 1>>>(nullptr); }\n",
        },
        "test -e a.o || nvcc -dc a.cu b.cu; g++ *.o -L/usr/local/cuda/lib64 -lcudart -o app",
        "nvcc -dlink *.o -o dlink.o -lcudadevrt",
        "nvcc -dlink *.o -o dlink.o -lcudadevrt; g++ *.o -L/usr/local/cuda/lib64 -lcudart -lcudadevrt -o app",
        "nvcc",
    ),
    Case(
        "host-compiler-too-new",
        {
            "k.cu": "__global__ void kernel(float *x) { x[0] = 1; }\n",
            **{
                f"bin/{name}": f'#!/bin/sh\nexec /usr/bin/{name} -U__GNUC__ -D__GNUC__=16 "$@"\n'
                for name in ("gcc", "g++")
            },
        },
        "chmod +x bin/*; PATH=$PWD/bin:$PATH nvcc -E k.cu -o k.i",
        'NVCC_PREPEND_FLAGS="-ccbin g++-',
        'export NVCC_PREPEND_FLAGS="-ccbin g++-12"; {}',
        "nvcc",
    ),
    Case(
        "cuda-arch-native",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.24)\nif(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)\n"
            "  set(CMAKE_CUDA_ARCHITECTURES native)\nendif()\nproject(p LANGUAGES CUDA)\n"
            "add_library(k STATIC k.cu)\n",
            "k.cu": "",
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DCMAKE_CUDA_ARCHITECTURES=80",
        "export OPTIONS=-DCMAKE_CUDA_ARCHITECTURES=80; {}  # -DCMAKE_CUDA_ARCHITECTURES=80",
        "nvcc",
    ),
    Case(
        "externally-managed",
        {"p/setup.py": "from setuptools import setup\nsetup(name='p', py_modules=[])\n"},
        'python3() { ${PYTHON-/usr/bin/python3} "$@"; }; python3 -m pip install --no-index --no-build-isolation ./p',
        "python3 -m venv venv; . venv/bin/activate",
        "/usr/bin/python3 -m venv --system-site-packages --without-pip venv; . venv/bin/activate;"
        " export PYTHON=$PWD/venv/bin/python; {}  # python3 -m venv venv; . venv/bin/activate",
        "pip",
    ),
    Case(
        "missing-fpic",
        {
            "Makefile": "libb.so: a.c b.c\n\tgcc -fno-pic $(CFLAGS) -c a.c\n\tgcc -fPIC -shared b.c a.o -o libb.so\n",
            "a.c": "int counter; int next(void) { return ++counter; }\n",
            "b.c": "int next(void); int over(void) { return next(); }\n",
        },
        "make",
        "export CFLAGS=-fPIC",
        "export CFLAGS=-fPIC; {}",
        "make",
    ),
    Case(
        "cstdint-missing",
        {"a.c": "uint32_t size;\n"},
        "gcc $CFLAGS -c a.c",
        'CFLAGS="-include stdint.h"',
        'export CFLAGS="-include stdint.h"; {}',
        "gcc",
    ),
    Case(
        "string-of-old-abi",
        {
            "a.cpp": "#include <string>\nint size(const std::string &s) { return s.size(); }\n"
            "int last(const std::string &s) { return s.back(); }\n",
            "m.cpp": "#include <string>\nint size(const std::string &s);\nint last(const std::string &s);\n"
            "int main() { return size(std::string()) + last(std::string()); }\n",
        },
        "g++ -c a.cpp && g++ ${CXXFLAGS--D_GLIBCXX_USE_CXX11_ABI=0} m.cpp a.o -o app",
        "-D_GLIBCXX_USE_CXX11_ABI=1",
        "export CXXFLAGS=-D_GLIBCXX_USE_CXX11_ABI=1; {}",
    ),
    Case(
        "libstdcxx-too-old",
        {
            "m.cpp": "#include <iostream>\nint main() { std::cout << 1; }\n",
            "v.map": "GLIBCXX_1 { *; };\n",
            "e.c": "int x;\n",
        },
        "mkdir -p d; gcc -shared -fPIC e.c -Wl,--version-script=v.map,-soname,libstdc++.so.6 -o d/libstdc++.so.6;"
        ' test -e app || g++ m.cpp -o app; export LD_LIBRARY_PATH=$PWD/d; eval "$FIRST"; ./app',
        "LD_PRELOAD=$(g++ -print-file-name=libstdc++.so.6)",
        "export FIRST='export LD_PRELOAD=$(g++ -print-file-name=libstdc++.so.6)'; {}",
    ),
    Case(
        "undefined-symbol",
        {
            "a.c": "int compute(void) { return 0; }\n",
            "b.c": "int other(void) { return 0; }\n",
            "m.c": "int compute(void); int main(void) { return compute(); }\n",
        },
        "mkdir -p d e; gcc -shared -fPIC a.c -o e/liba.so; gcc -shared -fPIC b.c -o d/liba.so;"
        " gcc m.c -Le -la -Wl,--enable-new-dtags,-rpath,$PWD/e -o app;"
        " export LD_LIBRARY_PATH=${SEARCHED-$PWD/d}; ./app",
        "take the other version out of LD_LIBRARY_PATH",
        "export SEARCHED=; {}  # take the other version out of LD_LIBRARY_PATH",
        "gcc",
    ),
    Case(
        "argument-list-too-long",
        {"a.c": "\n"},
        'export NOTES=$(head -c 200000 /dev/zero | tr "\\0" x); eval "$FIRST"; bash -c true; gcc -c a.c',
        "Unset large environment variables",
        "export FIRST='unset NOTES'; {}  # Unset large environment variables",
        "gcc",
    ),
    Case(
        "source-file-missing",
        {"a.c": "\n"},
        f"test -e .git || {{ {GIT} init -q; git add a.c; {GIT} commit -qm a; rm a.c; }}; gcc -c a.c",
        "git restore a.c",
        "git restore a.c; {}",
        "git",
    ),
    Case(
        "missing-submodule-header",
        {"a.cpp": '#include "cutlass/cutlass.h"\n', "s/cutlass/cutlass.h": ""},
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always;"
        f" test -e c || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); {GIT} init -q;"
        f" git submodule --quiet add $PWD/s third_party/s; git add a.cpp; {GIT} commit -qm a; git clone -q . c; }};"
        ' cd c; eval "$FIRST"; g++ -Ithird_party/s -c a.cpp',
        "git submodule update --init --recursive",
        "export FIRST='git submodule update --init --recursive'; {}",
        "git",
    ),
    Case(
        "setuptools-packages",
        {"a/__init__.py": "", "b/__init__.py": "", "pyproject.toml": "[project]\nname = 'p'\nversion = '1'\n"},
        "/usr/bin/python3 -m pip wheel -q --no-index --no-build-isolation --no-deps .",
        "py-modules = []",
        "printf '[tool.setuptools]\\npy-modules = []\\n' >>pyproject.toml; {}",
        "pip",
    ),
    Case(
        "configure-in-source",
        {
            "configure.ac": "AC_INIT([p], [1])\nAM_INIT_AUTOMAKE([foreign])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
            "Makefile.am": "",
        },
        "test -e b || { autoreconf -fi && ./configure && mkdir b; } >log 2>&1; cd b; ../configure",
        "make distclean",
        "make distclean; {}",
        "autoreconf",
    ),
    Case(
        "autotools-missing",
        {
            "configure.ac": "AC_INIT([p], [1])\nAM_INIT_AUTOMAKE([foreign])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
            "Makefile.am": "",
        },
        "test -e configure || { autoreconf -fi && ./configure && touch -d '1 minute ago' * && touch configure.ac; }"
        ' >log 2>&1; make ACLOCAL="$PWD/missing aclocal-1.99" AUTOMAKE="$PWD/missing automake-1.99"',
        "touch aclocal.m4 configure Makefile.in config.h.in",
        "touch aclocal.m4 configure Makefile.in config.h.in; touch config.status Makefile; {}",
        "autoreconf",
    ),
    Case(
        "cuda-header-missing",
        {"a.cpp": "#include <cuda_runtime.h>\n"},
        "g++ -c a.cpp",
        "export CPATH=/usr/local/cuda/include",
        "export CPATH=/usr/local/cuda/include; {}",
        "nvcc",
    ),
    Case(
        "undefined-cuda-runtime",
        {"k.cu": "int main() { return cudaDeviceReset(); }\n"},
        "test -e k.o || nvcc -c k.cu; g++ k.o $LDFLAGS -o app",
        'LDFLAGS="-L/usr/local/cuda/lib64 -lcudart"',
        'export LDFLAGS="-L/usr/local/cuda/lib64 -lcudart"; {}',
        "nvcc",
    ),
    Case(
        "c23-too-new",
        {"m.c": "typedef int bool;\nbool x;\n"},
        "clang-19 -std=gnu23 $CFLAGS -c m.c",
        "export CFLAGS=-std=gnu17",
        "export CFLAGS=-std=gnu17; {}",
        "clang-19",
    ),
    Case(
        "certificate-self-signed",
        {"index.html": "found\n"},
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out ca.pem -days 9 -subj /CN=localhost"
        " -addext subjectAltName=DNS:localhost 2>/dev/null; exec 3< <(exec openssl s_server -accept localhost:0"
        " -key key.pem -cert ca.pem -WWW 2>&1); server=$!; trap 'kill $server' EXIT;"
        " until read -r line <&3 && [[ $line == ACCEPT* ]]; do :; done; curl -sSf https://localhost:${line##*:}/index.html",
        "CURL_CA_BUNDLE=",
        "export CURL_CA_BUNDLE=$PWD/ca.pem; {}",
        "openssl",
    ),
    Case(
        "cmake-source-missing",
        {"CMakeLists.txt": f"{CXX}add_executable(app main.cpp)\n", "main.cpp": "int main() {}\n"},
        f"test -e .git || {{ {GIT} init -q; git add .; {GIT} commit -qm a; rm main.cpp; }}; cmake -B b",
        "git restore",
        "git restore main.cpp; {}",
        "git",
    ),
    Case(
        "cmake-variable-notfound",
        {
            "CMakeLists.txt": f"{C}find_library(FOO_LIBRARY of_nobody)\nadd_executable(app m.c)\n"
            "target_link_libraries(app ${FOO_LIBRARY})\n",
            "m.c": "int main(void) { return 0; }\n",
        },
        "cmake -B b $OPTIONS",
        "-D, its name, =/path/to/the/library.so",
        "export OPTIONS=-DFOO_LIBRARY=m; rm -r b; {}  # -D, its name, =/path/to/the/library.so",
        "cmake",
    ),
    Case(
        "wrong-file-format",
        {"Makefile": "app: a.o\n\tgcc a.o -o app\n", "a.c": "int main(void) { return 0; }\n", "a.o": "no object\n"},
        "touch -d '1 hour ago' a.c; make",
        "Delete the object",
        "rm a.o; {}  # Delete the object",
        "make",
    ),
    Case(
        "linker-missing",
        {"Makefile": "app: a.c\n\tgcc $(LDFLAGS) a.c -o app\n", "a.c": "int main(void) { return 0; }\n"},
        "export LDFLAGS=${LDFLAGS--fuse-ld=mold}; make",
        "drop -fuse-ld from LDFLAGS",
        "export LDFLAGS=; {}  # drop -fuse-ld from LDFLAGS",
        "make",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
