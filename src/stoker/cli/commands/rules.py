"""`stoker rules`: what is wrong with rules of one's own, and what all rules find in a log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from stoker.cli.errors import FAILURE, USAGE, CliError
from stoker.config.config_error import ConfigError
from stoker.diagnose.log_files import unpacked
from stoker.diagnose.own_rules import load_own_rules, own_rule_files, rules_with
from stoker.diagnose.rule import Rule, shipped_rules
from stoker.diagnose.scan import scan
from stoker.model.text import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker rules`."""
    actions = parser.add_subparsers(dest="action", metavar="check|try", required=True)
    check = actions.add_parser("check", help="report errors in rule files, and whether rules find their examples")
    check.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all of your own")
    trying = actions.add_parser(
        "try", help="list each rule that a log matches, with its first line", allow_abbrev=False
    )
    trying.add_argument("log", metavar="LOG|-")
    add_rules(trying)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """The option `--rules`."""
    parser.add_argument(
        "--rules",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a file with your own rules, which go before all others",
    )


def rules_or_fail(files: Sequence[Path]) -> tuple[Rule, ...]:
    """Return all rules, or fail with status 2 in one line that names the file."""
    try:
        return rules_with(files)
    except ConfigError as err:
        raise CliError(f"{err}; 'stoker rules check' looks at your own", USAGE) from err


def run(args: argparse.Namespace) -> int:
    """Check files (1: a fault), or try a log (1: no rule finds anything; 2: it cannot be read)."""
    return _check(args.files or own_rule_files()) if args.action == "check" else _try(args.log, args.rules)


def _check(files: Sequence[Path]) -> int:
    if not files:
        print("stoker: you have no rules of your own; write one to ~/.config/stoker/rules/NAME.yaml", file=sys.stderr)
    status = 0
    for file in files:
        try:
            rules = load_own_rules(file)
        except ConfigError as err:
            print(err)
            status = FAILURE
            continue
        faults = [fault for rule in rules for fault in _faults(rule)]
        print("".join(f"{clean(str(file))}: {fault}\n" for fault in faults) or f"{clean(str(file))}: {len(rules)} good")
        status = FAILURE if faults else status
    return status


def _faults(rule: Rule) -> list[str]:
    """Return which examples the rule does not find, and which are a shipped rule's as well."""
    faults = []
    for example in rule.examples:
        shipped = [other for other in shipped_rules() if other.id != rule.id]
        beside = next((other.examples[0] for other in shipped if other.id in rule.beside), "")
        found = [match.rule.id for match in scan(BytesIO(f"{example}\n{beside}".encode()), [rule, *shipped])]
        others = [name for name in found if name != rule.id]
        if rule.id not in found:
            instead = f", but {' and '.join(others)} does" if others else ""
            faults.append(f"{rule.id!r} does not find its example {clean(example.strip(), 80)!r}{instead}")
    return faults


def _try(log: str, files: Sequence[Path]) -> int:
    rules = rules_or_fail(files)
    try:
        with sys.stdin.buffer if log == "-" else Path(log).open("rb") as file:
            matches = scan(unpacked(file), rules)
    except OSError as err:
        raise CliError(f"{clean(log)}: {err.strerror or 'it cannot be read'}; name a log, or -", USAGE) from err
    for match in matches:
        times = f" and {match.count - 1} more" if match.count > 1 else ""
        print(f"{match.rule.id}  line {match.line}{times}\n    {clean(match.text, 300)}\n    {match.remedy}")
    if not matches:
        print(f"{clean(log)}: no rule finds anything in it")
    return 0 if matches else FAILURE
