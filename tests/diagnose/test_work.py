"""How much work a log costs, in searches of rules' expressions: a count, which no machine's load changes."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stoker.diagnose.rule import Pattern, Rule, shipped_rules
from stoker.diagnose.scan import MAX_COUNT, scan

LOGS = Path(__file__).parent / "logs"
GOOD = ["clean-cmake", "clean-ninja", "clean-pip", "clean-verbose"]

A_RULE_ASKS = 10
"""Of so many lines of a good build one may meet the expressions of the same rule."""


class Asked:
    """A pattern whose expression counts how often it is asked of a line."""

    def __init__(self, pattern: Pattern, name: str, counts: Counter[str]) -> None:
        self.words, self.regex = pattern.words, self
        self._pattern, self._name, self._counts = pattern, name, counts

    @property
    def groups(self) -> int:
        """As the real one has them."""
        return self._pattern.regex.groups

    def search(self, text: str) -> Any:
        """Search as the real one does."""
        self._counts[self._name] += 1
        return self._pattern.regex.search(text)


def counting(counts: Counter[str]) -> list[Rule]:
    rules = []
    for rule in shipped_rules():
        patterns: Any = tuple(Asked(p, rule.id, counts) for p in rule.patterns)
        rules.append(replace(rule, patterns=patterns))
    return rules


def asked(log: bytes) -> Counter[str]:
    counts: Counter[str] = Counter()
    scan(io.BytesIO(log), counting(counts))
    return counts


def test_the_fixed_words_of_a_rule_stand_in_few_lines_of_good_builds() -> None:
    log = b"".join((LOGS / f"{name}.log").read_bytes() for name in GOOD)
    lines = log.count(b"\n")
    counts = asked(log)
    often = {rule: count for rule, count in counts.items() if count * A_RULE_ASKS > lines}
    assert often == {}
    assert counts.total() <= lines


ORDINARY = {
    "steps": "[1/9] Building CXX object CMakeFiles/app.dir/src/main_{}.cpp.o\n",
    "percent": "[ 50%] Building CXX object CMakeFiles/app.dir/src/error_{}.cpp.o\n",
    "commands": "[7/99] /usr/bin/g++ -DNDEBUG -Werror -fPIC -o not_found_{0}.o -c {0}.cpp\n",
    "warnings": "src/{}.cpp:3:12: warning: unused variable 'error' [-Wunused-variable]\n",
    "notes": "src/{}.hpp:3:12: note: candidate: 'void error(int)'\n",
    "probes": "-- Looking for include file header_{}.h - not found\n",
    "checks": "checking for library_{}... no\n",
    "downloads": "  Downloading package-{}-py3-none-any.whl (1.2 MB)\n",
    "copies": "copying torch/_inductor/kernel_{}.py -> build/lib.linux-x86_64-cpython-311/torch/_inductor\n",
    "ptxas": "ptxas info    : Used {} registers, used 0 barriers, 380 bytes cmem[0]\n",
    "nvcc": "[3/9] /usr/local/cuda/bin/nvcc -I/opt/torch/include/THC -I/opt/numpy/core/include "
    "-DNPY_NO_DEPRECATED_API={0} -D__CUDA_NO_HALF_OPERATORS__ -gencode=arch=compute_90,code=sm_90 -c {0}.cu -o {0}.o\n",
    "links": "g++ -shared -L/usr/lib/cudnn -L/opt/nccl/lib -lcudnn -lnccl -lcublas -o lib{}.so failed.o exit_code.o\n",
    "cargo": "     Running `/opt/cargo/bin/rustc --crate-name c{0} /opt/cargo/c{0}/lib.rs --cfg x`\n",
    "headers": "copying numpy/core/include/numpy/array_{}.h -> build/torch/include/THC/THCDeviceUtils.cuh\n",
    "nccl": "Compiling  all_reduce_{}.cu  > /src/nccl/build/obj/collectives/device/all_reduce.o\n",
    "ninja": "Running command /usr/bin/ninja -C build{} -j 8\n",
}


def test_a_log_compiles_only_the_expressions_whose_words_it_holds() -> None:
    rules = shipped_rules.__wrapped__()
    patterns = [pattern for rule in rules for pattern in rule.patterns]
    assert scan(io.BytesIO(b"a.c:1:10: fatal error: zlib.h: No such file or directory\n"), rules)
    compiled = [pattern for pattern in patterns if "regex" in vars(pattern)]
    assert 0 < len(compiled) < len(patterns) / 10


@pytest.mark.parametrize("line", ORDINARY.values(), ids=ORDINARY)
def test_what_large_logs_are_full_of_meets_no_rule(line: str) -> None:
    assert asked("".join(line.format(n) for n in range(500)).encode()).total() == 0


REPEATED = {
    "undefined-reference": "/usr/bin/ld: main.cpp:(.text+0x1a): undefined reference to `name_{}(int)'\n",
    "compile-error": "a.cpp:{}:12: error: 'x' was not declared in this scope\n",
    "missing-header": "a.cpp:1:10: fatal error: header_{}.h: No such file or directory\n",
    "python-module-missing": "ModuleNotFoundError: No module named 'module_{}'\n",
}
A_LINE_ASKS = 40
"""Expressions that a line may meet: some thirty rules know a kind of undefined reference."""


@pytest.mark.parametrize("rule", REPEATED)
def test_a_rule_that_has_its_count_is_asked_no_more(rule: str) -> None:
    lines = 4 * MAX_COUNT
    counts = asked("".join(REPEATED[rule].format(n) for n in range(lines)).encode())
    assert MAX_COUNT <= counts[rule] <= 2 * MAX_COUNT
    assert counts.total() <= A_LINE_ASKS * lines


def test_lines_of_a_rule_that_has_its_count_go_to_no_lesser_one() -> None:
    python = "a.cpp:1:10: fatal error: Python.h: No such file or directory\n" * (2 * MAX_COUNT)
    assert [match.rule.id for match in scan(io.BytesIO(python.encode()), shipped_rules())] == ["python-headers-missing"]


def test_in_another_attempt_each_rule_counts_anew() -> None:
    header = "a.cpp:1:10: fatal error: header.h: No such file or directory\n"
    first = header.replace("header.h", "Python.h") * (2 * MAX_COUNT) + "ninja: build stopped: subcommand failed.\n"
    found = scan(io.BytesIO(f"{first}[1/9] CXX a.o\n{header}".encode()), shipped_rules())
    assert [match.rule.id for match in found] == ["missing-header", "python-headers-missing"]
