"""Options that several sub-commands share, and how their values are parsed. Only parses."""

from __future__ import annotations

import argparse
import re
from typing import Literal

from stoker.model.bounds import LEAST_MEMORY, MAX_LEVEL
from stoker.model.units import format_bytes, parse_size

LEVELS = f"a number from 1 to {MAX_LEVEL}, or auto"
"""The possible levels, in words."""

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)


def level_of(text: str) -> int | Literal["auto"] | None:
    """Return the level that a word means; None if it means none."""
    if text == "auto":
        return "auto"
    short = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_LEVEL))
    return int(text) if short and 1 <= int(text) <= MAX_LEVEL else None


def jobs(text: str) -> int | None:
    """Return the value of `-j`; None for an automatic level. Raises argparse.ArgumentTypeError."""
    level = level_of(text)
    if level is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a level; write {LEVELS}")
    return None if level == "auto" else level


def memory(text: str) -> int | float:
    """Return the value of `--memory`: bytes as an int, or a share of what there is (0 to 1) as a float.

    Raises argparse.ArgumentTypeError.
    """
    share = _SHARE.fullmatch(text.strip())
    try:
        value = float(share[1]) / 100 if share else parse_size(text)
    except ValueError as err:
        raise argparse.ArgumentTypeError(f"{err}, or 80%") from err
    except OverflowError as err:
        raise argparse.ArgumentTypeError(f"{text[:20]!r}… is more memory than there is") from err
    if value <= 0 or (share and value > 1):
        raise argparse.ArgumentTypeError(f"{text!r} leaves no build to run; write it as 12G, or from 1% to 100%")
    if not share and value < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(
            f"{text!r} is {format_bytes(value)}, too little to build anything; write a unit, as in 12G"
        )
    return value


def settings(parser: argparse.ArgumentParser) -> None:
    """`--set NAME=VALUE`, any number of times."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="a value for a profile's variable",
    )


def setting(text: str) -> tuple[str, str]:
    """Return a name and a value. Raises argparse.ArgumentTypeError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, as in --set arch=8.0")
    return name, value


def limits(parser: argparse.ArgumentParser) -> None:
    """`-j` and `--memory`."""
    parser.add_argument(
        "-j", "--jobs", type=jobs, metavar="auto|N", help="how many jobs may run (default: auto, by cores and memory)"
    )
    parser.add_argument(
        "--memory",
        type=memory,
        metavar="SIZE",
        help="how much memory the jobs may hold together, such as 12G or 80%% (default: all)",
    )


def screen(parser: argparse.ArgumentParser) -> None:
    """How a build is shown."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--plain", action="store_true", help="print plain lines: the build's output and progress messages"
    )
    group.add_argument("--json", action="store_true", help="print one JSON status per line, for programs")
    theme(parser)


def theme(parser: argparse.ArgumentParser) -> None:
    """`--theme` of what shows a full screen."""
    parser.add_argument("--theme", type=theme_name, help="a theme's name; 'stoker themes list' shows them")


def theme_name(text: str) -> str:
    """Return the value of `--theme`, which is refused without a terminal too. Raises CliError if there is none."""
    from stoker.cli.tui_options import check_theme

    check_theme(text)
    return text


def build_id(parser: argparse.ArgumentParser, *, running: bool = False) -> None:
    """The build that is meant; `running` if the command is of no use with an ended one."""
    default = "the running build" if running else "the running build, else the last one"
    parser.add_argument(
        "id", nargs="?", metavar="ID", help=f"a build's ID, its name or a prefix of either (default: {default})"
    )


def as_json(parser: argparse.ArgumentParser) -> None:
    """`--json` of what prints an answer."""
    parser.add_argument("--json", action="store_true", help="JSON, for programs")
