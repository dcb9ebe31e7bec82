"""A small package with the shape of flash-attention's: a setup.py that runs ninja, and no pyproject.toml.

Without one, pip before 25.3 has setup.py build the wheel, and has it clean up when that fails.
"""

from __future__ import annotations

from pathlib import Path

from support.program import PYPI_NINJA, write_ninja

SETUP = """
import os, pathlib, shutil, subprocess, zipfile
from setuptools import Command, setup

class Wheel(Command):
    user_options = [("dist-dir=", "d", ""), ("dist-info-dir=", None, "")]
    def initialize_options(self):
        self.dist_dir = self.dist_info_dir = None
    def finalize_options(self):
        pass
    def egg2dist(self, egg_info, dist_info):
        os.makedirs(dist_info, exist_ok=True)
        shutil.copy(os.path.join(egg_info, "PKG-INFO"), os.path.join(dist_info, "METADATA"))
    def run(self):
        work = pathlib.Path(self.get_finalized_command("build").build_temp)
        work.mkdir(parents=True, exist_ok=True)
        shutil.copy("build.ninja", work)
        subprocess.run([NINJA, "-C", str(work)], check=True)
        os.makedirs(self.dist_dir, exist_ok=True)
        with zipfile.ZipFile(os.path.join(self.dist_dir, "flash_attn-1-py3-none-any.whl"), "w") as wheel:
            wheel.writestr("flash_attn-1.dist-info/METADATA",
                           "Metadata-Version: 2.1\\nName: flash_attn\\nVersion: 1\\n")
            wheel.writestr("flash_attn-1.dist-info/WHEEL",
                           "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr("flash_attn-1.dist-info/RECORD", "")

setup(name="flash_attn", version="1", cmdclass={"bdist_wheel": Wheel})
"""


def write_setuplike(folder: Path, edges: list[tuple[str, str]]) -> tuple[Path, Path]:
    """The checkout, whose ninja makes these (output, shell command), and a folder that must be on PYTHONPATH.

    That has an empty package `wheel`, without which pip would not have setup.py build one.
    """
    write_ninja(folder, edges)
    (folder / "setup.py").write_text(f"NINJA = {PYPI_NINJA!r}\n{SETUP}")
    modules = folder.with_name("modules")
    (modules / "wheel").mkdir(parents=True)
    (modules / "wheel" / "__init__.py").touch()
    return folder, modules
