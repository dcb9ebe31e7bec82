"""Remedies of CUDA: its architectures, headers and libraries: each repairs a small project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import MAIN, NONE, C, Case, check_that_it_repairs

NEEDS_DRIVER = {
    "x.c": "int cuInit(int n) { return n; }\n",
    "a.c": "int cuInit(int);\nint init(void) { return cuInit(0); }\n",
    "m.c": "int init(void);\nint main(void) { return init(); }\n",
}
LINK_DRIVER = (
    "mkdir -p stubs; gcc -shared -fPIC x.c -Wl,-soname,libcuda.so.1 -o stubs/libcuda.so;"
    " gcc -shared -fPIC a.c -Lstubs -lcuda -o liba.so; gcc m.c liba.so $LDFLAGS -o app"
)
"""A program that needs the driver only through a library of its own."""

CASES = [
    Case(
        "cmake-architectures-malformed",
        {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CUDA)\n"},
        "rm -rf b; cmake -B b ${OPTIONS--DCMAKE_CUDA_ARCHITECTURES=}",
        '-DCMAKE_CUDA_ARCHITECTURES="80;86;90"',
        'export OPTIONS=\'-DCMAKE_CUDA_ARCHITECTURES="80;86;90"\'; rm -rf b; eval "cmake -B b $OPTIONS"',
        "nvcc",
    ),
    Case(
        "cuda-home-list",
        {"Makefile": "k.i: k.cu\n\t$(CUDA_HOME)/bin/nvcc -E k.cu -o k.i\n", "k.cu": ""},
        "export CUDA_HOME=${CUDA_HOME-:/usr/local/cuda}; make",
        "export CUDA_HOME=/usr/local/cuda",
        "export CUDA_HOME=/usr/local/cuda; {}",
        "nvcc make",
    ),
    Case(
        "cudnn-header-missing",
        {"a.cpp": "#include <cudnn.h>\n", "s/nvidia/cudnn/__init__.py": "", "s/nvidia/cudnn/include/cudnn.h": ""},
        "g++ -fsyntax-only a.cpp",
        'python -c "import nvidia.cudnn; print(*nvidia.cudnn.__path__)"',
        'export PYTHONPATH=$PWD/s; folder=$(python -c "import nvidia.cudnn; print(*nvidia.cudnn.__path__)");'
        " export CUDNN_PATH=$folder CUDNN_HOME=$folder CPATH=$folder/include; {}",
        "g++ python",
    ),
    Case(
        "host-compiler-missing",
        {"k.cu": ""},
        "nvcc -ccbin ${HOST-/srv/nowhere/g++} -E k.cu -o k.i",
        "correct what CUDAHOSTCXX, CMAKE_CUDA_HOST_COMPILER or -ccbin names",
        "export HOST=g++; {}  # correct what CUDAHOSTCXX, CMAKE_CUDA_HOST_COMPILER or -ccbin names",
        "nvcc",
    ),
    Case(
        "cuda-names-too-new",
        {"k.cu": "__global__ void kernel(__nv_bfloat16 *x) {}\n"},
        "nvcc -ptx k.cu",
        'export NVCC_APPEND_FLAGS="-include cuda_bf16.h"',
        'export NVCC_APPEND_FLAGS="-include cuda_bf16.h"; {}',
        "nvcc",
    ),
    Case(
        "cccl-header-missing",
        {"a.cpp": "#include <cuda/std/version>\n"},
        "g++ -I/usr/local/cuda/include -E a.cpp -o a.i",
        "export CPATH=/usr/local/cuda/include/cccl:/usr/local/cuda/include",
        "export CPATH=/usr/local/cuda/include/cccl:/usr/local/cuda/include; {}",
        "nvcc",
    ),
    Case(
        "cub-header-missing",
        {"a.cpp": "#include <cub/version.cuh>\n"},
        "g++ -I/usr/local/cuda/include -E a.cpp -o a.i",
        "export CPATH=/usr/local/cuda/include/cccl:/usr/local/cuda/include",
        "export CPATH=/usr/local/cuda/include/cccl:/usr/local/cuda/include; {}",
        "nvcc",
    ),
    Case(
        "ptxas-target-too-old",
        {"k.cu": '__global__ void kernel() { asm volatile("cp.async.commit_group;"); }\n'},
        "nvcc ${ARCH--arch=sm_75} -cubin k.cu",
        "-arch=sm_80",
        "export ARCH=-arch=sm_80; {}",
        "nvcc",
    ),
    Case(
        "kernel-of-another-gpu",
        {"k.cu": '__global__ void kernel() { asm volatile("wgmma.fence.sync.aligned;"); }\n'},
        "nvcc ${GENCODE--gencode arch=compute_120,code=sm_120} -cubin k.cu",
        "arch=compute_90a,code=sm_90a",
        "export GENCODE='-gencode arch=compute_90a,code=sm_90a'; {}",
        "nvcc",
    ),
    Case(
        "ptxas-instruction-refused",
        {"k.cu": '__global__ void kernel() { asm volatile("wgmma.fence.sync.aligned;"); }\n'},
        "list=${TORCH_CUDA_ARCH_LIST-9.0}; nvcc -arch=sm_${list/./} -cubin k.cu",
        'TORCH_CUDA_ARCH_LIST="9.0a"',
        'export TORCH_CUDA_ARCH_LIST="9.0a"; {}',
        "nvcc",
    ),
    Case(
        "cuda-driver-not-found-by-linker",
        {"m.c": MAIN, "x.c": ""},
        "mkdir -p stubs; gcc -shared x.c -o stubs/libcuda.so; gcc m.c -lcuda -o app",
        "export LIBRARY_PATH=",
        "export LIBRARY_PATH=$PWD/stubs:$LIBRARY_PATH; {}",
        "gcc",
    ),
    Case(
        "cuda-library-not-found-by-linker",
        {"m.c": MAIN},
        "gcc m.c -lcudart -o app",
        "export CUDA_HOME=/usr/local/cuda LIBRARY_PATH=/usr/local/cuda/lib64:$LIBRARY_PATH",
        "export CUDA_HOME=/usr/local/cuda LIBRARY_PATH=/usr/local/cuda/lib64:$LIBRARY_PATH; {}",
        "gcc nvcc",
    ),
    Case(
        "undefined-cuda-library",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
            "link_directories(${CMAKE_SOURCE_DIR})\nadd_executable(app m.cpp)\n",
            "m.cpp": 'extern "C" int cublasCreate_v2(); int main() { return cublasCreate_v2(); }\n',
            "x.c": "int cublasCreate_v2(void) { return 0; }\n",
        },
        "gcc -shared -fPIC x.c -o libcublas.so; rm -rf b;"
        " eval \"cmake -G 'Unix Makefiles' -B b $OPTIONS\" >log && cmake --build b",
        '-DCMAKE_CXX_STANDARD_LIBRARIES="-L/usr/local/cuda/lib64 -lcublas"',
        "export OPTIONS='-DCMAKE_CXX_STANDARD_LIBRARIES=\"-L/usr/local/cuda/lib64 -lcublas\"'; {}",
    ),
    Case(
        "cuda-driver-needed-at-link",
        NEEDS_DRIVER,
        LINK_DRIVER,
        "LDFLAGS=-Wl,-rpath-link,",
        "ln -s libcuda.so stubs/libcuda.so.1; export LDFLAGS=-Wl,-rpath-link,$PWD/stubs; {}",
        "gcc",
    ),
    Case(
        "cuda-driver-needed-at-link",
        NEEDS_DRIVER,
        LINK_DRIVER,
        "-Wl,--allow-shlib-undefined",
        "export LDFLAGS=-Wl,--allow-shlib-undefined; {}",
        "gcc",
    ),
    Case(
        "nccl-not-found",
        {"a.cpp": "#include <nccl.h>\n", "found/include/nccl.h": ""},
        "g++ -fsyntax-only a.cpp",
        "export CPATH=$NCCL_ROOT/include LIBRARY_PATH=$NCCL_ROOT/lib",
        "export NCCL_ROOT=$PWD/found; export CPATH=$NCCL_ROOT/include LIBRARY_PATH=$NCCL_ROOT/lib; {}",
    ),
    Case(
        "cuda-home-without-nvcc",
        {
            "setup.py": "import os\nfrom setuptools import Command, setup\nclass Build(Command):\n"
            "    user_options = []\n    initialize_options = finalize_options = lambda self: None\n"
            '    def run(self):\n        self.spawn([os.environ["CUDA_HOME"] + "/bin/nvcc", "--version"])\n'
            'setup(name="p", py_modules=[], cmdclass={"build_cuda": Build})\n'
        },
        "export CUDA_HOME=${CUDA_HOME-/usr}; /usr/bin/python3 setup.py build_cuda",
        "export CUDA_HOME=/usr/local/cuda",
        "export CUDA_HOME=/usr/local/cuda; {}",
        "nvcc",
    ),
    Case(
        "cuda-compiler-gone",
        {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CUDA)\n"},
        "export CUDACXX=${CUDACXX-/srv/nowhere/nvcc}; rm -rf b; cmake -B b",
        "export CUDACXX=/usr/local/cuda/bin/nvcc",
        "export CUDACXX=/usr/local/cuda/bin/nvcc; {}",
        "nvcc",
    ),
    Case(
        "cuda-architectures-wanted",
        {
            "CMakeLists.txt": f"{NONE}if(NOT CMAKE_CUDA_ARCHITECTURES)\n"
            "  message(FATAL_ERROR \"You must set CMAKE_CUDA_ARCHITECTURES to e.g. 'native', 'all-major'\")\nendif()\n"
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DCMAKE_CUDA_ARCHITECTURES=native",
        "export OPTIONS=-DCMAKE_CUDA_ARCHITECTURES=native; {}",
        "cmake",
    ),
    Case(
        "cuda-samples-header",
        {"a.cpp": "#include <helper_cuda.h>\n", "Common/helper_cuda.h": ""},
        "g++ -E a.cpp -o a.i",
        "export CPATH=/path/to/cuda-samples/Common",
        "export CPATH=$PWD/Common; {}  # export CPATH=/path/to/cuda-samples/Common",
    ),
    Case(
        "cuda-header-missing",
        {"k.cu": "#include <nvToolsExt.h>\n"},
        "nvcc -E k.cu -o k.i",
        "sources include nvtx3/nvToolsExt.h instead",
        "sed -i s,nvToolsExt.h,nvtx3/nvToolsExt.h, k.cu; {}  # sources include nvtx3/nvToolsExt.h instead",
        "nvcc",
    ),
    Case(
        "old-find-cuda",
        {
            "CMakeLists.txt": f"{C}find_library(CUDA_nppi_LIBRARY nppi-of-nobody)\nadd_executable(app m.c)\n"
            "target_link_libraries(app ${CUDA_nppi_LIBRARY})\n",
            "m.c": MAIN,
        },
        "rm -rf b; cmake -B b $OPTIONS",
        "-DCUDA_nppi_LIBRARY=/usr/local/cuda/lib64/libnppc.so",
        "export OPTIONS=-DCUDA_nppi_LIBRARY=/usr/local/cuda/lib64/libnppc.so; {}",
        "cmake",
    ),
    Case(
        "cuda-folder-named",
        {"Makefile": "k.i: k.cu\n\t$(or $(CUDA_PATH),/usr/local/cuda)/bin/nvcc -E k.cu -o k.i\n", "k.cu": ""},
        'set -x; export CUDA_PATH=/srv/cuda-10.0; eval "$FIRST"; make',
        "export PATH=/usr/local/cuda/bin:$PATH",
        "export FIRST='unset CUDA_PATH; export PATH=/usr/local/cuda/bin:$PATH'; {}",
        "nvcc make",
    ),
    Case(
        "cuda-home-is-none",
        {
            "setup.py": "import os, subprocess\nCUDA_HOME = os.environ.get('CUDA_HOME')\n"
            "nvcc = os.path.join(CUDA_HOME, 'bin', 'nvcc')\nsubprocess.run([nvcc, '--version'], check=True)\n"
        },
        "python3 setup.py",
        "export CUDA_HOME=/usr/local/cuda; export PATH=$CUDA_HOME/bin:$PATH",
        "export CUDA_HOME=/usr/local/cuda; export PATH=$CUDA_HOME/bin:$PATH; {}",
        "nvcc python3",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
