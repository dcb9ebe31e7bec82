"""Wheels and installed packages made by hand, with libraries that gcc links on the spot."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.verify.wheel.wheel_file import Wheel
from support.compiled import compile_to


def record(members: Mapping[str, bytes], info: str) -> bytes:
    rows = []
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*rows, f"{info}/RECORD,,\n"]).encode()


def distribution(name: str, members: Mapping[str, bytes], tag: str, requires: Sequence[str] = ()) -> dict[str, bytes]:
    """A package's files with their METADATA, WHEEL and RECORD; `name` is NAME-VERSION."""
    project, _, version = name.partition("-")
    info = f"{name}.dist-info"
    fields = f"Metadata-Version: 2.1\nName: {project.replace('_', '-')}\nVersion: {version}\nAuthor: Zoë\n"
    fields += "".join(f"Requires-Dist: {r}\n" for r in requires)
    everything = {
        **members,
        f"{info}/METADATA": f"{fields}\nFrom the first line\r\n to the last.\n\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    return {**everything, f"{info}/RECORD": record(everything, info)}


def zipped(path: Path, members: Mapping[Any, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def link(target: Path, source: str = "", *words: str, soname: str = "", rpath: str = "") -> Path:
    """A shared library by gcc; `source` is C."""
    options = [f"-Wl,-soname,{soname}"] * bool(soname) + [f"-Wl,-rpath,{rpath}"] * bool(rpath)
    compile_to(target, source or "int f(void) { return 1; }", ["gcc", "-shared", "-fPIC", "-x", "c"], *words, *options)
    return target


@dataclass(frozen=True)
class Environment:
    """A virtual environment without pip."""

    root: Path

    @classmethod
    def new(cls, root: Path) -> Environment:
        venv.create(root, symlinks=True)
        return cls(root)

    @property
    def site(self) -> Path:
        return next(self.root.glob("lib/python*/site-packages"))

    @property
    def variables(self) -> dict[str, str]:
        return {"VIRTUAL_ENV": str(self.root), "PATH": "/usr/bin:/bin"}

    def put(self, files: Mapping[str, bytes]) -> None:
        """Install what `distribution` has made."""
        for name, data in files.items():
            (self.site / name).parent.mkdir(parents=True, exist_ok=True)
            (self.site / name).write_bytes(data)

    def install(self, wheel: Path) -> None:
        """Have pip install a wheel, and nothing with it."""
        words = ["install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
        subprocess.run([sys.executable, "-m", "pip", "--python", str(self.root / "bin/python"), *words], check=True)

    def run(self, script: str) -> str:
        """What a script prints in an empty environment."""
        command = ["env", "-i", str(self.root / "bin/python"), "-c", script]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout.strip()


def members_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def field_of(wheel: Path, name: str, of: str = "METADATA") -> list[str]:
    with Wheel(wheel) as opened:
        return opened.field(name, of)
