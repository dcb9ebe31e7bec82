"""What a line names stands in the remedy: nobody has to put a name in the place of a word in capitals."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest

from stoker.diagnose.line_names import KINDS
from stoker.diagnose.rule import Rule, shipped_rules
from stoker.diagnose.scan import scan
from support.rule_examples import in_batches, log_of

NAMED = {
    "kernel.cu(1): error #177-D: variable was declared but never referenced": '-diag-suppress=177"',
    "curl: (6) Could not resolve host: git.invalid": "getent hosts git.invalid",
    "wget: unable to resolve host address ‘git.invalid’": "getent hosts git.invalid",
    "fatal: unable to access 'https://git.invalid/a.git/': Failed to connect": "curl -IL https://git.invalid/a.git/",
    'Get "https://127.0.0.1:9/v2/": dial tcp 127.0.0.1:9: connect: connection refused': "curl -IL https://127.0.0.1:9",
    "fatal: Authentication failed for 'https://git.invalid/project.git/'": "git ls-remote https://git.invalid/project",
    "fatal: no submodule mapping found in .gitmodules for path 'third_party/gloo'": "--cached third_party/gloo",
    "gzip: a.tar.gz: not in gzip format": "file a.tar.gz; head -c 300 a.tar.gz",
    "./app: symbol lookup error: ./app: undefined symbol: compute": "ldd -r app",
    "/usr/bin/ld:./libtokenizers.a: file format not recognized; treating as linker script": "200 libtokenizers.a",
    "/usr/bin/ld: a.o: file not recognized: file truncated": "rm a.o.",
    "/bin/sh: 1: ./tool: Exec format error": "file tool;",
    "g++: error: gone.f: No such file or directory": "git restore gone.f",
    "bash: ./configure: /bin/sh^M: bad interpreter: No such file or directory": r"sed -i 's/\r$//' configure",
    'run.sh: 2: Syntax error: "(" unexpected': "bash run.sh;",
    "bash: ./gen: /opt/nowhere/python4: bad interpreter: No such file or directory": "Install python4",
    "/bin/sh: 1: ./configure: Permission denied": "chmod +x configure",
    "PermissionError: [Errno 13] Permission denied: '/usr/local/bin/ninja'": "ls -ld /usr/local/bin/ninja",
    "OSError: [Errno 26] Text file busy: './protoc'": "fuser -v protoc",
    "bash: gperf: command not found": "apt install gperf",
    "/usr/bin/python3: No module named build": "pip install build ",
    "Project ERROR: Unknown module(s) in QT: svg": "apt-cache search svg",
    "error: failed to select a version for `ring`.": "cargo update -p ring",
    "ld: /lib/liba.so.1: error adding symbols: DSO missing from command line": "-la:",
}


@pytest.mark.parametrize("line", NAMED)
def test_a_name_of_the_line_stands_in_the_remedy(line: str) -> None:
    (match, *_) = scan(io.BytesIO(line.encode()), shipped_rules())
    assert NAMED[line] in match.remedy, match.remedy


def test_a_name_comes_from_the_rules_next_line_too() -> None:
    lines = (
        "error[E0463]: can't find crate for `std`\n  |\n  = help: consider downloading with `rustup target add a-b`\n"
    )
    (match,) = scan(io.BytesIO(lines.encode()), shipped_rules())
    assert (match.line, match.remedy) == (1, "rustup target add a-b.")


@in_batches(shipped_rules())
def test_no_word_in_capitals_is_left_where_a_line_does_not_have_the_name(rules: Sequence[Rule]) -> None:
    bare = re.compile(rf"(?<![\w$])(?:{'|'.join(kind.upper() for kind in KINDS)})(?![\w-])")
    for rule, example in ((one, example) for one in rules for example in one.examples):
        for match in scan(io.BytesIO(log_of(rule, example).encode()), shipped_rules()):
            own = match.rule
            said = {
                *bare.findall(f"{own.title} {own.why} {own.remedy} {example}"),
                "PACKAGE" * ("{built_" in own.remedy),
            }
            assert set(bare.findall(f"{match.title} {match.why} {match.remedy}")) <= said, example
