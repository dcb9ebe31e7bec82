"""Logs of failures that were provoked with real tools (logs/README.md says how): the first cause is found in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan

LOGS = Path(__file__).parent / "logs"

FIRST_CAUSE = {
    "abi-extension": ("abi-undefined-symbol", 3),
    "abi-link": ("abi-undefined-reference", 2),
    "argument-list-make": ("argument-list-too-long", 1),
    "argument-list": ("argument-list-too-long", 1),
    "assembler": ("assembler-too-old", 2),
    "ccache": ("ccache-permission", 1),
    "clock-skew": ("clock-skew", 3),
    "cmake-download": ("no-name-resolution", 44),
    "cmake-error": ("cmake-error", 1),
    "cmake-generator": ("cmake-generator-mismatch", 2),
    "cmake-hash": ("cmake-hash-mismatch", 2),
    "cmake-moved": ("cmake-folder-moved", 1),
    "cmake-no-lists": ("cmake-no-lists", 1),
    "cmake-no-ninja": ("cmake-no-build-program", 1),
    "cmake-package-config": ("cmake-package-missing", 2),
    "cmake-package": ("cmake-package-missing", 22),
    "cmake-pkg-config": ("cmake-package-missing", 5),
    "cmake-refused": ("fetch-failed", 39),
    "cmake-too-new": ("cmake-too-new", 2),
    "cmake-too-old": ("cmake-too-old", 27),
    "command-not-found-bash": ("command-not-found", 1),
    "command-not-found-make": ("command-not-found", 2),
    "command-not-found": ("command-not-found", 4),
    "compile-error-colour": ("compile-error", 2),
    "compile-error-make": ("compile-error", 12),
    "compile-error-nvcc": ("compile-error", 4),
    "compile-error-pip": ("compile-error", 12),
    "compile-error-rust": ("compile-error", 1),
    "compile-error": ("compile-error", 5),
    "compiler-broken": ("compiler-broken", 11),
    "compiler-not-found-cxx": ("compiler-not-found", 1),
    "compiler-not-found-env": ("compiler-not-found", 2),
    "compiler-not-found": ("compiler-not-found", 7),
    "compiler-option": ("unknown-compiler-option", 1),
    "compiler-segfault": ("compiler-segfault", 4),
    "cuda-arch-empty": ("unknown-arch-name", 3),
    "cuda-not-found": ("cuda-not-found", 3),
    "cuda-toolkit-not-found": ("cuda-not-found", 8),
    "cudnn": ("cudnn-not-found", 1),
    "cxx-standard": ("standard-too-old", 3),
    "externally-managed": ("externally-managed", 1),
    "fetch-failed": ("fetch-failed", 2),
    "fork-refused": ("fork-refused", 2),
    "git-lfs": ("git-lfs", 3),
    "git-missing": ("git-authentication", 1),
    "git-ownership": ("git-dubious-ownership", 1),
    "glibc": ("glibc-too-old", 1),
    "gpu-architecture-ptxas": ("unsupported-gpu-architecture", 1),
    "gpu-architecture": ("unsupported-gpu-architecture", 4),
    "host-compiler-missing": ("host-compiler-missing", 2),
    "host-compiler": ("host-compiler-too-new", 6),
    "internal-compiler-error": ("internal-compiler-error", 4),
    "interrupted-make": ("interrupted", 1),
    "interrupted": ("interrupted", 4),
    "linker-segfault": ("compiler-segfault", 1),
    "make-no-makefile": ("make-no-rule", 1),
    "make-no-rule": ("make-no-rule", 1),
    "memory-cc1plus": ("compiler-killed", 4),
    "memory-ld-rust": ("linker-killed", 1),
    "memory-ld-ulimit": ("memory-refused", 1),
    "memory-ld": ("linker-killed", 4),
    "memory-pip": ("compiler-killed", 14),
    "memory-python": ("memory-refused", 3),
    "memory-ulimit": ("memory-refused", 1),
    "missing-header-nvcc": ("missing-header", 1),
    "missing-header": ("missing-header", 4),
    "missing-library": ("missing-library", 1),
    "missing-submodule-hint": ("missing-submodule", 2),
    "missing-submodule": ("missing-submodule", 6),
    "multiple-definition": ("multiple-definition", 1),
    "name-too-long": ("name-too-long", 2),
    "ninja-cycle": ("ninja-manifest", 1),
    "ninja-dirty": ("ninja-dirty-loop", 101),
    "ninja-manifest": ("ninja-manifest", 1),
    "ninja-missing-input": ("ninja-missing-input", 1),
    "ninja-no-folder": ("ninja-no-folder", 2),
    "ninja-no-manifest": ("ninja-no-manifest", 1),
    "ninja-not-found": ("ninja-not-found", 1),
    "ninja-rule": ("ninja-manifest", 1),
    "ninja-unknown-target": ("ninja-unknown-target", 1),
    "no-distribution": ("no-matching-distribution", 1),
    "no-name": ("no-name-resolution", 2),
    "no-setuptools": ("no-setuptools", 4),
    "no-space-ld": ("no-space-left", 1),
    "no-space-python": ("no-space-left", 3),
    "no-space": ("no-space-left", 4),
    "no-torch": ("no-torch-in-isolation", 77),
    "nvcc-option": ("nvcc-unknown-option", 1),
    "nvlink": ("undefined-reference", 1),
    "permission-denied": ("permission-denied", 1),
    "ptxas-version": ("two-cuda-versions", 1),
    "ptxas": ("ptxas-error", 1),
    "python-headers": ("python-headers-missing", 1),
    "python-module": ("python-module-missing", 3),
    "python-version": ("python-version", 6),
    "read-only": ("read-only", 1),
    "relocation": ("relocation-truncated", 2),
    "rust-missing": ("rust-missing", 1),
    "rust-too-old": ("rust-too-old", 1),
    "shared-library": ("shared-library-missing", 1),
    "sccache": ("sccache-failed", 2),
    "step-killed-137": ("step-killed", 2),
    "step-killed-make": ("step-killed", 2),
    "step-killed": ("step-killed", 2),
    "step-segfault": ("compiler-segfault", 1),
    "text-file-busy": ("text-file-busy", 4),
    "tls": ("tls-failed", 2),
    "too-many-files": ("too-many-files", 1),
    "undefined-reference": ("undefined-reference", 2),
    "undefined-symbol-app": ("undefined-symbol", 1),
    "undefined-symbol": ("undefined-symbol", 3),
    "werror-colour": ("warnings-as-errors", 2),
    "werror": ("warnings-as-errors", 5),
    "wrong-format-32": ("wrong-file-format", 1),
    "wrong-format": ("wrong-file-format", 1),
}
"""Of each log the rule of its first cause, and its line, as read off the log."""

CLEAN = ["clean-cmake", "clean-ninja", "clean-pip", "clean-verbose"]


def test_every_log_is_looked_at() -> None:
    assert sorted(path.stem for path in LOGS.glob("*.log")) == sorted([*FIRST_CAUSE, *CLEAN])


@pytest.mark.parametrize("name", FIRST_CAUSE)
def test_the_first_cause(name: str) -> None:
    with (LOGS / f"{name}.log").open("rb") as file:
        first = scan(file, shipped_rules())[0]
    assert (first.rule.id, first.line) == FIRST_CAUSE[name]


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_in_a_build_that_went_well(name: str) -> None:
    with (LOGS / f"{name}.log").open("rb") as file:
        assert scan(file, shipped_rules()) == []


def test_a_log_that_a_rule_names_as_its_source_is_there_and_shows_it() -> None:
    for rule in shipped_rules():
        for name in (word.strip("(),.;") for word in rule.source.split()):
            if name.endswith(".log"):
                with (LOGS / name).open("rb") as file:
                    assert rule.id in [match.rule.id for match in scan(file, shipped_rules())], name
