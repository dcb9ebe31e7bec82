"""Torch's own answers and the kernel run, asked in a clean subprocess: a stand-in torch, a stand-in driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.verify import matmul
from stoker.verify.asking import NoAnswerError, ask, python_of
from stoker.verify.discover import installed
from stoker.verify.run_kernel import run_kernels
from stoker.verify.torch_facts import ask_torch
from stoker.verify.verify import Wish, verify
from support.program import until

PLAIN = {"PATH": "/usr/bin:/bin"}
PYTHON = sys.executable

TORCH = """
import sys
print("a banner that nobody asked for")
print("stoker-answer: neither did anybody ask for this", file=sys.stderr)
__version__ = "2.99.0+cu130"
class version: cuda = "13.0"
class _C:
    @staticmethod
    def _cuda_getArchFlags(): return "sm_80 sm_90 compute_90"
def compiled_with_cxx11_abi(): return True
class backends:
    class cudnn:
        @staticmethod
        def version(): return 91002
class cuda:
    class nccl:
        @staticmethod
        def version(): return (2, 27, 5)
    @staticmethod
    def get_arch_list(): return []
    @staticmethod
    def device_count(): return {count}
    @staticmethod
    def get_device_capability(i): return (9, 0)
    @staticmethod
    def get_device_name(i): return "NVIDIA H100"
float32 = "float32"
def device(kind, index): return (kind, index)
class tensor:
    def __init__(self, rows, dtype=None, device=None): self.rows = rows
    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return tensor([[sum(a * b for a, b in zip(r, c)) {wrong} for c in columns] for r in self.rows])
    def cpu(self): {cpu}
    def tolist(self): return [[float(x) for x in row] for row in self.rows]
"""


@pytest.fixture
def torch(tmp_path: Path) -> Callable[..., Path]:
    """A package named torch, in a folder of its own."""

    def write(body: str = "", *, count: int = 0, wrong: str = "", cpu: str = "return self") -> Path:
        package = tmp_path / "site" / "torch"
        package.mkdir(parents=True, exist_ok=True)
        text = body or TORCH.replace("{count}", str(count)).replace("{wrong}", wrong).replace("{cpu}", cpu)
        (package / "__init__.py").write_text(text)
        return package.parent

    return write


def test_torch_says_what_it_is(torch: Callable[..., Path]) -> None:
    facts = ask_torch(PYTHON, torch(), PLAIN)

    assert facts.error == ""
    assert (facts.version, facts.cuda, facts.cudnn, facts.nccl) == ("2.99.0+cu130", "13.0", "91002", "2.27.5")
    assert facts.arch_list == ("sm_80", "sm_90", "compute_90")
    assert facts.cxx11_abi is True


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ImportError('libcudart.so.13: cannot open shared object file')", "libcudart.so.13"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("import os; os._exit(3)", "status 3"),
        ("import time; time.sleep(600)", "no answer"),
        ("import sys; sys.stdout.write('x' * 5_000_000); raise SystemExit(4)", "status 4"),
    ],
)
def test_a_torch_that_cannot_be_imported_says_why(torch: Callable[..., Path], body: str, words: str) -> None:
    # Only the sleeping one ever waits for the limit; the others answer as fast as they can, whatever it is.
    seconds = 0.5 if "sleep" in body else 60.0

    facts = ask_torch(PYTHON, torch(body), PLAIN, seconds)

    assert words in facts.error
    assert len(facts.error) < 1000


def is_over(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" in status.read_text()


def test_what_a_question_started_is_gone_with_it(torch: Callable[..., Path], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = (
        "import subprocess, time\n"
        f"p = subprocess.Popen(['sleep', '600']); open({str(note)!r}, 'w').write(str(p.pid)); time.sleep(600)"
    )
    folder = torch(body)

    # The limit may end it before the child is born: ask again with more time until it was.
    seconds = 0.5
    while not (note.exists() and note.read_text()):
        ask_torch(PYTHON, folder, PLAIN, seconds)
        seconds *= 2

    until(lambda: is_over(int(note.read_text())), "the end of what the question had started")


def test_the_environment_cannot_put_another_package_in_the_way(torch: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "json.py").write_text("raise SystemExit('hijacked')")

    facts = ask_torch(PYTHON, torch(), {**PLAIN, "PYTHONPATH": str(tmp_path / "evil"), "PYTHONHOME": "/nowhere"})

    assert facts.error == ""


def test_a_python_that_is_not_there_is_told() -> None:
    with pytest.raises(NoAnswerError, match="cannot be started"):
        ask("/nowhere/python", "print(1)", [], PLAIN, 5.0)


def test_the_python_of_the_active_environment_is_asked(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(PYTHON)

    assert python_of({"VIRTUAL_ENV": str(tmp_path)}) == str(tmp_path / "bin/python")
    assert python_of({"VIRTUAL_ENV": "/nowhere", "PATH": "/usr/bin"}).endswith("python3")


def test_an_installed_package_is_found_without_importing_it(torch: Callable[..., Path], tmp_path: Path) -> None:
    assert [p.name for p in installed("json", PYTHON, PLAIN)] == ["json"]
    assert installed("no_such_package_at_all", PYTHON, PLAIN) == []
    assert installed("os.path", PYTHON, PLAIN) == []
    assert installed("../json", PYTHON, PLAIN) == []


def test_verifying_torch_asks_it(torch: Callable[..., Path], cc: Callable[..., Path]) -> None:
    folder = torch()
    (folder / "torch/lib").mkdir()
    shutil.copy(cc("libtorch_cuda.so"), folder / "torch/lib/libtorch_cuda.so")

    report = verify(Wish([str(folder / "torch")], environment=PLAIN))

    assert report.torch is not None
    assert report.torch.version == "2.99.0+cu130"
    assert report.torch.path == str(folder / "torch/__init__.py")

    torch("raise ImportError('undefined symbol: _ZN3c10')")
    report = verify(Wish([str(folder / "torch")], environment=PLAIN))
    assert report.exit_status == 1
    assert any("undefined symbol: _ZN3c10" in p.what for p in report.all_problems)


@pytest.mark.parametrize(
    ("wrong", "cpu", "error"),
    [
        ("", "return self", ""),
        ("+ 1", "return self", "the product is wrong"),
        ("", "raise RuntimeError('CUDA error: no kernel image is available\\nmore')", "CUDA error: no kernel image"),
    ],
)
def test_a_matrix_product_by_torch_is_checked(torch: Callable[..., Path], wrong: str, cpu: str, error: str) -> None:
    runs, why = run_kernels(PYTHON, torch(count=2, wrong=wrong, cpu=cpu), PLAIN)

    assert why == ""
    assert [(r.device, r.capability, r.how) for r in runs] == [("NVIDIA H100", "9.0", "torch")] * 2
    assert all(r.error.startswith(error) and "\n" not in r.error for r in runs)
    assert all(bool(r.error) == bool(error) for r in runs)


FAKE_DRIVER = r"""
#include <stdlib.h>
#include <string.h>
typedef unsigned long long ptr;
int cuInit(unsigned f) { return getenv("FAKE_NO_GPU") ? 100 : 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = 7 + i; return 0; }
int cuDeviceGetName(char *t, int n, int d) { strncpy(t, "Stand-in", n); return d == 7 ? 0 : 101; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 8 : a == 76 ? 9 : -1; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
int cuCtxSetCurrent(void *c) { return c == (void *)1 ? 0 : 201; }
int cuModuleLoadData(void **m, const char *ptx) {
  if (getenv("FAKE_NO_IMAGE")) return 209;
  *m = (void *)2;
  return strstr(ptx, ".entry product") ? 0 : 200;
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
  *f = (void *)3;
  return strcmp(name, "product") ? 500 : 0;
}
int cuMemAlloc_v2(ptr *p, size_t n) { *p = (ptr)malloc(n); return 0; }
int cuMemcpyHtoD_v2(ptr to, const void *from, size_t n) { memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoH_v2(void *to, ptr from, size_t n) { memcpy(to, (void *)from, n); return 0; }
int cuCtxSynchronize(void) { if (getenv("FAKE_CRASH")) abort(); return 0; }
int cuGetErrorString(int e, const char **t) {
  *t = e == 209 ? "no kernel image is available for execution on the device"
     : e == 100 ? "no CUDA-capable device" : "bad";
  return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned s,
                   void *q, void **a, void **extra) {
  float *x = (float *)*(ptr *)a[0], *y = (float *)*(ptr *)a[1], *z = (float *)*(ptr *)a[2];
  unsigned n = *(unsigned *)a[3];
  if (gx != n || bx != n) return 1;
  for (unsigned i = 0; i < n; i++)
    for (unsigned j = 0; j < n; j++) {
      z[i * n + j] = getenv("FAKE_WRONG") ? 1 : 0;
      for (unsigned k = 0; k < n; k++) z[i * n + j] += x[i * n + k] * y[k * n + j];
    }
  return 0;
}
"""


@pytest.mark.parametrize(
    ("switch", "error"),
    [
        ("", ""),
        ("FAKE_WRONG", "the product is wrong"),
        ("FAKE_NO_IMAGE", "cuModuleLoadData: no kernel image is available for execution on the device"),
    ],
)
def test_a_matrix_product_by_the_driver_is_checked(cc: Callable[..., Path], switch: str, error: str) -> None:
    folder = cc("libcuda.so.1", FAKE_DRIVER).parent
    environment = {**PLAIN, "LD_LIBRARY_PATH": str(folder), **({switch: "1"} if switch else {})}

    [run], why = run_kernels(PYTHON, None, environment)

    assert why == ""
    assert (run.device, run.capability, run.how, run.error) == ("Stand-in", "8.9", "driver", error)


@pytest.mark.parametrize(
    ("switch", "words"), [("FAKE_NO_GPU", "no CUDA-capable device"), ("FAKE_CRASH", "signal 6"), (None, "libcuda.so.1")]
)
def test_without_a_working_gpu_the_reason_is_told(cc: Callable[..., Path], switch: str | None, words: str) -> None:
    environment = dict(PLAIN)
    if switch:
        environment |= {"LD_LIBRARY_PATH": str(cc("libcuda.so.1", FAKE_DRIVER).parent), switch: "1"}

    runs, why = run_kernels(PYTHON, None, environment)

    assert runs == ()
    assert words in why


def test_a_failed_run_fails_the_verification(cc: Callable[..., Path]) -> None:
    folder = cc("libcuda.so.1", FAKE_DRIVER).parent
    environment = {**PLAIN, "VIRTUAL_ENV": sys.prefix, "LD_LIBRARY_PATH": str(folder)}
    path = str(cc("lib.so"))

    good = verify(Wish([path], run=True, environment=environment))
    bad = verify(Wish([path], run=True, environment={**environment, "FAKE_WRONG": "1"}))

    assert [r.error for r in good.runs] == [""]
    assert good.exit_status == 0
    assert bad.exit_status == 1
    assert any("product is wrong" in p.what for p in bad.all_problems)


def test_the_ptx_of_the_kernel_run_is_right(tmp_path: Path) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not on PATH: the CUDA toolkit is not installed")
    path = tmp_path / "product.ptx"
    path.write_bytes(matmul.PTX)

    for arch in ("sm_75", "sm_90", "sm_120"):
        command = [ptxas, f"-arch={arch}", str(path), "-o", os.devnull]
        subprocess.run(command, check=True, capture_output=True)
