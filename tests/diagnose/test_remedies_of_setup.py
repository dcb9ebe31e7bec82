"""Remedies of setup files, pip, Python's scripts and nvcc: each repairs a small project that fails just so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.remedies import C, Case, backend, check_that_it_repairs, records_of

PACKED = f"""\
import zipfile
with zipfile.ZipFile("maker-1-py3-none-any.whl", "w") as wheel:
    wheel.write("maker.py")
{records_of("maker", 4)}"""
"""Makes a wheel of maker.py, so that pip's isolation needs no network."""

PIP = (
    "export PIP_CONFIG_FILE=/dev/null PIP_ROOT_USER_ACTION=ignore PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD;"
    ' pip() { /usr/bin/python3 -m pip "$@"; }; '
)
OWN = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
OF_WHEEL = "[build-system]\nrequires = ['maker']\nbuild-backend = 'maker'\n"
TORCH = """\
import os
def arch_flags():
    for arch in os.environ["TORCH_CUDA_ARCH_LIST"].replace(" ", ";").split(";"):
        if arch.removesuffix("+PTX") not in ("8.0", "8.6", "9.0", "12.0"):
            raise ValueError(f"Unknown CUDA arch ({arch}) or GPU not supported")
def check(found, wanted):
    if found != wanted:
        raise RuntimeError(f"\\nThe detected CUDA version ({found}) mismatches the version that was used to compile\\n"
            f"PyTorch ({wanted}). Please make sure to use the same CUDA versions.\\n")
def compile(extra_postargs):
    cuda_post_cflags = extra_postargs['nvcc']
"""
"""What PyTorch's cpp_extension checks and says."""

NVCC_OF_HOME = (
    "import os, re, subprocess\n"
    "said = subprocess.check_output([os.environ['CUDA_HOME'] + '/bin/nvcc', '--version'], text=True)\n"
    "found = re.search('release ([0-9.]+)', said)[1]\n"
)
OLD_CUDA = "#!/bin/sh\necho 'Cuda compilation tools, release 11.2, V11.2.152'\n"

CASES = [
    Case(
        "unknown-arch-name",
        {"torch_of_test.py": TORCH, "setup.py": "from torch_of_test import arch_flags\narch_flags()\n"},
        "export TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST-sm_86}; python3 setup.py",
        'export TORCH_CUDA_ARCH_LIST="8.0;8.6+PTX"',
        'export TORCH_CUDA_ARCH_LIST="8.0;8.6+PTX"; {}',
        "python3",
    ),
    Case(
        "cuda-torch-mismatch",
        {
            "torch_of_test.py": TORCH,
            "setup.py": f"{NVCC_OF_HOME}from torch_of_test import check\ncheck(found, '13.0')\n",
            "old/bin/nvcc": OLD_CUDA,
        },
        "chmod +x old/bin/*; export CUDA_HOME=${CUDA_HOME-$PWD/old}; python3 setup.py",
        "export CUDA_HOME=/usr/local/cuda-13.0 PATH=/usr/local/cuda-13.0/bin:$PATH",
        "export CUDA_HOME=/usr/local/cuda-13.0 PATH=/usr/local/cuda-13.0/bin:$PATH; {}",
        "python3 /usr/local/cuda-13.0/bin/nvcc",
    ),
    Case(
        "cuda-too-old-for-package",
        {
            "setup.py": f"{NVCC_OF_HOME}if found < '11.7':\n    raise RuntimeError('FlashAttention is only supported on"
            " CUDA 11.7 and above.  Note: make sure nvcc has a supported version.')\n",
            "old/bin/nvcc": OLD_CUDA,
        },
        "chmod +x old/bin/*; export CUDA_HOME=${CUDA_HOME-$PWD/old}; python3 setup.py",
        "export CUDA_HOME=/usr/local/cuda-X.Y PATH=/usr/local/cuda-X.Y/bin:$PATH",
        "export CUDA_HOME=/usr/local/cuda-13.0 PATH=/usr/local/cuda-13.0/bin:$PATH; {}"
        "  # export CUDA_HOME=/usr/local/cuda-X.Y PATH=/usr/local/cuda-X.Y/bin:$PATH",
        "python3 /usr/local/cuda-13.0/bin/nvcc",
    ),
    Case(
        "cuda-without-nvvm",
        {"k.cu": ""},
        "mkdir -p half/bin; for one in nvcc nvcc.profile crt; do cp -r /usr/local/cuda/bin/$one half/bin; done;"
        " export PATH=$FOUND$PWD/half/bin:$PATH; nvcc -I/usr/local/cuda/include -ptx k.cu",
        "export CUDA_HOME=/usr/local/cuda PATH=/usr/local/cuda/bin:$PATH",
        "export CUDA_HOME=/usr/local/cuda PATH=/usr/local/cuda/bin:$PATH; export FOUND=$CUDA_HOME/bin:; {}",
        "/usr/local/cuda/bin/nvcc",
    ),
    Case(
        "nvcc-of-found-toolkit-off-path",
        {"CMakeLists.txt": f"{C}find_package(CUDAToolkit REQUIRED)\nadd_custom_target(x ALL COMMAND nvcc --version)\n"},
        "rm -rf b; PATH=$FOUND/usr/bin:/bin; cmake -G 'Unix Makefiles' -B b && cmake --build b",
        "export PATH=/usr/local/cuda",
        "export PATH=/usr/local/cuda/bin:$PATH; export FOUND=/usr/local/cuda/bin:; {}",
        "/usr/local/cuda/bin/nvcc cmake gcc",
    ),
    Case(
        "host-function-in-device-code",
        {"k.cu": "int next() { return 1; }\n__global__ void kernel(int *x) { x[0] = next(); }\n"},
        "nvcc -ptx k.cu",
        "Mark it __host__ __device__",
        "sed -i '1s/^/__host__ __device__ /' k.cu; {}  # Mark it __host__ __device__",
        "nvcc",
    ),
    Case(
        "protobuf-headers-of-torch",
        {
            "m.cc": "#include <google/protobuf/port.h>\n",
            "torch/include/google/protobuf/port.h": "typedef PROTOBUF_LONGLONG int64;\n",
            "found/google/protobuf/port.h": "",
        },
        "g++ ${KIND--isystem} $PWD/torch/include -isystem found -fsyntax-only m.cc",
        "PRIVATE -idirafter",
        "export KIND=-idirafter; {}  # PRIVATE -idirafter",
    ),
    Case(
        "extension-flags-by-kind",
        {
            "torch_of_test.py": TORCH,
            "setup.py": "from torch_of_test import compile\nextra_compile_args={'cxx': ['-O3']}\n"
            "compile(extra_compile_args)\n",
        },
        "python3 setup.py",
        "extra_compile_args={'cxx': [], 'nvcc': ['-O3']}",
        "sed -i \"s/{'cxx'.*/{'cxx': [], 'nvcc': ['-O3']}/\" setup.py; {}"
        "  # extra_compile_args={'cxx': [], 'nvcc': ['-O3']}",
        "python3",
    ),
    Case(
        "setup-debug-without-cuda",
        {
            "setup.py": "import os\nextra_compile_args = {'cxx': []}\nif os.environ.get('DEBUG'):\n"
            "    extra_compile_args['nvcc'].append('-G')\n"
        },
        'export DEBUG=1; eval "$FIRST"; python3 setup.py',
        "unset DEBUG",
        "export FIRST='unset DEBUG'; {}",
        "python3",
    ),
    Case(
        "torch-cuda-arch-unknown",
        {
            "setup.py": "import os\nif 'TCNN_CUDA_ARCHITECTURES' not in os.environ:\n"
            "    raise EnvironmentError('Unknown compute capability. Specify the target compute capabilities in the"
            " TCNN_CUDA_ARCHITECTURES environment variable or install PyTorch with the CUDA backend.')\n"
        },
        "python3 setup.py",
        "export TCNN_CUDA_ARCHITECTURES=86",
        "export TCNN_CUDA_ARCHITECTURES=86; {}",
        "python3",
    ),
    Case(
        "gpu-wanted-by-build",
        {
            "setup.py": "import os, subprocess\n"
            "archs = os.environ.get('TORCH_CUDA_ARCH_LIST') or "
            "subprocess.check_output(['nvidia-smi'], env={'PATH': '/'})\n"
        },
        "python3 setup.py",
        'export TORCH_CUDA_ARCH_LIST="',
        'export TORCH_CUDA_ARCH_LIST="8.0;9.0"; {}',
        "python3",
    ),
    Case(
        "jobs-variable-no-number",
        {"setup.py": "import os\nmax_jobs = int(os.environ['MAX_JOBS'])\n"},
        "export MAX_JOBS=${JOBS-'$(nproc)'}; python3 setup.py",
        "export MAX_JOBS=4",
        "export JOBS=4; {}  # export MAX_JOBS=4",
        "python3",
    ),
    Case(
        "setup-option-unknown",
        {
            "setup.py": "import os\nfrom setuptools import setup\n"
            "setup(name='apex', version='1', py_modules=[], description=os.environ.get('APEX_CPP_EXT', '0'))\n"
        },
        PIP + 'export PIP_TARGET=$PWD/d; python() { /usr/bin/python3 "$@"; }; eval "${HOW-python setup.py install'
        ' --cpp_ext --cuda_ext}"',
        "APEX_CPP_EXT=1 APEX_CUDA_EXT=1 python -m pip install -v --no-build-isolation .",
        "export HOW='APEX_CPP_EXT=1 APEX_CUDA_EXT=1 python -m pip install -v --no-build-isolation .'; {}",
        "pip",
    ),
    Case(
        "python-file-missing",
        {"pyproject.toml": OWN + "[project]\nname = 'p'\nversion = '1'\n", "backend.py": backend("import os")},
        PIP + 'export PIP_TARGET=$PWD/d; python() { /usr/bin/python3 "$@"; }; ${HOW-python setup.py install}',
        "python -m pip install .",
        "export HOW='python -m pip install .'; {}",
        "pip",
    ),
    Case(
        "pip-option-unknown",
        {"p/pyproject.toml": OWN, "p/backend.py": backend("import os")},
        PIP + "pip wheel ${OPTION---break-system-packages} ./p",
        "leave it out",
        "export OPTION=; {}  # leave it out",
        "pip",
    ),
    Case(
        "setup-source-unknown",
        {
            "setup.py": "from setuptools import Extension, setup\n"
            "setup(name='p', py_modules=[], ext_modules=[Extension('a', ['x.asm'])])\n",
            "x.asm": ".globl PyInit_a\nPyInit_a: ret\n",
        },
        "/usr/bin/python3 setup.py -q build_ext",
        "Extension(extra_objects=['x.o'])",
        "as x.asm -o x.o; sed -i \"s/\\['x.asm'\\]/[], extra_objects=['x.o']/\" setup.py; {}"
        "  # Extension(extra_objects=['x.o'])",
        "pip gcc as",
    ),
    Case(
        "python-program-path-gone",
        {"setup.py": "import os, subprocess\nsubprocess.check_call([os.getcwd() + '/tools/bin/ninja', '--version'])\n"},
        "python3 setup.py",
        'ln -s "$(command -v $(basename ',
        'path=$PWD/tools/bin/ninja; mkdir -p $(dirname $path); ln -s "$(command -v $(basename $path))" $path; {}',
        "python3 ninja",
    ),
    Case(
        "python-module-of-table",
        {"p/pyproject.toml": OWN, "p/backend.py": backend("import tqdm"), "env/tqdm.py": ""},
        PIP + "export PYTHONPATH=$PWD/env; pip wheel $MORE ./p",
        "add --no-build-isolation",
        "export MORE=--no-build-isolation; {}  # add --no-build-isolation",
        "pip",
    ),
    Case(
        "needs-hidden-in-isolation",
        {
            "p/pyproject.toml": OF_WHEEL,
            "maker.py": backend("import tqdm"),
            "pack.py": PACKED,
            "env/tqdm.py": "",
        },
        "python3 pack.py; mkdir -p env; cp maker.py env; " + PIP + "export PYTHONPATH=$PWD/env; pip wheel $MORE ./p",
        "the same command with --no-build-isolation",
        "export MORE=--no-build-isolation; {}  # the same command with --no-build-isolation",
        "pip",
    ),
    Case(
        "build-requirements-conflict",
        {"p/pyproject.toml": OF_WHEEL, "maker.py": backend("import os"), "pack.py": PACKED},
        "python3 pack.py; " + PIP + "pip wheel ${HOW---no-build-isolation --check-build-dependencies} ./p",
        "leave --no-build-isolation out",
        "export HOW=; {}  # leave --no-build-isolation out",
        "pip",
    ),
    Case(
        "pip-deprecated-name",
        {
            "p/pyproject.toml": OWN,
            "p/backend.py": backend("import os")
            + "if not os.environ.get('SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL'):\n"
            "    raise SystemExit(\"The 'sklearn' PyPI package is deprecated, use 'scikit-learn'\")\n",
        },
        PIP + "pip wheel ./p",
        "export SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL=True",
        "export SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL=True; {}",
        "pip",
    ),
    Case(
        "git-no-repository",
        {
            "setup.py": "import os, subprocess\nversion = os.environ.get('PYTORCH_BUILD_VERSION') or"
            " subprocess.check_output(['git', 'describe'])\n"
        },
        "export GIT_CEILING_DIRECTORIES=$PWD/..; python3 setup.py 2>&1 | grep fatal && false; "
        '[ -n "$PYTORCH_BUILD_VERSION" ]',
        "PYTORCH_BUILD_VERSION and PYTORCH_BUILD_NUMBER=1",
        "export PYTORCH_BUILD_VERSION=2.9.0 PYTORCH_BUILD_NUMBER=1; {}"
        "  # PYTORCH_BUILD_VERSION and PYTORCH_BUILD_NUMBER=1",
        "python3 git",
    ),
    Case(
        "version-from-git",
        {"pyproject.toml": "[tool.setuptools_scm]\n"},
        "export GIT_CEILING_DIRECTORIES=$PWD/..;"
        " $(dirname $(command -v setuptools-scm))/python -c 'import setuptools_scm; setuptools_scm.get_version()'",
        "export SETUPTOOLS_SCM_PRETEND_VERSION=1.0.0",
        "export SETUPTOOLS_SCM_PRETEND_VERSION=1.0.0; {}",
        "setuptools-scm",
    ),
    Case(
        "python-pkgconfig-name",
        {
            "setup.py": "import subprocess\nif subprocess.call(['pkg-config', '--exists', 'xmlsec1-of-test']):\n"
            "    raise SystemExit('Could not find xmlsec1 with pkg-config.')\n",
            "found/xmlsec1-of-test.pc": "Name: x\nDescription: x\nVersion: 1\n",
        },
        "python3 setup.py",
        "export PKG_CONFIG_PATH=/path/to/lib/pkgconfig",
        "export PKG_CONFIG_PATH=$PWD/found; {}  # export PKG_CONFIG_PATH=/path/to/lib/pkgconfig",
        "python3 pkg-config",
    ),
    Case(
        "compiled-part-missing",
        {
            "gears/__init__.py": "from gears._C import turn\n",
            "site/gears/__init__.py": "from gears._C import turn\n",
            "site/gears/_C.py": "turn = 1\n",
        },
        'export PYTHONPATH=$PWD/site; eval "$FIRST"; python3 -c "import gears"',
        "cd /tmp",
        "export FIRST='cd /tmp'; {}",
        "python3",
    ),
    Case(
        "automake-missing-program",
        {
            "Makefile": "all: tool.1\ntool.1: tool.c\n"
            "\t./missing help2man tool >$@ || { rm $@; touch -d @1 $@; false; }\n",
            "missing": "#!/bin/sh\necho \"WARNING: '$1' is missing on your system.\" >&2\nexit 127\n",
            "tool.1": "",
            "tool.c": "",
        },
        "chmod +x missing; test -e once || { touch -d @1 tool.1; touch once; }; make",
        "find . -name '*.1' -o -name 'aclocal.m4' -o -name configure -o -name Makefile.in | xargs touch",
        "find . -name '*.1' -o -name 'aclocal.m4' -o -name configure -o -name Makefile.in | xargs touch; {}",
        "make",
    ),
    Case(
        "numpy-removed-name",
        {"a.py": "import numpy as np\nx = np.float(1)\n", "s/numpy/__init__.py": ""},
        "PYTHONPATH=$PWD/s python3 a.py",
        "np.float becomes float",
        "sed -i s/np.float/float/ a.py; {}  # np.float becomes float",
        "python3",
    ),
    Case(
        "openmp-twice",
        {
            "a.py": "import os, sys\nif os.environ.get('KMP_DUPLICATE_LIB_OK') != 'TRUE':\n    "
            "sys.exit('OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.')\n"
        },
        "python3 a.py",
        "export KMP_DUPLICATE_LIB_OK=TRUE",
        "export KMP_DUPLICATE_LIB_OK=TRUE; {}",
        "python3",
    ),
    Case(
        "deepspeed-aio",
        {
            "Makefile": "ifneq ($(DS_BUILD_AIO),0)\nall: a.o\nendif\nall:\na.o: a.c\n\tgcc -nostdinc -I. -c a.c\n",
            "a.c": "#include <libaio.h>\n",
        },
        "make",
        "DS_BUILD_AIO=0 DS_BUILD_GDS=0",
        "export DS_BUILD_AIO=0 DS_BUILD_GDS=0; {}",
        "make gcc",
    ),
    Case(
        "rustup-no-default",
        {".keep": ""},
        'real=$(rustup show home); export RUSTUP_HOME=$PWD/empty; eval "$FIRST"; cargo --version',
        "export RUSTUP_HOME and CARGO_HOME of that one",
        "export FIRST='export RUSTUP_HOME=$real'; {}  # export RUSTUP_HOME and CARGO_HOME of that one",
        "rustup cargo",
    ),
    Case(
        "meson-header-missing",
        {
            "meson.build": "project('p', 'c')\nmeson.get_compiler('c').has_header('ofnobody.h', required: true)\n",
            "found/ofnobody.h": "",
        },
        "rm -rf build; meson setup build",
        "export CPATH=/path/include",
        "export CPATH=$PWD/found; {}  # export CPATH=/path/include",
        "meson gcc",
    ),
    Case(
        "meson-not-runnable",
        {"meson.build": "project('p', 'c')\n", "x.c": ""},
        "gcc -shared x.c -Wl,-soname,libfar.so.1 -o libfar.so; rm -rf build;"
        ' export LDFLAGS="-Wl,--no-as-needed $PWD/libfar.so"; eval "$FIRST"; meson setup build',
        "unset CC CFLAGS LDFLAGS",
        "export FIRST='unset CC CFLAGS LDFLAGS'; {}",
        "meson gcc",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_it_repairs(case, tmp_path, monkeypatch)
