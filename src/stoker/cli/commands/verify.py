"""`stoker verify`: will what was built run, and where? Cheap to import: what does the work is imported when it runs."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from stoker.cli.errors import CliError

_LONGEST_WAIT = 86400.0
"""Seconds: a day."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker verify`."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a wheel, a binary, a folder or an installed package")
    parser.add_argument(
        "--arch-list", default="", metavar="LIST", help='the requested architectures, as in "8.0;9.0+PTX"'
    )
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="GPU",
        help="check against this GPU instead of this machine's: 9.0 or A100; may be repeated",
    )
    newest = parser.add_mutually_exclusive_group()
    newest.add_argument("--driver", default="", metavar="VERSION", help="check against this driver: 570.86")
    newest.add_argument(
        "--cuda", default="", metavar="VERSION", help="check against a driver that supports this CUDA version: 12.8"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1, not 0, if it runs only in part; for CI")
    parser.add_argument("--run", action="store_true", help="also run a small matrix product on every GPU here")
    parser.add_argument("--hashes", action="store_true", help="compare every hash in RECORD, even of large files")
    parser.add_argument(
        "--driver-wait",
        type=_seconds,
        metavar="SECONDS",
        help="how long the driver may take to list this machine's GPUs (default 60: it may have to wake them)",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("-q", "--quiet", action="store_true", help="print only the verdict, in one line")
    output.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Verify and print; the exit status, 0 to 2. Raises CliError (2)."""
    from dataclasses import asdict

    from stoker.cli.screen import in_colour
    from stoker.show.report_text import WIDTH, render, verdict_line
    from stoker.verify.archs import ArchError
    from stoker.verify.pipeline import VerifyRequest, verify

    request = VerifyRequest(
        args.paths,
        args.arch_list,
        args.device,
        args.run,
        driver=args.driver,
        driver_cuda=args.cuda,
        hashes=args.hashes,
    )
    if args.driver_wait is not None:
        request.driver_wait = args.driver_wait
    try:
        report = verify(request, (lambda _: None) if args.quiet else _narrate)
    except ArchError as err:
        raise CliError(str(err)) from err
    if args.json:
        print(json.dumps(asdict(report), indent=2))
    elif args.quiet:
        print(verdict_line(report))
    else:
        here = sys.stdout.isatty()
        width, height = shutil.get_terminal_size((WIDTH, 0)) if here else (WIDTH, 0)
        sys.stdout.write(render(report, width, height, colour=in_colour()))
    return report.exit_status(strict=args.strict)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_WAIT:  # false for nan too
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds; write it as 60")
    return seconds


def _narrate(what: str) -> None:
    """A large wheel takes seconds: say what is being read, to a person."""
    if sys.stderr.isatty():
        print(f"stoker: reading {what!r}", file=sys.stderr)
