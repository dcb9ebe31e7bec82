"""The shipped rules: each finds its own examples, none is dangerous, and faults of a rule's file are reported."""

from __future__ import annotations

import io
import re
import runpy
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pytest

from stoker.config.config_error import ConfigError
from stoker.decide.recovery.death_messages import said_by
from stoker.diagnose.pattern_cost import MAX_SHIPPED, cost
from stoker.diagnose.rule import ACTIONS, Pattern, Rule, load_rules, shipped_rules
from stoker.diagnose.scan import scan
from support.pattern_branches import alternatives, ways
from support.rule_examples import in_batches, log_of, of_lines

RULES = shipped_rules()
EXAMPLES = [(rule, example) for rule in RULES for example in rule.examples]
MEMORY = {"compiler-killed", "linker-killed", "memory-refused", "step-killed", "fork-refused", "macos-kills-unsigned"}
"""The last names memory second: macOS ends programs with a damaged signature in the same way."""


def rules_in(text: str) -> list[str]:
    return [match.rule.id for match in scan(io.BytesIO(text.encode()), RULES)]


def test_a_rule_decides_about_rules_that_there_are() -> None:
    assert {name for rule in RULES for name in rule.decides} <= {rule.id for rule in RULES}


def test_evidence_says_nothing_without_what_it_decides() -> None:
    for rule in RULES:
        decided = [other for other in RULES if other.id in rule.beside]
        assert len(decided) == len(set(rule.beside)), rule.id
        for example in rule.examples if rule.beside else ():
            if not scan(io.BytesIO(example.encode()), decided):  # it may be of the same line
                assert rule.id not in rules_in(example), example


def test_there_are_many_rules_each_with_its_own_name() -> None:
    assert len(RULES) == len({rule.id for rule in RULES}) == len({rule.title for rule in RULES}) >= 30


@in_batches(RULES)
def test_a_rule_finds_its_examples_and_no_other_takes_them_for_its_own(rules: Sequence[Rule]) -> None:
    for rule, example in ((one, example) for one in rules for example in one.examples):
        assert rules_in(log_of(rule, example)) == [rule.id], example


@pytest.mark.long
@pytest.mark.parametrize(
    "wrapped",
    [
        "\x1b[1m\x1b[31m{}\x1b[0m",
        "Receiving objects:  42% (1/2)\r{}\r",
        "{}\r",
    ],
)
def test_wrappers_hide_no_failure(wrapped: str) -> None:
    one_line = "objects" in wrapped  # git's progress stands before a line, not before each of a message
    for rule, example in EXAMPLES:
        if not (one_line and of_lines(rule)):
            log = log_of(rule, example, wrapped, first_line_only=one_line)
            assert rules_in(log) == [rule.id], example


def test_a_rule_finds_what_a_compiler_says_without_a_locale() -> None:
    for rule, example in EXAMPLES:
        if "error: " in example and "‘" in example:
            plain = example.replace("‘", "'").replace("’", "'")
            assert rules_in(log_of(rule, plain)) == [rule.id], plain


@in_batches(RULES)
def test_every_alternative_of_a_pattern_has_an_example(rules: Sequence[Rule]) -> None:
    for rule in rules:
        for pattern in rule.patterns:
            for part in alternatives(pattern.expression):
                patterns = (Pattern(pattern.words, part),)
                alone = Rule(rule.id, "", "", "", patterns, (), "", rule.rank, rule.warning, continues=rule.continues)
                assert any(scan(io.BytesIO(e.encode()), [alone]) for e in rule.examples), f"{rule.id}: {part}"


def test_lines_that_a_pattern_would_match_hold_its_words() -> None:
    for rule in RULES:
        words = [pattern.words.decode() for pattern in rule.patterns]
        lines = (line for pattern in rule.patterns for line in ways(pattern.expression))
        assert [line for line in lines if not any(word in line for word in words)] == [], rule.id


def test_a_rule_says_all_that_a_person_needs() -> None:
    for rule in RULES:
        assert rule.title, rule.id
        assert not rule.title.endswith("."), rule.id
        assert rule.why.endswith("."), rule.id
        assert rule.remedy.endswith((".", "?", "{install}")), rule.id
        assert rule.source, rule.id


def test_what_the_governor_runs_again_for_memory_is_called_so_here() -> None:
    for _, line in EXAMPLES:
        if said_by(line) in ("killed", "exhausted"):
            assert set(rules_in(line)) <= MEMORY, line


def test_a_build_under_stoker_is_not_told_to_run_under_stoker() -> None:
    for rule in shipped_rules():
        assert ("stoker run" in rule.remedy) == bool(rule.governed), rule.id
        assert "stoker run" not in rule.governed, rule.id


def test_the_shipped_rules_have_no_fault_that_is_reported_in_a_persons_own() -> None:
    with resources.as_file(resources.files("stoker.diagnose.rules")) as folder:
        checked = [rule for path in sorted(folder.glob("*.yaml")) for rule in load_rules(path)]
    assert [(rule.id, rule.patterns) for rule in checked] == [(rule.id, rule.patterns) for rule in RULES]


def test_no_pattern_backtracks_without_bound() -> None:
    for rule in RULES:
        for pattern in rule.patterns:
            assert cost(pattern.expression) <= MAX_SHIPPED, f"{rule.id}: {pattern}"


GOOD = """
some-rule:
  title: A title
  why: Because.
  remedy: Do something.
  patterns:
    some words: '^some words$'
  examples: |
    some words
  source: here
"""


def test_a_rule_of_a_file(tmp_path: Path) -> None:
    (rule,) = load_rules(_file(tmp_path, GOOD))
    assert (rule.id, rule.title, rule.why, rule.rank, rule.warning, rule.action) == (
        "some-rule",
        "A title",
        "Because.",
        0,
        False,
        "none",
    )
    assert rule.patterns == (Pattern(b"some words", "^some words$"),)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("'^some words$'", "'some words.*$'", "repeats without bound"),
        ("'^some words$'", "'(a|b)+some words'", "repeats without bound"),
        ("'^some words$'", "'x{3,} some words'", "repeats without bound"),
        ("'^some words$'", "'some words('", "missing )"),
        ("some words: '", "abc: '", "4 characters or more"),
        ("  why: Because.\n", "", "has no 'why'"),
        ("  source: here\n", "", "has no 'source'"),
        ("some-rule:", "Some_rule:", "names are like"),
        ("  source: here", "  sauce: here\n  source: here", "did you mean 'source'"),
        ("  source: here", "  source: here\n  rank: high", "'rank' cannot be 'high'"),
        ("  source: here", "  source: here\n  action: rm", "'action' cannot be 'rm'"),
    ],
)
def test_a_faulty_rule_is_reported_with_its_file(old: str, new: str, fault: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=re.escape(fault)) as raised:
        load_rules(_file(tmp_path, GOOD.replace(old, new)))
    assert str(tmp_path) in str(raised.value)


def _file(folder: Path, text: str) -> Path:
    path = folder / "rules.yaml"
    path.write_text(text)
    return path


def test_the_table_of_rules_is_the_one_that_the_rules_make() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "diagnose.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(docs / "make_rule_table.py"))["page_with_table"](page)
    assert page == made, "run: python docs/make_rule_table.py"
    assert "⟦" not in made[made.index("| rule | what it finds |") :], "the marks of optional words are for rules"


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("action: reboot", "cannot be 'reboot'"),
        ("action: set-variable", "require each other"),
        ("variable: A_B=1", "require each other"),
        ("action: retry\n  variable: A_B=1", "require each other"),
        ("action: set-variable\n  variable: PATH=/tmp", "a rule may not set"),
        ("action: set-variable\n  variable: LD_PRELOAD=x.so", "a rule may not set"),
        ("action: set-variable\n  variable: 'A_B=$(rm -rf /)'", "a rule may not set"),
        ("action: set-variable\n  variable: A_B", "a rule may not set"),
        ("action: set-variable\n  variable: [A_B=1]", "is a list"),
    ],
)
def test_an_action_is_a_known_word_and_a_variable_harmless(tmp_path: Path, more: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        load_rules(_file(tmp_path, f"{GOOD}  {more}\n"))


def test_the_alternatives_of_a_pattern() -> None:
    assert alternatives(r"a(?:b|c)|[|]\|d") == ["a(?:b|c)", r"[|]\|d"]
    assert ways(r"a(?:b|c.)[de]?f|g") == ["abdf", "abdf", "ac~df", "abf", "g"]


@pytest.mark.parametrize(
    "line",
    [
        "autom4te: error: /usr/bin/m4 failed with exit status: 1",
        "configure.ac:3: error: possibly undefined macro: AC_PROG_LIBTOOL",
        "a.asm:1: error: parser: instruction expected",
        "setup.py:12: error: Incompatible types in assignment",
        "frob: error: no such thing",
    ],
)
def test_only_a_compiler_says_that_a_source_does_not_compile(line: str) -> None:
    assert "compile-error" not in rules_in(line)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("W: Download is performed unsandboxed as root as file. - pkgAcquire::Run (13: Permission denied)", ""),
        ("a.c:1:5: error: ISO C forbids zero-size array 'x' [-Wpedantic]", "compile-error"),
        ("/usr/bin/ld: vendor/a.o: file not recognized: file format not recognized", "wrong-file-format"),
        ("chmod: changing permissions of 'build/tool': Operation not permitted", "mode-not-changed"),
        ("make: *** [Makefile:2: tables.h] Segmentation fault", "crashed-in-step"),
        (
            "< content-type: text/html; charset=utf-8\nsha256sum: WARNING: 1 computed checksum did NOT match",
            "checksum-",
        ),
    ],
)
def test_a_rule_says_no_more_than_its_line_does(line: str, rule: str) -> None:
    assert [name[: len(rule) or None] for name in rules_in(line)] == ([rule] if rule else [])


@pytest.mark.parametrize("place", ["a.h:1:2", "x/a.c++:1:2", "a.C:1", "/src/include/vector:3:4", "<stdin>:1:2"])
def test_a_compiler_names_a_place_in_a_source(place: str) -> None:
    assert rules_in(f"{place}: error: expected ';' before 'int'") == ["compile-error"]


@pytest.mark.parametrize(
    "place",
    [
        "/usr/include/c++/12/vector:3:4",
        "/usr/include/bits/mathcalls.h(79)",
        "/usr/local/cuda/include/crt/host_config.h(3)",
        "/venv/lib/python3.12/site-packages/moon/include/a.h:3:4",
    ],
)
def test_nobody_is_told_to_mend_an_installed_file(place: str) -> None:
    (match,) = scan(io.BytesIO(f"{place}: error: expected ';' before 'int'".encode()), RULES)
    assert match.rule.id == "installed-header-rejected"
    assert "Leave that file as it is" in match.remedy


def test_a_variable_is_read(tmp_path: Path) -> None:
    more = "  action: set-variable\n  variable: CMAKE_POLICY_VERSION_MINIMUM=3.5\n"
    (rule,) = load_rules(_file(tmp_path, GOOD + more))
    assert (rule.action, rule.variable) == ("set-variable", "CMAKE_POLICY_VERSION_MINIMUM=3.5")


def test_every_action_stands_in_a_rule_and_in_the_documentation() -> None:
    used = {rule.action for rule in RULES}
    assert used == set(ACTIONS)
    page = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert [action for action in ACTIONS if f"`{action}`" not in page] == []


NAMING = GOOD.replace("'^some words$'", "'^some words: (?P<header>\\S{1,99})$'").replace(
    "remedy: Do something.", "remedy: 'apt-get install {header} in {} here.'"
)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("sys/x.h", "sys/x.h"),
        ("a.h;reboot", "HEADER"),
        ("$(reboot).h", "HEADER"),
        ("-rf.h", "HEADER"),
        ("../../x.h", "HEADER"),
        ("a'b.h", "HEADER"),
    ],
)
def test_a_remedy_repeats_only_names_that_look_like_their_kind(tmp_path: Path, line: str, shown: str) -> None:
    (match,) = scan(io.BytesIO(f"some words: {line}\n".encode()), load_rules(_file(tmp_path, NAMING)))
    assert match.remedy == f"apt-get install {shown} in {{}} here."


def test_a_name_in_a_remedy_is_one_that_a_pattern_finds(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stands for a name that a pattern finds"):
        load_rules(_file(tmp_path, NAMING.replace("?P<header>", "")))
    with pytest.raises(ConfigError, match="a group must be named after what it finds"):
        load_rules(_file(tmp_path, NAMING.replace("{header} ", "").replace("?P<header>", "?P<head>")))
