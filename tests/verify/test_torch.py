"""Torch's own answers and the kernel run, asked in a clean subprocess: a stand-in torch, a stand-in driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from stoker.verify.find_files import installed
from stoker.verify.gpu import matmul
from stoker.verify.gpu.run_kernel import run_kernels
from stoker.verify.pipeline import VerifyRequest, verify
from stoker.verify.python_probe import NoProbeAnswerError, ask, python_of
from stoker.verify.torch_facts import ask_torch
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
    def init(): {init}
    @staticmethod
    def get_device_capability(i): {capability}
    @staticmethod
    def get_device_name(i): return "NVIDIA H100"
float32 = "float32"
def device(kind, index): return (kind, index)
class tensor:
    def __init__(self, rows, dtype=None, device=None): self.rows, self.device = rows, device
    def each(self, call):
        {each}
        return tensor([[call(x, i, j) for j, x in enumerate(row)] for i, row in enumerate(self.rows)])
    def __mul__(self, by): return self.each(lambda x, i, j: x * by)
    def __add__(self, what):
        return self.each(lambda x, i, j: x + (what.rows[i][j] if isinstance(what, tensor) else what))
    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return tensor([[sum(a * b for a, b in zip(r, c)) {wrong} for c in columns] for r in self.rows])
    def cpu(self): {cpu}
    def tolist(self): return [[float(x) for x in row] for row in self.rows]
"""


@pytest.fixture
def torch(tmp_path: Path) -> Callable[..., Path]:
    """A package named torch, in a folder of its own."""

    def write(body: str = "", **more: object) -> Path:
        package = tmp_path / "site" / "torch"
        package.mkdir(parents=True, exist_ok=True)
        holes = {"count": 0, "init": "pass", "each": "pass", "wrong": "", "cpu": "return self"}
        holes |= {"capability": "return (9, 0)", **more}
        text = body or re.sub(r"\{(\w+)\}", lambda hole: str(holes[hole[1]]), TORCH)
        (package / "__init__.py").write_text(text)
        return package.parent

    return write


def test_torch_says_what_it_is(torch: Callable[..., Path]) -> None:
    facts = ask_torch(PYTHON, torch(), PLAIN)

    assert facts.error == ""
    assert (facts.version, facts.cuda, facts.cudnn, facts.nccl) == ("2.99.0+cu130", "13.0", "91002", "2.27.5")
    assert facts.arch_list == ("sm_80", "sm_90", "compute_90")
    assert facts.cxx11_abi is True


def test_a_driver_too_old_for_torch_is_no_torch_that_cannot_be_imported(torch: Callable[..., Path]) -> None:
    """NVML counts the GPU, CUDA then refuses it."""
    folder = torch(count=1, capability="raise RuntimeError('The NVIDIA driver on your system is too old')")

    facts = ask_torch(PYTHON, folder, PLAIN)

    assert (facts.error, facts.version, facts.capabilities) == ("", "2.99.0+cu130", ())


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
    with pytest.raises(NoProbeAnswerError, match="cannot be started"):
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
    assert installed("sys", PYTHON, PLAIN) == []


def test_verifying_torch_asks_it(torch: Callable[..., Path], cc: Callable[..., Path]) -> None:
    folder = torch()
    (folder / "torch/lib").mkdir()
    shutil.copy(cc("libtorch_cuda.so"), folder / "torch/lib/libtorch_cuda.so")

    report = verify(VerifyRequest([str(folder / "torch")], environment=PLAIN))

    assert report.torch is not None
    assert report.torch.version == "2.99.0+cu130"
    assert report.torch.path == str(folder / "torch/__init__.py")

    torch("raise ImportError('undefined symbol: _ZN3c10')")
    report = verify(VerifyRequest([str(folder / "torch")], environment=PLAIN))
    assert report.exit_status() == 1
    assert any("undefined symbol: _ZN3c10" in p.what for p in report.problems)


def test_a_matrix_product_by_torch_is_checked(torch: Callable[..., Path]) -> None:
    runs, why = run_kernels(PYTHON, torch(count=2), PLAIN)

    assert why == ""
    assert [(r.device, r.capability, r.how, r.error) for r in runs] == [("NVIDIA H100", "9.0", "torch", "")] * 2


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"wrong": "+ 1"}, "the product is wrong: row 0, column 0 is "),
        ({"wrong": "+ 0.5"}, "the product is wrong: row 0, column 0 is "),
        ({"wrong": "* float('nan')"}, "the product is wrong: row 0, column 0 is nan, not "),
        (
            {"cpu": "raise RuntimeError('CUDA error: no kernel image is available\\nmore')"},
            "CUDA error: no kernel image",
        ),
        # cuBLAS has code for this GPU and torch has none.
        ({"each": "raise RuntimeError('CUDA error: no kernel image is available')"}, "CUDA error: no kernel image"),
    ],
)
def test_a_torch_that_computes_wrongly_is_found(torch: Callable[..., Path], what: dict[str, str], error: str) -> None:
    runs, why = run_kernels(PYTHON, torch(count=2, **what), PLAIN)

    assert why == ""
    assert [r.how for r in runs] == ["torch"] * 2
    assert all(r.error.startswith(error) and "\n" not in r.error for r in runs)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ImportError('libcudart.so.13: cannot open shared object file')", "libcudart.so.13"),
        ("import a_module_that_torch_needs", "a_module_that_torch_needs"),
        ("raise RuntimeError('built for another machine')", "built for another machine"),
    ],
)
def test_a_broken_torch_is_no_reason_to_try_the_driver(
    torch: Callable[..., Path], with_driver: dict[str, str], body: str, words: str
) -> None:
    runs, why = run_kernels(PYTHON, torch(body), with_driver)

    assert runs == ()
    assert why.startswith("torch cannot be imported: ")
    assert words in why


def test_a_torch_that_sees_no_gpu_says_why(torch: Callable[..., Path]) -> None:
    runs, why = run_kernels(
        PYTHON, torch(init="raise RuntimeError('The NVIDIA driver on your system is too old')"), PLAIN
    )
    assert (runs, why) == ((), "The NVIDIA driver on your system is too old")

    assert run_kernels(PYTHON, torch(), PLAIN) == ((), "there is no CUDA device")


class UserSite(NamedTuple):
    """A Python, an environment, and where that Python then finds what a user has installed."""

    python: str
    environment: dict[str, str]
    place: Path


@pytest.fixture
def user_site(tmp_path: Path) -> UserSite:
    python = f"{sys.base_prefix}/bin/python3"  # a virtual environment has no such packages
    if not os.access(python, os.X_OK):
        pytest.skip("there is no Python outside the virtual environment")
    environment = {**PLAIN, "HOME": str(tmp_path / "home")}
    command = [python, "-c", "import site; print(site.getusersitepackages())"]
    place = Path(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip())
    place.parent.mkdir(parents=True)
    return UserSite(python, environment, place)


def test_a_package_that_a_user_installed_is_found(torch: Callable[..., Path], user_site: UserSite) -> None:
    python, environment, place = user_site
    torch(count=1).rename(place)

    assert installed("torch", python, environment) == [place / "torch"]
    assert [r.how for r in run_kernels(python, None, environment)[0]] == ["torch"]


def test_an_extension_beside_the_package_is_found_by_both_of_its_names(user_site: UserSite) -> None:
    """As flash-attention's: pip's name is flash-attn, flash_attn is imported, and flash_attn_2_cuda has the code."""
    python, environment, place = user_site
    files = ("flash_attn/__init__.py", "flash_attn/inner.so", "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so")
    info = place / "flash_attn-2.8.3.dist-info"
    for path in (info, place / "flash_attn"):
        path.mkdir(parents=True)
    for name in files:
        (place / name).touch()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))

    assert installed("flash_attn", python, environment) == [place / "flash_attn", place / files[2]]
    assert installed("flash-attn", python, environment) == [place / files[1], place / files[2]]


@pytest.fixture
def with_driver(fake_gpus: Path) -> dict[str, str]:
    """An environment in which the stand-in for the CUDA driver is found."""
    return {**PLAIN, "LD_LIBRARY_PATH": str(fake_gpus)}


@pytest.mark.parametrize(
    ("fake", "error"),
    [
        ("", ""),
        ("wrong=1", "the product is wrong: row 0, column 7 is "),
        ("half=1", "the product is wrong: row 0, column 7 is "),
        ("nan=1", "the product is wrong: row 0, column 7 is nan, not "),
        ("cuModuleLoadData=209", "cuModuleLoadData: no kernel image is available for execution on the device"),
        ("cuDevicePrimaryCtxRetain=101", "cuDevicePrimaryCtxRetain: invalid device ordinal"),
    ],
)
def test_a_matrix_product_by_the_driver_is_checked(with_driver: dict[str, str], fake: str, error: str) -> None:
    [run], why = run_kernels(PYTHON, None, {**with_driver, "FAKE": fake})

    assert why == ""
    assert (run.device, run.capability, run.how) == ("Stand-in", "8.9", "driver")
    assert run.error.startswith(error)
    assert bool(run.error) == bool(error)


@pytest.mark.parametrize(
    ("more", "words"),
    [({"FAKE_GPUS": "0"}, "no CUDA-capable device"), ({"FAKE": "cuInit=-2"}, "signal 11"), (None, "libcuda.so.1")],
)
def test_without_a_working_gpu_the_reason_is_told(
    with_driver: dict[str, str], more: dict[str, str] | None, words: str
) -> None:
    runs, why = run_kernels(PYTHON, None, PLAIN if more is None else {**with_driver, **more})

    assert runs == ()
    assert words in why


def test_a_gpu_that_kills_the_run_is_blamed_and_the_others_keep_theirs(with_driver: dict[str, str]) -> None:
    more = {"FAKE_GPUS": "3", "FAKE": "cuCtxSynchronize:1=-2"}
    (first, second, third), why = run_kernels(PYTHON, None, {**with_driver, **more})

    assert why == ""
    assert (first.device, first.error) == ("Stand-in", "")
    assert (second.device, second.capability, second.error) == ("Stand-in", "8.9", "ended by signal 11")
    assert third.error == "was not tested, since the run ended at GPU 1"


@pytest.mark.parametrize("fake", ["cuCtxSynchronize:1=-1", "cuDeviceGetAttribute:1=-1"])
def test_a_gpu_that_hangs_is_blamed_and_the_others_keep_theirs(with_driver: dict[str, str], fake: str) -> None:
    seconds = 1.0
    while True:
        runs, _ = run_kernels(PYTHON, None, {**with_driver, "FAKE_GPUS": "2", "FAKE": fake}, seconds)
        if len(runs) == 2 and not runs[0].error:
            break
        seconds *= 2  # so little time that not even the first was done

    assert runs[1].error == f"no answer in {seconds:g} s"


@pytest.mark.parametrize(
    "fake",
    [
        "cuMemAlloc:0=2",
        "cuDevicePrimaryCtxRetain:0=46",
        "cuDevicePrimaryCtxRetain:0=2",
        "cuCtxSynchronize:0=101,mode=2",
    ],
)
def test_a_busy_gpu_is_a_warning(with_driver: dict[str, str], cc: Callable[..., Path], fake: str) -> None:
    environment = {**with_driver, "VIRTUAL_ENV": sys.prefix, "FAKE_GPUS": "2", "FAKE": fake}
    report = verify(VerifyRequest([str(cc("lib.so"))], run=True, environment=environment))

    assert report.exit_status() == 0
    [problem] = report.problems
    assert problem.severity == "warning"
    assert problem.what.startswith("GPU 0 (Stand-in) is busy; not tested (cu")
    assert [bool(r.error) for r in report.runs] == [True, False]


def test_a_gpu_without_memory_for_torch_is_busy(torch: Callable[..., Path]) -> None:
    cpu = "raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB.')"
    [run], _ = run_kernels(PYTHON, torch(count=1, cpu=cpu), PLAIN)

    assert run.error.startswith("is busy; not tested (CUDA out of memory")


LEFT = """
import os, signal, sys
from stoker.verify import python_probe
killed = []
kill = python_probe.os.killpg
python_probe.os.killpg = lambda pid, number: killed.append(pid)
python_probe.AFTER_KILL_SECONDS = 0.1
print(python_probe.hear(sys.executable, "import time; time.sleep(600)", [], {}, 0.1))
kill(killed[0], signal.SIGKILL)
"""


def test_a_process_that_no_signal_ends_is_left_behind() -> None:
    done = subprocess.run([PYTHON, "-W", "ignore", "-c", LEFT], stdout=subprocess.PIPE, text=True, timeout=60)

    assert done.stdout == "([], 'no answer in 0.1 s')\n"


def test_a_failed_run_fails_the_verification(with_driver: dict[str, str], cc: Callable[..., Path]) -> None:
    environment = {**with_driver, "VIRTUAL_ENV": sys.prefix}
    path = str(cc("lib.so"))

    good = verify(VerifyRequest([path], run=True, environment=environment))
    bad = verify(VerifyRequest([path], run=True, environment={**environment, "FAKE": "wrong=1"}))

    assert [r.error for r in good.runs] == [""]
    assert good.exit_status() == 0
    assert bad.exit_status() == 1
    [problem] = bad.problems
    assert problem.what.startswith("a matrix product on GPU 0 (Stand-in) failed: the product is wrong")


def test_the_ptx_of_the_kernel_run_is_right(tmp_path: Path) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not on PATH: the CUDA toolkit is not installed")
    path = tmp_path / "product.ptx"
    path.write_bytes(matmul.PTX)

    for arch in ("sm_75", "sm_90", "sm_120"):
        command = [ptxas, f"-arch={arch}", str(path), "-o", os.devnull]
        subprocess.run(command, check=True, capture_output=True)
