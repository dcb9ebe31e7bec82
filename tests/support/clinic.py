"""A machine to examine: folders of programs that say what a test wants them to say. Unaware of what is made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.doctor.check import Check, Examination
from stoker.doctor.examine import examine
from stoker.doctor.need import Need

SYSTEM = "/usr/bin:/bin"
PATIENCE = 60.0
"""Seconds for each program: only a program that hangs may come near it, and only the test of such one sets another."""

NVCC = """#!/bin/sh
case "$*" in
*--version*) echo "Cuda compilation tools, release {release}, V{release}.88" ;;
*--list-gpu-arch*) printf 'compute_%s\\n' {archs} ;;
*--dryrun*) echo '#$ TOP={root}/bin/..' ;;
esac
"""

HOST_CONFIG = """
#if defined(__GNUC__)
#if __GNUC__ > {gcc}
#error -- unsupported GNU version! gcc versions later than {gcc} are not supported!
#endif /* __GNUC__ > {gcc} */
#if (__clang_major__ >= {clang}) || (__clang_major__ < 3)
#error -- unsupported clang version! clang version must be less than {clang} and greater than 3.2 .
#endif
#endif /* __GNUC__ */
"""


@dataclass
class Clinic:
    """A folder of programs in front of the system's, a source tree, and what a build asks for."""

    root: Path
    need: Need
    env: dict[str, str]

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    def program(self, name: str, text: str) -> Path:
        """A script of this name, which goes before the system's program."""
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def says(self, name: str, text: str, status: int = 0) -> Path:
        """A program that says one thing whatever it is asked."""
        return self.program(name, f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")

    def only(self, *names: str) -> None:
        """PATH holds these of the system's programs and the own ones, and nothing else."""
        for name in names:
            found = next(f"{folder}/{name}" for folder in SYSTEM.split(":") if Path(folder, name).exists())
            (self.root / "bin" / name).symlink_to(found)
        self.env["PATH"] = str(self.root / "bin")

    def toolkit(
        self, release: str = "13.0", archs: str = "75 80 86 90 100 120", gcc: int = 15, clang: int = 21
    ) -> Path:
        """A CUDA toolkit with an nvcc and the headers that are looked at."""
        root = self.root / f"cuda-{release}"
        for folder in ("bin", "include/crt"):
            (root / folder).mkdir(parents=True)
        nvcc = root / "bin/nvcc"
        nvcc.write_text(NVCC.format(release=release, archs=archs, root=root))
        nvcc.chmod(0o755)
        major, _, minor = release.partition(".")
        (root / "include/cuda.h").write_text(f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n")
        (root / "include/crt/host_config.h").write_text(HOST_CONFIG.format(gcc=gcc, clang=clang))
        return root

    def file(self, name: str, text: str = "") -> Path:
        """A file of the source tree."""
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def wants(self, **fields: object) -> None:
        """Change the need."""
        self.need = replace(self.need, **fields)  # type: ignore[arg-type]  # (fields of Need, by the tests' own word)

    def examine(self, patience: float = PATIENCE) -> Examination:
        return examine(self.need, self.env, patience)

    def check(self, name: str) -> Check:
        """The one check of this name."""
        return one(self.examine(), name)


def one(found: Examination, name: str) -> Check:
    """The one check of this name."""
    checks = [check for check in found.checks if check.name == name]
    assert len(checks) == 1, f"{name}: {checks or [check.name for check in found.checks]}"
    return checks[0]


def clinic(root: Path, env: Mapping[str, str] | None = None) -> Clinic:
    """A clinic in an empty folder, for a build that nothing is known of."""
    for folder in ("bin", "tree", "tmp"):
        (root / folder).mkdir()
    need = Need(source=str(root / "tree"), build=str(root / "tree/build"), temporary=str(root / "tmp"))
    return Clinic(root, need, {"PATH": f"{root / 'bin'}:{SYSTEM}", "HOME": str(root), **(env or {})})


def system_env() -> dict[str, str]:
    """The environment of a person who has set nothing that steers a build."""
    kept = ("PATH", "HOME", "LANG", "TERM")
    return {name: os.environ[name] for name in kept if name in os.environ}
