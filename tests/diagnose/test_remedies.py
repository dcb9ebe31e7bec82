"""Remedies that are a command or a variable, each against a small project that fails just so: then it builds."""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan

CMAKE = "rm -rf b && cmake -B b -G 'Unix Makefiles' {} >/dev/null && cmake --build b"
LISTS = "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C CXX)\n"
OPENMP = LISTS + "add_library(a OBJECT a.c)\ntarget_compile_options(a PRIVATE -fopenmp)\nadd_executable(app m.c)\n"


@dataclass(frozen=True)
class Case:
    """`build` fails with `rule`, and works with `repair` around it, which holds the words `says` of the remedy."""

    rule: str
    files: dict[str, str]
    build: str
    says: str
    repair: str
    needs: str = "g++"


def cxx(source: str, options: str = "") -> tuple[dict[str, str], str]:
    """A program of one C++ source in CMake."""
    lists = f"{LISTS}add_executable(app main.cpp)\ntarget_compile_options(app PRIVATE {options})\n"
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
        "standard-too-old",
        {
            "CMakeLists.txt": f"{LISTS}add_executable(app main.cpp)\n",
            "main.cpp": '#include <filesystem>\nint main() { return std::filesystem::exists("gone"); }\n',
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
            "CMakeLists.txt": f"{LISTS}add_library(a STATIC a.c)\nadd_library(b SHARED b.c)\n"
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
            "CMakeLists.txt": f"{LISTS}add_executable(app m.c)\n",
            "m.c": "#include <math.h>\nint main(int n, char **v) { return (int)pow(n, n + 0.5); }\n",
        },
        CMAKE.format(""),
        '-DCMAKE_C_STANDARD_LIBRARIES="-lm -lpthread -ldl -lrt -latomic"',
        CMAKE.format('-DCMAKE_C_STANDARD_LIBRARIES="-lm -lpthread -ldl -lrt -latomic"'),
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
        "bash SCRIPT",
        "bash run.sh  # bash SCRIPT",
        "dash",
    ),
    Case(
        "nvcc-warning-as-error",
        {"k.cu": "__global__ void kernel(float *x) { int unused; x[0] = 1; }\n"},
        "nvcc -Werror all-warnings -c k.cu -o k.o",
        'export NVCC_APPEND_FLAGS="-diag-suppress=',
        'export NVCC_APPEND_FLAGS="-diag-suppress=177"; {}',
        "nvcc",
    ),
    Case(
        "half-operators",
        {"k.cu": "#include <cuda_fp16.h>\n__global__ void kernel(__half *x) { x[0] = x[1] + x[2]; }\n"},
        "nvcc -arch=sm_80 -D__CUDA_NO_HALF_OPERATORS__ -c k.cu -o k.o",
        "-U__CUDA_NO_HALF_OPERATORS__",
        "export NVCC_APPEND_FLAGS=-U__CUDA_NO_HALF_OPERATORS__; {}",
        "nvcc",
    ),
    Case(
        "unsupported-gpu-architecture",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX CUDA)\n",
        },
        "rm -rf b && cmake -B b -DCMAKE_CUDA_ARCHITECTURES=50",
        "-DCMAKE_CUDA_ARCHITECTURES=80",
        "rm -rf b && cmake -B b -DCMAKE_CUDA_ARCHITECTURES=80",
        "nvcc",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_remedy_repairs(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(case.needs) is None:
        pytest.skip(f"no {case.needs}")
    monkeypatch.setenv("LC_ALL", "C")
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "FFLAGS", "CPATH", "AR", "NVCC_APPEND_FLAGS", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, text in case.files.items():
        (tmp_path / name).write_bytes(text.encode())
    failed = _run(case.build, tmp_path)
    assert failed.returncode != 0 or b"cd: " in failed.stdout
    (first, *_) = scan(io.BytesIO(failed.stdout), shipped_rules())
    assert (first.rule.id, case.says in first.remedy) == (case.rule, True), first.remedy
    assert case.says in case.repair
    repaired = _run(case.repair.replace("{}", case.build), tmp_path)
    assert (repaired.returncode, b"cd: " in repaired.stdout) == (0, False), repaired.stdout.decode()


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    words = ["bash", "-c", command]
    return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
