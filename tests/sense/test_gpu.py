from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.sense.machine.gpu import CRASHES, NO_DRIVER, GpuReader

NO_FILE = Path("/dev/null/no-file")

NVML = r"""
#include <string.h>
#include <stdlib.h>
typedef struct { unsigned gpu, memory; } util_t;
typedef struct { unsigned long long total, free, used; } mem_t;
enum { NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15 };
static int mode(const char *name) { const char *m = getenv("FAKE_NVML"); return m && strstr(m, name) != 0; }
int nvmlInitWithFlags(unsigned flags) { if (mode("crash")) abort(); return mode("unloaded") ? DRIVER_NOT_LOADED : 0; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "made up"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = mode("none") ? 0 : 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  if (index == 1 && mode("lost")) return GPU_IS_LOST;
  *handle = (void *)(long)(index + 1);
  return 0;
}
int nvmlDeviceGetName(void *h, char *name, unsigned length) { strncpy(name, "Fake GPU", length); return 0; }
int nvmlDeviceGetUtilizationRates(void *h, util_t *u) {
  if ((long)h == 2) return NOT_SUPPORTED;
  u->gpu = 42; u->memory = 7; return 0;
}
int nvmlDeviceGetMemoryInfo(void *h, mem_t *m) { m->total = 1ull << 34; m->used = 1ull << 30; m->free = 0; return 0; }
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } mem2_t;
int nvmlDeviceGetMemoryInfo_v2(void *h, mem2_t *m) {
  if (!mode("reserves") || m->version != (sizeof *m | 2 << 24)) return FUNCTION_NOT_FOUND;
  m->total = 1ull << 34; m->reserved = 480ull << 20; m->free = 0; m->used = (1ull << 30) - m->reserved; return 0;
}
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *t) { *t = 55; return 0; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) { if ((long)h == 2) return NOT_SUPPORTED; *mw = 123456; return 0; }
"""

ASK = """
import dataclasses, json, sys, time
from pathlib import Path
from stoker.sense.machine.gpu import GpuReader
reader = GpuReader(interval=0.01, tries=Path(sys.argv[1]))
deadline = time.monotonic() + 60
while reader.note == "asking the NVIDIA driver" and time.monotonic() < deadline:
    time.sleep(0.01)
print(json.dumps({"gpus": [dataclasses.asdict(g) for g in reader.gpus], "note": reader.note}))
reader.close()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    source = folder / "nvml.c"
    source.write_text(NVML)
    try:
        command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(folder / "libnvidia-ml.so.1"), str(source)]
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("gcc is not installed")
    return folder


def _ask(library: Path, mode: str = "", tries: Path = NO_FILE) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_run(library, mode, tries))
    return answer


def _run(library: Path, mode: str, tries: Path) -> str:
    """What a process says that asks; raises CalledProcessError where that is its end."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML": mode}
    command = [sys.executable, "-c", ASK, str(tries)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_gpus_and_what_they_do_not_tell(library: Path) -> None:
    answer = _ask(library)
    first, second = answer["gpus"]
    assert first == {
        "index": 0,
        "name": "Fake GPU",
        "utilisation": 42.0,
        "memory_used": 2**30,
        "memory_total": 2**34,
        "temperature": 55.0,
        "power_watts": 123.456,
    }
    assert (second["utilisation"], second["power_watts"], second["memory_used"]) == (None, None, 2**30)
    assert answer["note"] == ""


def test_what_the_driver_reserves_for_itself_is_not_in_use(library: Path) -> None:
    """As nvidia-smi shows it: an H100 that nobody uses has 0 MiB in use, not 480."""
    first, _ = _ask(library, "reserves")["gpus"]
    assert (first["memory_used"], first["memory_total"]) == (2**30 - 480 * 2**20, 2**34)


def test_a_lost_gpu_does_not_hide_the_other(library: Path) -> None:
    first, second = _ask(library, "lost")["gpus"]
    assert first["utilisation"] == 42.0
    assert second["name"] == ""
    assert second["memory_total"] is None


def test_a_library_without_its_driver(library: Path) -> None:
    assert _ask(library, "unloaded") == {"gpus": [], "note": NO_DRIVER}


def test_a_driver_without_gpus(library: Path) -> None:
    assert _ask(library, "none") == {"gpus": [], "note": "no GPU"}


def test_a_library_that_crashes_takes_two_along_and_no_third(library: Path, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError) as died:
            _run(library, "crash", tries)
        assert died.value.returncode == -signal.SIGABRT
    assert _ask(library, "crash", tries) == {"gpus": [], "note": CRASHES}


@pytest.mark.parametrize("mode", ["", "unloaded", "none"])
def test_who_was_answered_is_no_reason_to_ask_no_more(library: Path, tmp_path: Path, mode: str) -> None:
    tries = tmp_path / "tries"
    with pytest.raises(subprocess.CalledProcessError):
        _run(library, "crash", tries)
    for _ in range(3):
        assert _ask(library, mode, tries) == _ask(library, mode)


def test_no_library_is_the_normal_case(until: Callable[..., Any]) -> None:
    reader = GpuReader("libstoker-has-no-such-library.so")
    assert (reader.gpus, reader.note) == ((), NO_DRIVER)
    reader.close()
