"""What CI services, containers and package managers put before a line hides no failure and no step."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan
from stoker.diagnose.wrappers import unwrapped
from support.rule_examples import log_of, of_lines

FORMS = {
    "docker": "#12 345.6 {}",
    "docker summary": "> [2/2] RUN make:\n1.234 {}",
    "actions": "2026-01-02T03:04:05.6789012Z {}",
    "actions error": "2026-01-02T03:04:05.6789012Z ##[error]{}",
    "gh run view": "build (12.8)\tRun make -j\t\ufeff2026-01-02T03:04:05.6789012Z {}",
    "gitlab": "2026-01-02T03:04:05.678901Z 01O {}",
    "gitlab section": "section_start:1767323045:step_script\r\x1b[0K\x1b[0;m{}",
    "jenkins": "[2026-01-02T03:04:05.678Z] {}",
    "jenkins clock": "03:04:05  {}",
    "jenkins stage": "[2026-01-02T03:04:05.678Z] [build-cuda] {}",
    "journald": "Jan 02 03:04:05 build-7 sh[4711]: {}",
    "journald iso": "2026-01-02T03:04:05+0000 build-7 stoker-run.service[4711]: {}",
    "compose": "builder-1  | {}",
    "nix": "torch-2.9.0> {}",
    "nix last lines": "       > {}",
    "spack": "  >> 1234    {}",
    "date": "[2026-01-02 03:04:05] {}",
    "date words": "[Fri Jan  2 03:04:05 2026] {}",
    "quoted": "> {}",
    "quoted twice": "> > {}",
    "bitbake": "| {}",
    "pip": "      {}",
    "pip in docker in actions": "2026-01-02T03:04:05.6789012Z #9 88.1       {}",
    "journal of compose": "Jan 02 03:04:05 host docker[1]: builder-1  | {}",
}
ONE_LINE = ("docker summary", "gitlab section")
FIRST_LINE = tuple(FORMS[name] for name in (*ONE_LINE, "spack"))
"""Forms that no tool puts before each line of a message."""

OUT_OF_MEMORY = ("compiler-killed", "linker-killed", "memory-refused", "step-killed", "kernel-oom", "fork-refused")


def rules_in(text: str) -> list[str]:
    return [match.rule.id for match in scan(io.BytesIO(text.encode()), shipped_rules())]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_killed_compiler_is_found_in_every_form(form: str) -> None:
    rules = [rule for rule in shipped_rules() if rule.id in OUT_OF_MEMORY]
    for rule in rules:
        for example in rule.examples:
            assert rules_in(form.format(example.strip())) == [rule.id], example


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_other_failures_are_found_too(form: str) -> None:
    rules = [r for r in shipped_rules() if not (of_lines(r) and form in FIRST_LINE)]
    first = form in FIRST_LINE
    logs = [(rule.id, log_of(rule, e, form, first_line_only=first)) for rule in rules for e in rule.examples]
    missed = [(rule, log) for rule, log in logs if rules_in(log) != [rule]]
    assert missed == []


@pytest.mark.parametrize("form", [form for name, form in FORMS.items() if name not in ONE_LINE])
def test_steps_are_kept_apart_in_every_form(form: str) -> None:
    lines = ["[1/9] CXX a.o", "FAILED: a.o", "a.cpp:3:12: error: no such name", "[2/9] CXX b.o", "FAILED: b.o"]
    lines += ["g++: fatal error: Killed signal terminated program cc1plus"]
    log = "\n".join(form.format(line) for line in lines)
    assert rules_in(log) == ["compile-error", "compiler-killed"]


@pytest.mark.parametrize(
    "line",
    [
        "[1/9] Building CXX object a.o",
        "[ 45%] Building CXX object a.o",
        "   12 |   throw 1;",
        "a.cpp:3:12: error: no such name",
        "make[2]: *** [Makefile:2: a.o] Error 1",
        "FAILED: [code=1] a.o",
        "-- Found CUDA: 13.0",
        "  a -> b",
        "collect2: error: ld returned 1 exit status",
    ],
)
def test_a_tools_own_line_is_left_alone(line: str) -> None:
    assert unwrapped(line.encode()) == line
