"""Three real kernels of flash-attention by its profile: gate, memory, a pause below pip, and what the wheel holds.

Wants a folder, named by STOKER_FLASH_ATTN, with flash-attn's sdist (flash_attn-*.tar.gz) and an environment `env` that
has a torch for the CUDA of the nvcc on PATH, ninja, packaging, psutil and wheel. Takes some ten minutes of CPU time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stoker.act.tree import descendants
from stoker.contract.process import stat_fields
from support.flashattn import KERNELS, unpack_few
from support.program import Stoker, until

GIVEN = Path(os.environ.get("STOKER_FLASH_ATTN", "/nonexistent"))
PYTHON = GIVEN / "env" / "bin" / "python"
MIB = 2**20


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources, cut down."""
    sdists = sorted(GIVEN.glob("**/flash_attn-*.tar.gz"))
    if not (sdists and PYTHON.exists()):
        pytest.skip("STOKER_FLASH_ATTN names no folder with flash-attn's sdist and an environment env with torch")
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on PATH: the CUDA toolkit is not installed")
    return unpack_few(sdists[-1], tmp_path / "src")


def toolkit() -> str:
    """Where nvcc has its headers: the nvcc on PATH may be a script that calls it."""
    said = subprocess.run(
        ["nvcc", "--dryrun", "-E", "-x", "cu", os.devnull], capture_output=True, text=True, check=True
    )
    top = re.search(r"^#\$ TOP=(.*)$", said.stderr, re.MULTILINE)
    assert top is not None
    return os.path.normpath(top[1].strip())


def phases(build: str, stoker: Stoker) -> dict[str, str]:
    """The compilers' front ends of a build that live, with their states as the kernel tells them."""
    found = {}
    for pid in descendants(stoker.supervisor(build)["supervisor_pid"]):
        fields = stat_fields(pid)
        name = Path(f"/proc/{pid}/comm")
        if fields and name.exists() and name.read_text().strip() in ("cicc", "cc1plus", "cudafe++", "ptxas"):
            found[str(pid)] = fields[0].decode()
    return found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_kernels_of_flash_attention_are_governed_below_pip_and_verified_in_the_wheel(
    stoker: Stoker, tree: Path
) -> None:
    headers = subprocess.run(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, check=True
    )
    stoker.env["CUDA_HOME"] = toolkit()
    stoker.env["PATH"] = f"{PYTHON.parent}:{stoker.env['PATH']}"
    stoker.env["CPATH"] = f"{headers.stdout.decode().strip()}/nvidia/cu13/include"
    stoker.env["PIP_CACHE_DIR"] = str(stoker.root / "cache")
    words = ("run", "--detach", "-p", "flash-attention", "--set", "arch=90", "--memory", "12GiB")
    started = stoker.run(*words, cwd=tree)
    assert started.returncode == 0, started.stderr
    build = started.stdout.decode().strip()
    outputs = {"flash_api.o", *(f"{kernel}.o" for kernel in KERNELS)}

    until(lambda: stoker.status(build)["progress"]["running"] and phases(build, stoker), "a compiler")
    seen = stoker.status(build)["progress"]
    assert (seen["total"], seen["total_known"]) == (4, True), "pip shows nothing of ninja"
    assert stoker.run("pause", "--now", build).returncode == 0
    until(lambda: {*phases(build, stoker).values()} == {"T"}, "the pause of them all")
    assert stoker.status(build)["state"] == "frozen"
    assert stoker.run("unpause", build).returncode == 0
    until(lambda: {*phases(build, stoker).values()} - {"T"}, "their going on, but for those on deck")

    process = stoker.start("attach", "--plain", build)
    out, err = process.communicate()
    assert process.returncode == 0, (out + err).decode()
    ends = {Path(e["output"]).name: e for e in stoker.events(build) if e["type"] == "job_finished"}
    assert {*ends} == outputs
    assert all(ends[f"{kernel}.o"]["peak_rss"] > 2000 * MIB for kernel in KERNELS)
    started_with = {Path(e["output"]).name: e for e in stoker.events(build) if e["type"] == "job_started"}
    assert all(
        0.6 < started_with[f"{kernel}.o"]["expected"] / ends[f"{kernel}.o"]["peak_rss"] < 1.7 for kernel in KERNELS
    ), "what is expected of kernels is from their kind"

    (found,) = [e["found"] for e in stoker.events(build) if e["type"] == "verified"]
    (wheel,) = (tree / "dist").glob("*.whl")
    assert [f["path"].partition("::")[0] for f in found["files"]] == [str(wheel)]
    assert [(r["arch"], r["state"]) for r in found["requested"]] == [("sm_90", "present")]
    verdicts = {device: stoker.run("verify", str(wheel), "--device", device).returncode for device in ("9.0", "8.0")}
    assert verdicts == {"9.0": 0, "8.0": 1}

    target = stoker.root / "target"
    install = [str(PYTHON), "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    ask = "import torch, flash_attn_2_cuda as f; print(*sorted(n for n in dir(f) if n in ('fwd', 'bwd')))"
    env = {**os.environ, "PYTHONPATH": str(target)}
    asked = subprocess.run([PYTHON, "-c", ask], env=env, capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["bwd", "fwd"]
