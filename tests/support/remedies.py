"""Runs the remedy of a rule against a small project that fails so. Unaware of which projects there are."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan

VARIABLES = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "FFLAGS", "CPATH", "AR", "LIBS", "LIBRARY_PATH", "LD_LIBRARY_PATH"),
    *("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "PKG_CONFIG_PATH", "TMPDIR", "MAKEFLAGS", "CUDA_HOME"),
    *("no_proxy", "NO_PROXY", "RUSTFLAGS", "CARGO_HOME", "GOFLAGS", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "PYTHONPATH"),
    *("PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT", "PYTHONUTF8"),
    *("TORCH_CUDA_ARCH_LIST", "CUDACXX", "JAVA_HOME", "CONDA_PREFIX", "CMAKE_GENERATOR", "CMAKE_PREFIX_PATH"),
    *("PIP_REQUIRE_VIRTUALENV", "SOURCE_DATE_EPOCH", "DEB_BUILD_OPTIONS", "PYTHONHOME", "ALL_PROXY", "all_proxy"),
    *("TAR_OPTIONS", "CCACHE_DIR", "CCACHE_DISABLE", "CCACHE_COMPILER", "DISTCC_HOSTS", "LD_PRELOAD", "GLIBC_TUNABLES"),
)
"""What a remedy sets; a test begins without."""

NONE = "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\n"
C = "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES C)\n"
MAIN = "int main(void) { return 0; }\n"
GIT = "git -c user.name=a -c user.email=a@x.invalid -c init.defaultBranch=main -c protocol.file.allow=always"
LOCAL = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always; "
"""Lets git fetch submodules from folders."""


def records_of(name: str, indent: int) -> str:
    """Python lines, so far indented, that write the records of an empty package into the open zip file `wheel`."""
    folder = f"{name}-1.dist-info"
    return textwrap.indent(
        f'wheel.writestr("{folder}/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: 1\\n")\n'
        f'wheel.writestr("{folder}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")\n'
        f'wheel.writestr("{folder}/RECORD", "")\n',
        indent * " ",
    )


def backend(imports: str = "", first: str = "pass") -> str:
    """A backend of pip's that makes an empty wheel without setuptools, after the statement `first`."""
    return (
        f"import zipfile\n{imports}\ndef build_wheel(folder, settings=None, metadata=None):\n    {first}\n"
        '    with zipfile.ZipFile(folder + "/p-1-py3-none-any.whl", "w") as wheel:\n'
        f'{records_of("p", 8)}    return "p-1-py3-none-any.whl"\n'
    )


WITHOUT_RIGHTS = (
    'user() { if [ $(id -u) = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi; }; '
)
"""`user COMMAND`: root has no right but a user's."""


@dataclass(frozen=True)
class Case:
    """`build` fails with `rule`, and works with `repair` around it, which holds the words `says` of the remedy.

    `needs` are the programs that it takes, `as_root` that it mounts something.
    """

    rule: str
    files: dict[str, str]
    build: str
    says: str
    repair: str
    needs: str = "g++"
    as_root: bool = False


def check_that_it_repairs(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that the rule finds the failure, that its remedy says so, and that the build then works."""
    missing = [program for program in case.needs.split() if shutil.which(program) is None]
    if missing or (case.as_root and os.geteuid()):
        pytest.skip(f"no {' '.join(missing) or 'root'}")
    monkeypatch.setenv("LC_ALL", "C")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, text in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    failed = _run(case.build, folder)
    assert failed.returncode != 0 or b"cd: " in failed.stdout
    found = scan(io.BytesIO(failed.stdout), shipped_rules())
    assert found, failed.stdout.decode()
    first = found[0]
    assert (first.rule.id, case.says in first.remedy) == (case.rule, True), first.remedy
    assert case.says in case.repair
    repaired = _run(case.repair.replace("; {}", f"; {case.build}"), folder)
    assert (repaired.returncode, b"cd: " in repaired.stdout) == (0, False), repaired.stdout.decode()


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    words = ["bash", "-c", command]
    return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
