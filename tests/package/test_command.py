"""What `stoker package` prints: a page for a person, JSON for programs, one line where it cannot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from package.conftest import Machine
from package.test_modes import packaged
from stoker.model.packaged import GpuReach
from stoker.model.report import FileReport, HeldArch, Report
from stoker.package import patchelf
from stoker.package.gpu_reach import gpu_reach
from stoker.package.packaging_error import PackagingError
from stoker.package.wheel_metadata import requirements_in, with_requirements
from stoker.show.package_text import render_packaged


def run(machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stoker", "package", *words, "-o", str(machine.root / "out")]
    return subprocess.run(command, capture_output=True, text=True, env=machine.environment.variables, check=False)


def test_the_page_says_what_was_made_of_the_wheel(machine: Machine) -> None:
    machine.install_nvidia()

    done = run(machine, str(machine.wheel()), "--mode", "pypi")

    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    for text in (
        "Tag linux_x86_64 -> manylinux_2_27_x86_64 (pypi mode)",
        "nvidia-cublas 13.1.0.3: manylinux_2_27_x86_64",
        "Requires nvidia-cublas==13.1.0.3 for libcublas.so.13",
        "Vendored nothing",
        f"RPATH pack/deep/libkernels.so: $ORIGIN/../../nvidia/cu13/lib, was {machine.root}/libraries",
        "GPUs no device code of its own",
        "Nothing to judge for NVIDIA GPUs",
    ):
        assert text in words, text


def test_colours_change_no_word_of_the_page(machine: Machine) -> None:
    made = packaged(machine, machine.wheel(), "bundle")

    coloured = render_packaged(made, 60, colour=True)

    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render_packaged(made, 60)


def test_json_holds_the_same_and_the_verification(machine: Machine) -> None:
    done = run(machine, str(machine.wheel()), "--mode", "bundle", "--json")

    made = json.loads(done.stdout)
    assert (made["mode"], made["tag_before"]) == ("bundle", "linux_x86_64")
    assert Path(made["output"]).stat().st_size == made["size"]
    assert len(made["vendored"]) == 4
    assert made["verification"]["ok"]


def test_of_a_pattern_the_newest_wheel_is_packaged(machine: Machine) -> None:
    old = machine.wheel()
    new = machine.wheel(name="pack-2.0")
    os.utime(old, (time.time() - 60,) * 2)

    made = json.loads(run(machine, str(machine.root / "dist/pack-*.whl"), "--mode", "bundle", "--json").stdout)

    assert made["input"] == str(new)


def test_where_there_is_no_patchelf_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    patchelf.patchelf.cache_clear()
    with pytest.raises(PackagingError, match=r"pip install 'stoker\[package\]'"):
        patchelf.patchelf()
    patchelf.patchelf.cache_clear()


def held(path: str, *archs: str) -> FileReport:
    uses = tuple(HeldArch("ptx" if a.startswith("compute") else "cubin", a, 1, 100) for a in archs)
    return FileReport(path, 100, "x86_64", uses, modules=1)


def test_the_gpus_are_those_for_which_every_file_of_its_own_has_code() -> None:
    files = (held("a.so", "sm_80", "sm_90", "compute_90"), held("b.so", "sm_80", "compute_80"))
    vendored = held("x.libs/libcublas.so.13", "sm_75")

    reach = gpu_reach(Report(ok=True, files=(*files, vendored)))

    assert reach.native == ("8.0", "8.6", "8.8", "8.9")
    assert reach.ptx_jit[:2] == ("9.0", "10.0")
    assert reach.part == ("8.7",)
    assert gpu_reach(Report(ok=True, files=(vendored,))) == GpuReach()


@pytest.mark.parametrize(
    "text",
    [
        "Name: x\nVersion: 1\n\nbody\n",
        "Name: x\nVersion: 1\n",
        "Name: x\nLicense: a\n        b\n\n        c\n\nRequires-Dist: not-me\n",
        "Name: x\r\nVersion: 1\r\n\r\nbody\r\n.\r\n",
        "Name: Zoë\nSummary: " + "long " * 60 + "\n\nNaïve\n",
        "Name: x\nRequires-Dist: old\nKeywords: a,b\n\n",
    ],
)
def test_metadata_loses_nothing_but_what_is_replaced(text: str) -> None:
    lines = ['a==1; platform_system == "Linux"', "b"]

    made = with_requirements(text.encode(), lines)

    assert requirements_in(made) == lines
    blank = "\r\n\r\n" if "\r" in text else "\n\n"
    head, _, body = text.partition(blank)
    kept = [line for line in head.splitlines() if not line.startswith("Requires-Dist")]
    new_head, _, new_body = made.decode().partition("\n\n")
    assert [line for line in new_head.splitlines() if not line.startswith("Requires-Dist")] == kept
    assert new_body.encode() == body.encode()
