"""Remedies of flags and paths that compilers, linkers and CMake are given: each repairs a project that fails so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import MAIN, NONE, C, Case, check_that_it_repairs

CMAKE = "rm -rf b; cmake -G 'Unix Makefiles' -B b "

CASES = [
    Case(
        "march-value",
        {"a.c": MAIN},
        "gcc ${CFLAGS--march=x86_64} -fsyntax-only a.c",
        "-march=x86-64-v3",
        "export CFLAGS=-march=x86-64-v3; {}",
        "gcc",
    ),
    Case(
        "march-without-64-bit",
        {"Makefile": "a.o: a.c\n\tgcc $(CFLAGS) -c a.c\n", "a.c": MAIN},
        'export CFLAGS=-march=i686; eval "$FIRST"; make',
        "unset CFLAGS CXXFLAGS CPPFLAGS",
        "export FIRST='unset CFLAGS CXXFLAGS CPPFLAGS'; {}",
        "gcc make",
    ),
    Case(
        "flto-value",
        {"a.c": MAIN},
        "gcc ${CFLAGS--flto=thin} a.c -o app",
        "-flto=auto",
        "export CFLAGS=-flto=auto; {}",
        "gcc",
    ),
    Case(
        "abi-flag-in-command",
        {
            "x.cpp": "#include <string>\nint size(const std::string &s) { return s.size(); }\n",
            "m.cpp": "#include <string>\nint size(const std::string &);\nint main() { return size(std::string()); }\n",
        },
        "g++ -shared -fPIC x.cpp -o libx.so; set -x; g++ ${CXXFLAGS--D_GLIBCXX_USE_CXX11_ABI=0} m.cpp libx.so -o app",
        "Take -D_GLIBCXX_USE_CXX11_ABI=0 away",
        "export CXXFLAGS=; {}  # Take -D_GLIBCXX_USE_CXX11_ABI=0 away",
    ),
    Case(
        "static-library-absent",
        {"m.c": MAIN, "x.c": ""},
        "gcc -shared x.c -o libx.so; set -x; gcc ${LDFLAGS--static} m.c -L. -lx -o app",
        "take -static out of LDFLAGS",
        "export LDFLAGS=; {}  # take -static out of LDFLAGS",
        "gcc",
    ),
    Case(
        "undefined-lapacke",
        {
            "Makefile": "app: m.c\n\tgcc m.c -L. $(LDLIBS) -o app\n",
            "m.c": "int LAPACKE_dgesv(void);\nint main(void) { return LAPACKE_dgesv(); }\n",
            "x.c": "int dgesv_(void);\nint LAPACKE_dgesv(void) { return dgesv_(); }\n",
            "y.c": "int dgesv_(void) { return 0; }\n",
        },
        'gcc -c x.c y.c; ar rc liblapacke.a x.o; ar rc libopenblas.a y.o; eval "${FIRST-make}"',
        "make LDLIBS='-llapacke -lopenblas'",
        "export FIRST=\"make LDLIBS='-llapacke -lopenblas'\"; {}",
        "gcc make",
    ),
    Case(
        "object-not-for-pie",
        {
            "Makefile": "app: m.c a.o\n\tgcc $(LDFLAGS) m.c a.o -o app\na.o: a.s\n\tgcc -c a.s\n",
            "a.s": ".globl next\nnext:\n\tmov kept, %eax\n\tret\n.data\nkept: .long 0\n"
            '.section .note.GNU-stack,"",@progbits\n',
            "m.c": "int next(void);\nint main(void) { return next(); }\n",
        },
        'eval "${FIRST-make}"',
        "make LDFLAGS=-no-pie",
        "make LDFLAGS=-no-pie",
        "gcc make",
    ),
    Case(
        "shared-library-unsatisfied",
        {
            "x.c": "int next(void) { return 0; }\n",
            "y.c": "int next(void);\nint over(void) { return next(); }\n",
            "m.c": "int over(void);\nint main(void) { return over(); }\n",
            "old.c": "int first(void) { return 0; }\n",
        },
        "d=/var/tmp/stoker-$(basename $PWD); trap 'rm -r $d' EXIT; mkdir -p $d new;"
        " gcc -shared -fPIC x.c -Wl,-soname,libinner.so -o new/libinner.so;"
        " gcc -shared -fPIC y.c new/libinner.so -o $d/libouter.so;"
        " gcc -shared -fPIC old.c -Wl,-soname,libinner.so -o $d/libinner.so;"
        " gcc m.c $d/libouter.so ${LDFLAGS--Wl,-rpath-link,$d} -o app",
        "LDFLAGS=-Wl,-rpath-link,/folder/of/it",
        "export LDFLAGS=-Wl,-rpath-link,$PWD/new; {}  # LDFLAGS=-Wl,-rpath-link,/folder/of/it",
        "gcc",
    ),
    Case(
        "heap-corrupted",
        {
            "x.c": "#include <stdlib.h>\n__attribute__((constructor))\n"
            "static void f(void) { static char x[9]; free(x + 3); }\n"
        },
        'gcc -w -shared -fPIC x.c -o libx.so; ulimit -c 0; export LD_PRELOAD=$PWD/libx.so; eval "$FIRST";'
        " python3 -c pass",
        "Unset LD_PRELOAD and LD_LIBRARY_PATH",
        "export FIRST='unset LD_PRELOAD'; {}  # Unset LD_PRELOAD and LD_LIBRARY_PATH",
        "gcc",
    ),
    Case(
        "intrinsics-false-alarm",
        {"a.cpp": "#include <immintrin.h>\n__m512 f(__m512 x) { return _mm512_sqrt_ps(x); }\n"},
        "g++ -O2 -Wall -Werror -mavx512f $CXXFLAGS -c a.cpp",
        'export CXXFLAGS="-Wno-error=uninitialized" CFLAGS="-Wno-error=uninitialized"',
        'export CXXFLAGS="-Wno-error=uninitialized" CFLAGS="-Wno-error=uninitialized"; {}',
    ),
    Case(
        "kernel-name-unknown",
        {"a.c": "#include <sched.h>\nint x = CLONE_NEWNS;\n"},
        "gcc -std=c99 $CFLAGS -c a.c",
        "export CFLAGS=-D_GNU_SOURCE CXXFLAGS=-D_GNU_SOURCE",
        "export CFLAGS=-D_GNU_SOURCE CXXFLAGS=-D_GNU_SOURCE; {}",
        "gcc",
    ),
    Case(
        "glog-export-define",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
            "add_library(a OBJECT a.cpp)\ntarget_include_directories(a PRIVATE ${CMAKE_SOURCE_DIR})\n",
            "a.cpp": "#include <glog/logging.h>\n",
            "glog/logging.h": "#if !defined(GLOG_USE_GLOG_EXPORT)\n"
            "#error <glog/logging.h> was not included correctly."
            " See the documentation for how to consume the library.\n"
            "#endif\n",
        },
        CMAKE + "$OPTIONS >log; cmake --build b",
        "-DCMAKE_CXX_FLAGS=-DGLOG_USE_GLOG_EXPORT",
        "export OPTIONS=-DCMAKE_CXX_FLAGS=-DGLOG_USE_GLOG_EXPORT; {}",
        "g++ cmake",
    ),
    Case(
        "boost-placeholders",
        {
            "a.cpp": "#include <boost/bind.hpp>\nint x = _1;\n",
            "boost/bind.hpp": "namespace boost { namespace placeholders { enum { _1 = 1 }; } }\n"
            "#if defined(BOOST_BIND_GLOBAL_PLACEHOLDERS)\nusing namespace boost::placeholders;\n#endif\n",
        },
        "g++ -I. $CXXFLAGS -fsyntax-only a.cpp",
        "export CXXFLAGS=-DBOOST_BIND_GLOBAL_PLACEHOLDERS",
        "export CXXFLAGS=-DBOOST_BIND_GLOBAL_PLACEHOLDERS; {}",
    ),
    Case(
        "standard-too-old",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
            "add_library(a OBJECT a.cpp)\n",
            "a.cpp": "#if __cplusplus < 201703L\n#error You need C++17 to compile PyTorch\n#endif\n",
        },
        CMAKE + "${OPTIONS--DCMAKE_CXX_STANDARD=14} >log; cmake --build b",
        "-DCMAKE_CXX_STANDARD=17",
        "export OPTIONS=-DCMAKE_CXX_STANDARD=17; {}",
        "g++ cmake",
    ),
    Case(
        "gcc-multilib",
        {"Makefile": "a.o: a.c\n\tgcc $(CFLAGS) -c a.c\n", "a.c": "#include <stdio.h>\n"},
        "make CFLAGS=${CFLAGS--m32}",
        "take -m32 out of the flags",
        "export CFLAGS=; {}  # take -m32 out of the flags",
        "gcc make",
    ),
    Case(
        "redhat-specs",
        {"a.c": MAIN},
        "gcc ${CFLAGS--specs=/usr/lib/rpm/redhat/redhat-annobin-cc1} -c a.c",
        "export CFLAGS= CXXFLAGS=",
        "export CFLAGS= CXXFLAGS=; {}",
        "gcc",
    ),
    Case(
        "gcc-own-libraries",
        {"a.c": MAIN, "c.c": "int mpc_add(void);\n" + MAIN, "x.c": "int mpc_add(void) { return 0; }\n"},
        "mkdir -p bin mpc/lib; gcc -shared x.c -Wl,-soname,libmpc.so.99 -o mpc/lib/libmpc.so.99;"
        " gcc c.c -Wl,--no-as-needed mpc/lib/libmpc.so.99 -o bin/cc1; gcc -Bbin -fsyntax-only a.c",
        "export LD_LIBRARY_PATH=/path/to/mpc/lib:/path/to/mpfr/lib:/path/to/gmp/lib",
        "export LD_LIBRARY_PATH=$PWD/mpc/lib; {}"
        "  # export LD_LIBRARY_PATH=/path/to/mpc/lib:/path/to/mpfr/lib:/path/to/gmp/lib",
        "gcc",
    ),
    Case(
        "torch-api-changed",
        {
            "a.cpp": '#include <torch/extension.h>\nvoid f(int n) { AT_CHECK(n > 0, "n"); }\n',
            "torch/extension.h": "#define TORCH_CHECK(...)\n",
        },
        "g++ -I. -fsyntax-only a.cpp",
        "AT_CHECK becomes TORCH_CHECK",
        "sed -i s/AT_CHECK/TORCH_CHECK/ a.cpp; {}  # AT_CHECK becomes TORCH_CHECK",
    ),
    Case(
        "cross-compiler-missing",
        {
            "Makefile": "a.o: a.c\n\t$(CROSS)gcc -c a.c\nCROSS = riscv64-unknown-elf-\n",
            "a.c": "",
            "sdk/bin/riscv64-unknown-elf-gcc": "#!/bin/sh\ntouch a.o\n",
        },
        "chmod +x sdk/bin/*; make",
        "export PATH=/path/to/sdk/bin:$PATH",
        "export PATH=$PWD/sdk/bin:$PATH; {}  # export PATH=/path/to/sdk/bin:$PATH",
        "make",
    ),
    Case(
        "cmake-flags-unquoted",
        {"CMakeLists.txt": NONE},
        "rm -rf b; cmake -S . -B b -DCMAKE_CXX_FLAGS=-O2 -fPIC",
        '-DCMAKE_CXX_FLAGS="-O2 -fPIC"',
        'rm -rf b; cmake -S . -B b -DCMAKE_CXX_FLAGS="-O2 -fPIC"',
        "cmake",
    ),
    Case(
        "path-without-slash",
        {
            "CMakeLists.txt": f"{C}add_executable(app m.c)\ntarget_link_libraries(app ${{X}})\n",
            "m.c": MAIN,
        },
        CMAKE + "-DX=${X-usr/lib/x86_64-linux-gnu/libm.so.6} >log; cmake --build b",
        "so that it begins with /",
        "export X=/usr/lib/x86_64-linux-gnu/libm.so.6; {}  # so that it begins with /",
        "gcc cmake",
    ),
    Case(
        "cmake-value-as-library",
        {
            "CMakeLists.txt": f"{C}add_executable(app m.c)\ntarget_link_libraries(app ${{X_LIBRARY}})\n",
            "m.c": MAIN,
        },
        CMAKE + "${OPTIONS--DX_LIBRARY=X_LIBRARY-NOTFOUND -DX_LIBRARY:STRING=ON} >log; cmake --build b",
        "-DNAME=/path/libx.so",
        "export OPTIONS=-DX_LIBRARY=m; {}  # -DNAME=/path/libx.so",
        "gcc cmake",
    ),
    Case(
        "linker-got-bitcode",
        {
            "Makefile": "app: m.c a.o\n\tgcc m.c a.o -o app\na.o: a.c\n\tclang $(CFLAGS) -c a.c\nCFLAGS = -O1 -flto\n"
            "clean:\n\trm -f *.o\n",
            "m.c": MAIN,
            "a.c": "",
        },
        "make $MORE",
        "no -flto in a Makefile's CFLAGS",
        "make clean; export MORE=CFLAGS=-O1; {}  # no -flto in a Makefile's CFLAGS",
        "gcc clang make",
    ),
    Case(
        "nccl-tests-home",
        {
            "nccl-tests/Makefile": "NCCL_HOME = /nowhere\ncommon.o: common.cu\n"
            "\tg++ -x c++ -I$(NCCL_HOME)/include -c common.cu\n",
            "nccl-tests/common.cu": '#include "nccl.h"\n',
            "nccl/build/include/nccl.h": "",
        },
        "make -C nccl-tests",
        "make NCCL_HOME=/path/to/nccl/build CUDA_HOME=/usr/local/cuda",
        "home=$PWD/nccl/build; cd nccl-tests; make NCCL_HOME=$home CUDA_HOME=/usr/local/cuda"
        "  # make NCCL_HOME=/path/to/nccl/build CUDA_HOME=/usr/local/cuda",
        "g++ make",
    ),
    Case(
        "path-with-tilde",
        {"setup.py": "import os\nopen(os.environ['X_ROOT'] + '/version.txt')\n", "z/version.txt": ""},
        "export HOME=$PWD; export X_ROOT=${X_ROOT-'~/z'}; python3 setup.py",
        "Give the path with $HOME in place of ~",
        "export X_ROOT=$PWD/z; {}  # Give the path with $HOME in place of ~",
        "python3",
    ),
    Case(
        "option-path-not-absolute",
        {"CMakeLists.txt": f"{NONE}find_package(Foo REQUIRED)\n", "s/x": "", "found/FooConfig.cmake": ""},
        "set -v; rm -rf b\ncd s; cmake -S .. -B ../b -DFoo_DIR=../found",
        "-DFoo_DIR=$(realpath ../found)",
        "rm -rf b; cd s; cmake -S .. -B ../b -DFoo_DIR=$(realpath ../found)",
        "cmake",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
