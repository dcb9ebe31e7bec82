"""What a process works on, by its arguments as real drivers write them."""

from __future__ import annotations

import pytest

from stoker.model.job_tree import MAX_TASK
from stoker.sense.commands.task import task_of

GCC = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus -quiet -imultiarch x86_64-linux-gnu -D_GNU_SOURCE /src/a/foo.cpp -quiet"
CICC = (
    "/usr/local/cuda/nvvm/bin/cicc --c++17 --orig_src_file_name fmha.cu --orig_src_path_name /src/fmha.cu -arch "
    "compute_90a -m64 /tmp/tmpxft_1/fmha.cpp1.ii -o /tmp/tmpxft_1/fmha.ptx"
)
NVCC = (
    "nvcc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86 -gencode arch=compute_90,code=sm_90 "
    "-gencode arch=compute_120,code=sm_120 -c /src/k.cu -o k.cu.o"
)


@pytest.mark.parametrize(
    ("line", "task"),
    [
        (f"{GCC} -dumpbase foo.cpp -dumpbase-ext .cpp -O2 -o /tmp/ccXy.s", "foo.cpp"),
        (f"{GCC} -dumpdir obj/ -dumpbase foo.cpp.cpp -dumpbase-ext .cpp -O2 -o /tmp/ccXy.s", "foo.cpp"),
        ("as --64 -o CMakeFiles/t.dir/foo.cpp.o /tmp/ccXy.s", "foo.cpp.o"),
        (CICC, "compute_90a fmha.cu"),
        ("ptxas -arch=sm_90a -m64 /tmp/tmpxft_1/fmha.ptx -o /tmp/tmpxft_1/fmha.cubin", "sm_90a fmha.cubin"),
        (NVCC, "sm_80 sm_86 sm_90 +1 k.cu"),
        ("/usr/bin/ld -plugin x -o lib/libtorch_cuda.so a.o b.o", "libtorch_cuda.so"),
        ("ar qc lib/libonnx.a a.o b.o", "libonnx.a"),
        ("python3 -m codegen --out gen", "--out gen"),
        ("sleep 60", "60"),
        ("true", ""),
    ],
)
def test_a_process_says_what_it_works_on(line: str, task: str) -> None:
    assert task_of(line.split(" ")) == task


def test_a_shell_says_what_it_starts() -> None:
    assert task_of(("/bin/sh", "-c", "cd /x && /usr/bin/c++ -DX -c ../foo.cpp -o foo.o")) == "c++ foo.cpp"
    assert task_of(("/bin/sh", "-c", "sleep 5")) == "sleep 5"


def test_arguments_of_any_size_and_content_are_bounded() -> None:
    assert len(task_of(("x", *["a" * 500] * 9))) <= MAX_TASK
    assert len(task_of(("cc1plus", "b" * 9999 + ".cpp"))) <= MAX_TASK
    assert task_of(("ld", *["-L/x"] * 100_000)) == task_of(("ld", *["-L/x"] * 100_000))
    assert task_of(("\x1b[2J", "\udc80.cpp")) == "\udc80.cpp"
    assert task_of(("",)) == ""
