"""Remedies of compilers, linkers, CUDA and what configures builds: each repairs a small project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import GIT, MAIN, NONE, WITHOUT_RIGHTS, C, Case, check_that_it_repairs

LINE = "1 " + "+ 1 " * 40

CASES = [
    Case(
        "unknown-compiler-option",
        {"a.c": MAIN},
        "CFLAGS=${CFLAGS--fno-such-thing}; gcc $CFLAGS -fsyntax-only a.c",
        "take -fno-such-thing out of CFLAGS",
        "export CFLAGS=; {}  # take -fno-such-thing out of CFLAGS",
        "gcc",
    ),
    Case(
        "compiler-not-found",
        {"CMakeLists.txt": C},
        "export CC=${CC-/srv/nowhere/gcc}; rm -rf b; cmake -G 'Unix Makefiles' -B b",
        "correct CC",
        "export CC=gcc; {}  # correct CC",
        "cmake",
    ),
    Case(
        "system-headers-missing",
        {"a.cpp": "#include <cstdlib>\n"},
        "export CPLUS_INCLUDE_PATH=${FOLDERS-/usr/include}; g++ -fsyntax-only a.cpp",
        "take /usr/include out of CPATH, C_INCLUDE_PATH and CPLUS_INCLUDE_PATH",
        "export FOLDERS=; {}  # take /usr/include out of CPATH, C_INCLUDE_PATH and CPLUS_INCLUDE_PATH",
    ),
    Case(
        "fortran-module-missing",
        {"a.f90": "program a\nuse things\nend program\n", "include/m.f90": "module things\nend module\n"},
        "(cd include; gfortran -fsyntax-only m.f90); gfortran $FCFLAGS -fsyntax-only a.f90",
        "FCFLAGS=-I",
        "export FCFLAGS=-I$PWD/include; {}",
        "gfortran",
    ),
    Case(
        "fortran-line-length",
        {"a.f90": f"program a\ninteger :: i\ni = {LINE}\nend program\n"},
        "gfortran $FCFLAGS -fsyntax-only a.f90",
        "export FFLAGS='-ffree-line-length-none -ffixed-line-length-none'; export FCFLAGS=\"$FFLAGS\"",
        "export FFLAGS='-ffree-line-length-none -ffixed-line-length-none'; export FCFLAGS=\"$FFLAGS\"; {}",
        "gfortran",
    ),
    Case(
        "fortran-old-source",
        {"a.f90": "program a\ninteger :: i\ni = z'ff'\ncall f(i)\ncall f(1.0)\nend program\n"},
        "gfortran $FCFLAGS -fsyntax-only a.f90",
        "export FFLAGS='-fallow-invalid-boz -fallow-argument-mismatch -std=legacy'; export FCFLAGS=\"$FFLAGS\"",
        "export FFLAGS='-fallow-invalid-boz -fallow-argument-mismatch -std=legacy'; export FCFLAGS=\"$FFLAGS\"; {}",
        "gfortran",
    ),
    Case(
        "fortran-module-version",
        {
            "Makefile": "build/a.o: a.f90 build/m.mod\n\tgfortran -Ibuild -c a.f90 -o build/a.o\n"
            "build/m.mod: m.f90\n\tmkdir -p build; gfortran -Jbuild -fsyntax-only m.f90\n",
            "a.f90": "program a\nuse m\nend program\n",
            "m.f90": "module m\nend module\n",
        },
        "test -e once || { touch once; mkdir build; echo gfortran-9 | gzip >build/m.mod; }; make",
        "delete the build folder",
        "rm -r build; {}  # delete the build folder",
        "gfortran",
    ),
    Case(
        "undefined-fortran-runtime",
        {
            "a.f": "      subroutine say\n      print *, 'x'\n      end\n",
            "m.c": "void say_(void);\nint main(void) { say_(); }\n",
        },
        "gfortran -c a.f && gcc m.c a.o $LIBS -o app",
        "-lgfortran -lquadmath -lm",
        "export LIBS='-lgfortran -lquadmath -lm'; {}",
        "gfortran",
    ),
    Case(
        "pybind11-missing",
        {
            "a.cpp": "#include <pybind11/pybind11.h>\n",
            "s/pybind11/__init__.py": "def get_include():\n    return __path__[0]\n",
            "s/pybind11/pybind11/pybind11.h": "",
        },
        "g++ -fsyntax-only a.cpp",
        "export CPATH=\"$(python3 -c 'import pybind11; print(pybind11.get_include())')\"",
        "export PYTHONPATH=s; export CPATH=\"$(python3 -c 'import pybind11; print(pybind11.get_include())')\"; {}",
    ),
    Case(
        "libc-struct-renamed",
        {"u.c": "#include <ucontext.h>\nlong f(void *v) { struct ucontext *u = v; return u->uc_flags; }\n"},
        "gcc -c u.c",
        "sed -i 's/struct ucontext\\b/ucontext_t/g; s/struct sigaltstack\\b/stack_t/g'",
        "sed -i 's/struct ucontext\\b/ucontext_t/g; s/struct sigaltstack\\b/stack_t/g' u.c; {}",
        "gcc",
    ),
    Case(
        "libc-device-macros",
        {"m.c": "#include <sys/types.h>\nint main(void) { return major(1); }\n"},
        "gcc -w $CFLAGS m.c -o app",
        "export CFLAGS='-include sys/sysmacros.h' CXXFLAGS='-include sys/sysmacros.h'",
        "export CFLAGS='-include sys/sysmacros.h' CXXFLAGS='-include sys/sysmacros.h'; {}",
        "gcc",
    ),
    Case(
        "large-file-names",
        {"l.c": "#include <unistd.h>\noff64_t at(int f) { return lseek64(f, 0, 1); }\n"},
        "gcc -std=c99 $CFLAGS -c l.c",
        "export CFLAGS='-D_LARGEFILE64_SOURCE -D_GNU_SOURCE'; export CXXFLAGS=\"$CFLAGS\"",
        "export CFLAGS='-D_LARGEFILE64_SOURCE -D_GNU_SOURCE'; export CXXFLAGS=\"$CFLAGS\"; {}",
        "gcc",
    ),
    Case(
        "nvcc-architecture-pair",
        {"k.cu": "__global__ void k(int *x) { *x = 1; }\n"},
        "nvcc ${FLAGS--gencode arch=compute_90,code=sm_80} -c k.cu -o k.o",
        "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90",
        "export FLAGS='-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90'; {}",
        "nvcc",
    ),
    Case(
        "redhat-flags",
        {"a.c": MAIN},
        "gcc ${CFLAGS--specs=/usr/lib/rpm/redhat/redhat-hardened-cc1} -c a.c",
        "export CFLAGS= CXXFLAGS=",
        "export CFLAGS= CXXFLAGS=; {}",
        "gcc",
    ),
    Case(
        "undefined-cxx-filesystem",
        {
            "a.cpp": "#include <experimental/filesystem>\n"
            'int main() { return std::experimental::filesystem::exists("gone"); }\n'
        },
        "g++ a.cpp $LIBS -o app",
        "-lstdc++fs",
        "export LIBS=-lstdc++fs; {}",
    ),
    Case(
        "undefined-cuda-driver",
        {
            "m.c": "int cuInit(int);\nint main(void) { return cuInit(0); }\n",
            "lib/libcuda.c": "int cuInit(int n) { return n; }\n",
        },
        "gcc -shared -fPIC lib/libcuda.c -o lib/libcuda.so; gcc m.c $LIBS -o app",
        "-lcuda",
        "export LIBS='-Llib -lcuda'; {}",
        "gcc",
    ),
    Case(
        "lto-plugin-missing",
        {"m.c": MAIN},
        "gcc m.c ${LDFLAGS--Wl,-plugin,/nowhere/LLVMgold.so} -o app",
        "LDFLAGS=-fuse-ld=lld",
        "export LDFLAGS=-fuse-ld=lld; {}",
        "gcc ld.lld",
    ),
    Case(
        "lto-version",
        {"a.c": "int next(void) { return 1; }\n", "m.c": "int next(void);\nint main(void) { return next(); }\n"},
        "gcc-11 -flto -c a.c; ${CC-gcc-12} -flto m.c a.o -o app",
        "link with the compiler that made it (CC, CXX)",
        "export CC=gcc-11; {}  # link with the compiler that made it (CC, CXX)",
        "gcc-11 gcc-12",
    ),
    Case(
        "torch-library-shadowed",
        {
            "t.c": "int ncclCommRegister(void);\nint init(void) { return ncclCommRegister(); }\n",
            "new.c": "int ncclCommRegister(void) { return 0; }\n",
            "old.c": "int ncclInit(void) { return 0; }\n",
        },
        "mkdir -p torch/lib old; gcc -shared -fPIC new.c -Wl,-soname,libnccl.so.2 -o torch/lib/libnccl.so.2;"
        " gcc -shared -fPIC old.c -Wl,-soname,libnccl.so.2 -o old/libnccl.so.2;"
        " gcc -shared -fPIC -Wl,-z,now t.c torch/lib/libnccl.so.2 -Wl,--enable-new-dtags,-rpath,'$ORIGIN' -o"
        " torch/lib/libtorch_cuda.so;"
        ' export LD_LIBRARY_PATH=$PWD/old; eval "$FIRST";'
        " python3 -c \"import ctypes\ntry: ctypes.CDLL('$PWD/torch/lib/libtorch_cuda.so')\n"
        'except OSError as err: raise ImportError(err)"',
        "unset LD_LIBRARY_PATH",
        "export FIRST='unset LD_LIBRARY_PATH'; {}",
        "gcc",
    ),
    Case(
        "libstdcxx-older-in-link",
        {
            "a.cpp": "#include <new>\nvoid f(int n) { new int[n]; }\n",
            "m.cpp": "void f(int);\nint main() { f(1); }\n",
            "old.c": "int x;\n",
        },
        "mkdir -p old; gcc -shared -fPIC old.c -Wl,-soname,libstdc++.so.6 -o old/libstdc++.so;"
        " g++ -shared -fPIC a.cpp -o liba.so;"
        " g++ m.cpp -L${OLD-old} liba.so -o app",
        "Take an old one out of the search",
        "export OLD=.; {}  # Take an old one out of the search",
    ),
    Case(
        "cuda-not-found",
        {"Makefile": "k.ptx: k.cu\n\tnvcc -ptx k.cu\n", "k.cu": "__global__ void kernel() {}\n"},
        "export PATH=$FOUND/usr/bin:/bin; make",
        "export CUDA_HOME=/usr/local/cuda; export PATH=$CUDA_HOME/bin:$PATH",
        "export CUDA_HOME=/usr/local/cuda; export PATH=$CUDA_HOME/bin:$PATH; export FOUND=$CUDA_HOME/bin:; {}",
        "nvcc",
    ),
    Case(
        "atomic-add-architecture",
        {"k.cu": "__global__ void kernel(int *x) { x[0] = __reduce_add_sync(~0u, x[1]); }\n"},
        "nvcc -ptx ${ARCH--arch=sm_75} k.cu",
        "-arch=sm_80",
        "export ARCH=-arch=sm_80; {}",
        "nvcc",
    ),
    Case(
        "torch-headers-missing",
        {
            "a.cpp": "#include <torch/extension.h>\n",
            "s/torch/__init__.py": "",
            "s/torch/include/torch/csrc/api/include/torch/extension.h": "",
        },
        "g++ -fsyntax-only a.cpp",
        'export CPATH="$(python3 -c \'import os, torch; d = os.path.dirname(torch.__file__) + "/include";'
        ' print(d + ":" + d + "/torch/csrc/api/include")\')"',
        "export PYTHONPATH=$PWD/s; export CPATH=\"$(python3 -c 'import os, torch; d = os.path.dirname(torch.__file__) +"
        ' "/include"; print(d + ":" + d + "/torch/csrc/api/include")\')"; {}',
    ),
    Case(
        "nvcc-usage",
        {"k.cu": "", "other.cu": ""},
        'export NVCC_APPEND_FLAGS=other.cu; eval "$FIRST"; nvcc -E k.cu -o k.i',
        "Unset NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS and CUDAFLAGS",
        "export FIRST='unset NVCC_APPEND_FLAGS'; {}  # Unset NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS and CUDAFLAGS",
        "nvcc",
    ),
    Case(
        "nvcc-temporary-files",
        {"k.cu": ""},
        "export TMPDIR=${TMPDIR-/nowhere}; nvcc -cuda k.cu",
        "mkdir -p ~/tmp; export TMPDIR=$HOME/tmp",
        "export HOME=$PWD; mkdir -p ~/tmp; export TMPDIR=$HOME/tmp; {}",
        "nvcc",
    ),
    Case(
        "device-function-elsewhere",
        {"k.cu": "__device__ int next();\n__global__ void kernel(int *x) { x[0] = next(); }\n"},
        "nvcc $MORE -cubin k.cu",
        "-rdc=true",
        "export MORE=-rdc=true; {}",
        "nvcc",
    ),
    Case(
        "nvcc-relaxed-constexpr",
        {"k.cu": "constexpr int one() { return 1; }\n__global__ void kernel(int *x) { x[0] = one(); }\n"},
        "nvcc -Werror cross-execution-space-call -ptx k.cu",
        "export NVCC_APPEND_FLAGS=--expt-relaxed-constexpr",
        "export NVCC_APPEND_FLAGS=--expt-relaxed-constexpr; {}",
        "nvcc",
    ),
    Case(
        "nvcc-extended-lambda",
        {"k.cu": "void f() { auto one = [] __device__() { return 1; }; (void)one; }\n"},
        "nvcc -ptx k.cu",
        "export NVCC_APPEND_FLAGS=--extended-lambda",
        "export NVCC_APPEND_FLAGS=--extended-lambda; {}",
        "nvcc",
    ),
    Case(
        "cuda-headers-mixed",
        {
            "k.cu": "#include <cuda/std/version>\n",
            "old/include/cuda_runtime.h": "#include_next <cuda_runtime.h>\n#undef CUDART_VERSION\n"
            "#define CUDART_VERSION 12000\n",
        },
        "export CUDA_HOME=${CUDA_HOME-$PWD/old}; nvcc -I$CUDA_HOME/include -E k.cu -o k.i",
        "Let CUDA_HOME and PATH name one toolkit",
        "export CUDA_HOME=/usr/local/cuda; {}  # Let CUDA_HOME and PATH name one toolkit",
        "nvcc",
    ),
    Case(
        "cccl-mixed",
        {"k.cu": "#include <thrust/version.h>\n", "old/include/thrust/version.h": "#error of another CCCL\n"},
        'export CPATH=$PWD/old/include; eval "$FIRST"; nvcc -E k.cu -o k.i',
        "unset CPATH CPLUS_INCLUDE_PATH",
        "export FIRST='unset CPATH CPLUS_INCLUDE_PATH'; {}",
        "nvcc",
    ),
    Case(
        "cmake-python-missing",
        {"CMakeLists.txt": f"{NONE}find_package(Python3 REQUIRED COMPONENTS Interpreter)\n"},
        "export PATH=/usr/bin:$PATH; rm -rf b;"
        " cmake -G 'Unix Makefiles' -B b ${OPTIONS--DPython3_EXECUTABLE=/nowhere/python3}",
        "-DPython3_EXECUTABLE=$(which python3)",
        "export PATH=/usr/bin:$PATH; export OPTIONS=-DPython3_EXECUTABLE=$(which python3); {}",
        "cmake",
    ),
    Case(
        "cmake-cannot-write",
        {"CMakeLists.txt": NONE},
        WITHOUT_RIGHTS + "mkdir build; chmod a-w build; user cmake -G 'Unix Makefiles' -S . -B build",
        "cmake -S . -B build2",
        WITHOUT_RIGHTS + "user cmake -S . -B build2",
        "cmake setpriv",
    ),
    Case(
        "cmake-install-denied",
        {"CMakeLists.txt": f"{NONE}install(FILES a.txt DESTINATION share)\n", "a.txt": ""},
        WITHOUT_RIGHTS
        + "mkdir share; chmod a-w share; cmake -G 'Unix Makefiles' -B build -DCMAKE_INSTALL_PREFIX=$PWD >log;"
        " user cmake --install build",
        "cmake --install build --prefix ~/.local",
        f"{WITHOUT_RIGHTS}export HOME=$PWD/home; user cmake --install build --prefix ~/.local",
        "cmake setpriv",
    ),
    Case(
        "cmake-install-missing",
        {
            "CMakeLists.txt": f"{NONE}add_custom_target(made ALL COMMAND ${{CMAKE_COMMAND}} -E touch"
            f" ${{CMAKE_BINARY_DIR}}/made)\n"
            "install(FILES ${CMAKE_BINARY_DIR}/made DESTINATION share)\n"
        },
        "cmake -G 'Unix Makefiles' -B build -DCMAKE_INSTALL_PREFIX=$PWD >log; cmake --install build",
        "cmake --build build",
        "cmake --build build; {}",
        "cmake",
    ),
    Case(
        "cmake-try-run",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nset(CMAKE_SYSTEM_NAME Linux)\n"
            "set(CMAKE_SYSTEM_PROCESSOR m68k)\n"
            "project(p LANGUAGES C)\ntry_run(HAVE_X_RUN HAVE_X ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/a.c"
            " RUN_OUTPUT_VARIABLE o)\n",
            "a.c": MAIN,
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b $OPTIONS",
        "-DHAVE_X_RUN=0 -DHAVE_X_RUN__TRYRUN_OUTPUT=",
        "export OPTIONS='-DHAVE_X_RUN=0 -DHAVE_X_RUN__TRYRUN_OUTPUT='; {}",
        "cmake",
    ),
    Case(
        "cmake-duplicate-target",
        {
            "CMakeLists.txt": f"{NONE}find_package(fmt QUIET)\nadd_library(fmt INTERFACE)\n",
            "i/fmtConfig.cmake": "add_library(fmt INTERFACE IMPORTED)\n",
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b -Dfmt_DIR=$PWD/i $OPTIONS",
        "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON",
        "export OPTIONS=-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON; {}",
        "cmake",
    ),
    Case(
        "cmake-toolchain-file",
        {"CMakeLists.txt": C, "toolchain.cmake": "", "s/x": ""},
        "rm -rf b; cd s; cmake -G 'Unix Makefiles' -S .. -B ../b -DCMAKE_TOOLCHAIN_FILE=${FILE-s/toolchain.cmake}",
        "-DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake",
        "export FILE=$PWD/toolchain.cmake; {}  # -DCMAKE_TOOLCHAIN_FILE=$PWD/toolchain.cmake",
        "cmake",
    ),
    Case(
        "cmake-export-set",
        {
            "CMakeLists.txt": f"{C}add_library(fmt SHARED a.c)\nadd_library(p SHARED a.c)\n"
            "target_link_libraries(p fmt)\n"
            "install(TARGETS p ${MORE} EXPORT pTargets DESTINATION lib)\ninstall(EXPORT pTargets DESTINATION lib)\n",
            "a.c": "",
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b -DMORE=$MORE",
        "install(TARGETS",
        "export MORE=fmt; {}  # install(TARGETS",
        "cmake",
    ),
    Case(
        "cmake-tool-notfound",
        {
            "CMakeLists.txt": f"{NONE}find_program(CMAKE_OBJCOPY objcopy-of-nobody)\n"
            "add_custom_target(x ALL COMMAND ${CMAKE_OBJCOPY} --version)\n"
        },
        "rm -rf b; cmake -G 'Unix Makefiles' -B b $OPTIONS >log; cmake --build b",
        "-DCMAKE_OBJCOPY=/path/to/it",
        "export OPTIONS=-DCMAKE_OBJCOPY=$(which objcopy); {}  # -DCMAKE_OBJCOPY=/path/to/it",
        "cmake",
    ),
    Case(
        "header-of-package",
        {"a.cpp": "#include <isa-l/crc.h>\n", "found/isa-l/crc.h": ""},
        "g++ -fsyntax-only a.cpp",
        "export CPATH=/path/to/include",
        "export CPATH=$PWD/found; {}  # export CPATH=/path/to/include",
    ),
    Case(
        "library-of-package",
        {"m.c": MAIN, "x.c": ""},
        "mkdir -p found; gcc -shared x.c -o found/libisal.so; gcc m.c -lisal -o app",
        "export LIBRARY_PATH=/path/to/lib",
        "export LIBRARY_PATH=$PWD/found; {}  # export LIBRARY_PATH=/path/to/lib",
        "gcc",
    ),
    Case(
        "shared-library-of-package",
        {"m.c": MAIN, "x.c": ""},
        "mkdir -p found; gcc -shared x.c -Wl,-soname,libglog.so.99 -o found/libglog.so;"
        " gcc m.c -Wl,--no-as-needed -Lfound -lglog"
        " -o app; ./app",
        "export LD_LIBRARY_PATH=/path/to/lib",
        "mkdir found; ln -s libglog.so found/libglog.so.99; export LD_LIBRARY_PATH=$PWD/found;"
        " {}  # export LD_LIBRARY_PATH=/path/to/lib",
        "gcc",
    ),
    Case(
        "cmake-package-of-table",
        {"CMakeLists.txt": f"{NONE}find_package(glog REQUIRED)\n", "found/lib/cmake/glog/glogConfig.cmake": ""},
        "rm -rf b; cmake -G 'Unix Makefiles' -B b $OPTIONS -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
        "-Dglog_ROOT=/path",
        "export OPTIONS=-Dglog_ROOT=$PWD/found; {}  # -Dglog_ROOT=/path",
        "cmake",
    ),
    Case(
        "pkg-config-package-of-table",
        {"found/libglog.pc": "Name: glog\nDescription: x\nVersion: 1\n"},
        "export PKG_CONFIG_LIBDIR=/nowhere; pkg-config --exists --print-errors libglog",
        "export PKG_CONFIG_PATH=/path/to/lib/pkgconfig",
        "export PKG_CONFIG_PATH=$PWD/found; {}  # export PKG_CONFIG_PATH=/path/to/lib/pkgconfig",
        "pkg-config",
    ),
    Case(
        "meson-package-of-table",
        {
            "meson.build": "project('p')\ndependency('libglog', method: 'pkg-config')\n",
            "found/libglog.pc": "Name: glog\nDescription: x\nVersion: 1\n",
        },
        "export PKG_CONFIG_LIBDIR=/nowhere; meson setup build",
        "rm -r build; meson setup build",
        "export PKG_CONFIG_PATH=$PWD/found; rm -r build; meson setup build",
        "meson pkg-config",
    ),
    Case(
        "package-too-old",
        {
            "meson.build": "project('p')\ndependency('libglog', method: 'pkg-config', version: '>=2')\n",
            "old/libglog.pc": "Name: glog\nDescription: x\nVersion: 1\n",
            "new/libglog.pc": "Name: glog\nDescription: x\nVersion: 2\n",
        },
        "export PKG_CONFIG_LIBDIR=$PWD/old; meson setup build",
        "export PKG_CONFIG_PATH=/that/folder/lib/pkgconfig",
        "export PKG_CONFIG_PATH=$PWD/new; rm -r build; {}  # export PKG_CONFIG_PATH=/that/folder/lib/pkgconfig",
        "meson pkg-config",
    ),
    Case(
        "meson-compiler",
        {"meson.build": "project('p', 'c')\n"},
        "export CC=${CC-/srv/nowhere/gcc}; meson setup build",
        "correct CC and CXX; then: rm -r build; meson setup build",
        "export CC=gcc; rm -r build; {}  # correct CC and CXX; then: rm -r build; meson setup build",
        "meson",
    ),
    Case(
        "program-of-table",
        {"Makefile": "all:\n\tglslangValidator\n", "found/glslangValidator": "#!/bin/sh\n"},
        "export PATH=$FOUND/usr/bin:/bin; chmod +x found/*; make",
        "put its folder on PATH",
        "export FOUND=$PWD/found:; {}  # put its folder on PATH",
        "make",
    ),
    Case(
        "c-header-not-included",
        {"a.cpp": "void *f(char *a, const char *b) { return memcpy(a, b, 1); }\n"},
        "g++ $CXXFLAGS -fsyntax-only a.cpp",
        'CXXFLAGS="-include string.h"',
        'export CXXFLAGS="-include string.h"; {}',
    ),
    Case(
        "project-header-missing",
        {"viewer/src/main.cc": '#include "viewer/Window.h"\n', "viewer/include/viewer/Window.h": ""},
        "g++ -fsyntax-only $PWD/viewer/src/main.cc",
        "export CPATH=/path/to/include",
        "export CPATH=$PWD/viewer/include; {}  # export CPATH=/path/to/include",
    ),
    Case(
        "version-script-undefined",
        {"a.c": "int x;\n", "v.map": "V_1 { global: x; gone; local: *; };\n"},
        "clang-19 -fuse-ld=lld -shared -fPIC -Wl,--version-script=v.map a.c $LDFLAGS -o liba.so",
        "export LDFLAGS=-Wl,--undefined-version",
        "export LDFLAGS=-Wl,--undefined-version; {}",
        "clang-19",
    ),
    Case(
        "undefined-typeinfo",
        {
            "a.cpp": "namespace leveldb { struct Base { virtual void f(); }; void Base::f() {} }\n",
            "m.cpp": "namespace leveldb { struct Base { virtual void f(); }; }\n"
            "struct Own : leveldb::Base { void f() {} };\n"
            "int main() { Own x; }\n",
        },
        "g++ -fno-rtti -c a.cpp && g++ $CXXFLAGS m.cpp a.o -o app",
        "CXXFLAGS=-fno-rtti",
        "export CXXFLAGS=-fno-rtti; {}",
    ),
    Case(
        "default-error-warning",
        {"a.cpp": "enum E { a, b };\nconstexpr E x = static_cast<E>(-1);\n"},
        "clang++-19 $CXXFLAGS -fsyntax-only a.cpp",
        "export CXXFLAGS=-Wno-error=enum-constexpr-conversion",
        "export CXXFLAGS=-Wno-error=enum-constexpr-conversion; {}",
        "clang++-19",
    ),
    Case(
        "macro-collision",
        {"a.c": "#ifndef fdopen\n#define fdopen(fd, mode) NULL\n#endif\n#include <stdio.h>\n"},
        "clang $CFLAGS -fsyntax-only a.c",
        "CFLAGS=-Dfdopen=fdopen",
        "export CFLAGS=-Dfdopen=fdopen; {}",
        "clang",
    ),
    Case(
        "std-name-ambiguous",
        {"a.cpp": "#include <cstddef>\nusing namespace std;\ntypedef unsigned char byte;\nbyte x;\n"},
        "g++ $CXXFLAGS -fsyntax-only a.cpp",
        "CXXFLAGS=-std=gnu++14",
        "export CXXFLAGS=-std=gnu++14; {}",
    ),
    Case(
        "cxx20-strings-and-comparison",
        {"a.cpp": 'const char *x = u8"x";\n'},
        "g++ -std=gnu++20 $CXXFLAGS -fsyntax-only a.cpp",
        "CXXFLAGS=-fno-char8_t",
        "export CXXFLAGS=-fno-char8_t; {}",
    ),
    Case(
        "cxx20-strings-and-comparison",
        {
            "a.cpp": "struct B;\nstruct A { bool operator==(const B &); };\nstruct B { bool operator==(const A &); };\n"
            "A a; B b;\nbool x = a == b;\n"
        },
        "g++ -std=gnu++20 $CXXFLAGS -fsyntax-only a.cpp",
        "CXXFLAGS=-std=gnu++17",
        "export CXXFLAGS=-std=gnu++17; {}",
    ),
    Case(
        "rtti-or-exceptions-off",
        {"a.cpp": "#include <typeinfo>\nconst char *x = typeid(int).name();\nvoid f() { throw 1; }\n"},
        "g++ -fno-rtti -fno-exceptions $CXXFLAGS -fsyntax-only a.cpp",
        "CXXFLAGS='-frtti -fexceptions'",
        "export CXXFLAGS='-frtti -fexceptions'; {}",
    ),
    Case(
        "static-data-too-large",
        {"a.c": "char big[3L << 30], small[9];\nint main(int n, char **v) { return big[n] + small[n]; }\n"},
        "gcc -fno-pie -no-pie $CFLAGS a.c -o app",
        "-mcmodel=medium",
        "export CFLAGS=-mcmodel=medium; {}",
        "gcc",
    ),
    Case(
        "pch-stale",
        {"p.h": "int x;\n", "a.c": "int y;\n"},
        "test -e p.h.pch || clang -x c-header p.h -o p.h.pch; test -e once || { touch once; echo 'int z;' >>p.h; };"
        " clang -include-pch p.h.pch -fsyntax-only a.c",
        "-name '*.gch' -o -name '*.pch'",
        "find . '(' -name '*.gch' -o -name '*.pch' ')' -delete; {}",
        "clang",
    ),
    Case(
        "file-size-limit",
        {"Makefile": "a.o: a.c\n\tgcc -c a.c\n", "a.c": "char x[1 << 20] = {1};\n"},
        'ulimit -Sf 64; eval "$FIRST"; make',
        "ulimit -f unlimited; ulimit -t unlimited",
        "export FIRST='ulimit -f unlimited; ulimit -t unlimited'; {}",
        "make",
    ),
    Case(
        "asan-preload",
        {"a.c": "int x(int *p) { return p[1]; }\n", "m.c": MAIN},
        "gcc -fsanitize=address -shared -fPIC a.c -o liba.so; gcc m.c -Wl,--no-as-needed $PWD/liba.so -o app;"
        " $FIRST ./app",
        "LD_PRELOAD=$(gcc -print-file-name=libasan.so)",
        'export FIRST="env LD_PRELOAD=$(gcc -print-file-name=libasan.so)"; {}',
        "gcc",
    ),
    Case(
        "cxx-standard-refused",
        {"a.cpp": "#if __cplusplus < 201703L\n#error C++ versions less than C++17 are not supported.\n#endif\n"},
        "g++ -std=c++14 $CXXFLAGS -fsyntax-only a.cpp",
        "CXXFLAGS=-std=c++17",
        "export CXXFLAGS=-std=c++17; {}",
    ),
    Case(
        "sigstksz-not-constant",
        {
            "catch.hpp": "#include <signal.h>\n#if !defined(CATCH_CONFIG_NO_POSIX_SIGNALS)\n"
            "struct H { static char altStackMem[]; };\n"
            "static constexpr long sigStackSize = 32768 >= MINSIGSTKSZ ? 32768 : MINSIGSTKSZ;\n"
            "char H::altStackMem[sigStackSize] = {};\n#endif\n",
            "a.cpp": '#include "catch.hpp"\n',
        },
        "g++ -D_GNU_SOURCE $CXXFLAGS -fsyntax-only a.cpp",
        "CXXFLAGS=-DCATCH_CONFIG_NO_POSIX_SIGNALS",
        "export CXXFLAGS=-DCATCH_CONFIG_NO_POSIX_SIGNALS; {}",
    ),
    Case(
        "libc-name-taken",
        {
            "a.c": "#define _GNU_SOURCE\n#include <unistd.h>\n#ifndef HAVE_GETTID\n"
            "static pid_t gettid(void) { return 1; }\n#endif\n"
        },
        "gcc $CPPFLAGS -fsyntax-only a.c",
        "CPPFLAGS=-DHAVE_GETTID=1",
        "export CPPFLAGS=-DHAVE_GETTID=1; {}",
        "gcc",
    ),
    Case(
        "m4-missing",
        {"a.l": "%%\n"},
        "M4=${M4-/nowhere/m4} flex a.l",
        "export M4=/path/to/m4",
        "export M4=$(which m4); {}  # export M4=/path/to/m4",
        "flex",
    ),
    Case(
        "swig-include",
        {"a.i": '%module a\n%include "shape.h"\n', "found/shape.h": "int x;\n"},
        "swig -python $SWIG_FLAGS a.i",
        "SWIG_FLAGS=-I/path/include",
        "export SWIG_FLAGS=-Ifound; {}  # SWIG_FLAGS=-I/path/include",
        "swig",
    ),
    Case(
        "swig-include",
        {"a.i": "%module a\n"},
        "export SWIG_LIB=${LIB-/nowhere}; swig -python a.i",
        "export SWIG_LIB=$(swig -swiglib)",
        "export SWIG_LIB=$(swig -swiglib); export LIB=$SWIG_LIB; {}",
        "swig",
    ),
    Case(
        "interpreter-missing",
        {"gen.sh": "#!/bin/sh\r\n"},
        "chmod +x gen.sh; ./gen.sh",
        "sed -i 's/\\r$//' gen.sh",
        "sed -i 's/\\r$//' gen.sh; {}",
        "gcc",
    ),
    Case(
        "cuda-library-other-version",
        {"a.c": "void *PyInit_a(void) { return 0; }\n", "x.c": ""},
        "mkdir -p d; gcc -shared x.c -Wl,-soname,libcudart.so.7 -o d/libcudart.so.7;"
        " gcc -shared -fPIC a.c -Wl,--no-as-needed"
        " d/libcudart.so.7 -o liba.so; python3 -c \"import ctypes\ntry: ctypes.CDLL('$PWD/liba.so')\n"
        "except OSError as err:"
        ' raise ImportError(err)"',
        "export LD_LIBRARY_PATH=",
        "export LD_LIBRARY_PATH=$PWD/d; {}",
        "gcc",
    ),
    Case(
        "gpu-target-unknown",
        {"k.hip": "__attribute__((global)) void kernel() {}\n"},
        "clang -x hip -nogpuinc -nogpulib --offload-arch=${PYTORCH_ROCM_ARCH-gfx9999} -fsyntax-only k.hip",
        "export PYTORCH_ROCM_ARCH=",
        "export PYTORCH_ROCM_ARCH=gfx90a; {}",
        "clang",
    ),
    Case(
        "configure-test-library",
        {"configure.ac": "AC_INIT([p], [1])\nAC_PROG_CC\nAC_OUTPUT\n", "x.c": ""},
        "mkdir -p d; gcc -shared x.c -Wl,-soname,libfar.so.1 -o d/libfar.so.1; test -e configure || autoconf;"
        ' export LDFLAGS="-Wl,--no-as-needed $PWD/d/libfar.so.1"; ./configure || { cat config.log; false; }',
        "export LD_LIBRARY_PATH=/path/to/lib",
        "export LD_LIBRARY_PATH=$PWD/d; {}  # export LD_LIBRARY_PATH=/path/to/lib",
        "autoconf",
    ),
    Case(
        "generated-header-missing",
        {
            "Makefile": "all: model.pb.h app.o\nmodel.pb.h:\n\tuntil test -e failed; do sleep 0.01; done; touch $@\n"
            "app.o: app.c\n\tgcc -c $(CURDIR)/app.c || { touch failed; false; }\n",
            "app.c": '#include "model.pb.h"\n',
        },
        "make -j 2",
        "Build again",
        "true; {}  # Build again",
        "make",
    ),
    Case(
        "device-link-undefined",
        {
            "a.cu": "__device__ int next();\n__global__ void kernel(int *x) { x[0] = next(); }\n",
            "b.cu": "__device__ int next() { return 1; }\n",
        },
        "test -e a.o || nvcc -dc a.cu b.cu; nvcc -dlink a.o $MORE -o link.o",
        "give its object or library to the device link",
        "export MORE=b.o; {}  # give its object or library to the device link",
        "nvcc",
    ),
    Case(
        "meson-subproject",
        {
            "meson.build": "project('p')\nsubproject('s')\n",
            "s/meson.build": "project('s')\n",
        },
        f"test -e subprojects || {{ (cd s; {GIT} init -q; git add .; {GIT} commit -qm a); mkdir subprojects;"
        ' printf "[wrap-git]\\nurl=$PWD/s\\nrevision=main\\n" >subprojects/s.wrap; };'
        " meson setup --wrap-mode=nodownload build",
        "meson subprojects download",
        "meson subprojects download; rm -r build; {}",
        "meson git",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
