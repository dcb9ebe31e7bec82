"""`stoker package`: make a wheel that installs elsewhere. Cheap to import: what does the work is imported when it
runs."""

from __future__ import annotations

import argparse
import errno
import json
import shutil
import signal
import sys
from pathlib import Path

from stoker.cli.arguments import as_json
from stoker.cli.errors import FAILURE, CliError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker package`."""
    parser.add_argument("wheel", metavar="WHEEL", help="a wheel, or a quoted pattern: the newest match")
    parser.add_argument(
        "--mode",
        required=True,
        choices=("pypi", "bundle"),
        help="pypi: require NVIDIA's packages; bundle: copy their libraries into the wheel",
    )
    parser.add_argument(
        "-o", "--output", default="wheelhouse", metavar="DIR", help="folder of the new wheel (default: wheelhouse)"
    )
    parser.add_argument(
        "--plat", default="auto", metavar="auto|TAG", help="the platform tag (default: the lowest true one)"
    )
    parser.add_argument(
        "--level", type=int, choices=range(10), default=6, metavar="N", help="compression, 0 (stored) to 9 (default: 6)"
    )
    as_json(parser)


def run(args: argparse.Namespace) -> int:
    """Package, verify and print; the exit status is that of `stoker verify`. Raises CliError."""
    from dataclasses import asdict

    from stoker.cli.screen import in_colour
    from stoker.package.package_wheel import PackageRequest, package_wheel
    from stoker.package.packaging_error import PackagingError
    from stoker.show.package_text import render_packaged
    from stoker.show.report_text import WIDTH

    # As Ctrl-C: what was half written goes before the program does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    request = PackageRequest(_wheel(args.wheel), args.mode, Path(args.output), args.plat, args.level)
    progress = _Progress()
    try:
        packaged = package_wheel(request, progress)
    except PackagingError as err:
        raise CliError(str(err), FAILURE) from err
    except OSError as err:
        # Of a copy that does not fit, the file's name is that of what was copied.
        place = args.output if err.errno in _FULL else err.filename or args.output
        raise CliError(f"{place}: {err.strerror or err}; no wheel was written", FAILURE) from err
    finally:
        progress.end()
    if args.json:
        print(json.dumps(asdict(packaged), indent=2))
    else:
        width = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
        sys.stdout.write(render_packaged(packaged, width, colour=in_colour()))
    return packaged.verification.exit_status()


def _wheel(text: str) -> Path:
    """Return the wheel that is meant: of those that a pattern matches the newest. Raises CliError."""
    path = Path(text)
    if not path.is_file():
        from glob import glob

        found = [Path(name) for name in glob(text) if name.endswith(".whl")]
        if not found:
            raise CliError(f"{text!r}: there is no such wheel; name the file that the build wrote")
        path = max(found, key=lambda p: p.stat().st_mtime_ns)
    return path


class _Progress:
    """One line for a person at a terminal, rewritten at most once for each hundredth."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show what is being done, and how much of it is."""
        if not sys.stderr.isatty():
            return
        from stoker.model.text import clean

        share = f"{100 * done // total:3} % " if total else ""
        line = clean(f"stoker: {share}{what}")[: shutil.get_terminal_size().columns - 1]
        if line != self._shown:
            self._shown = line
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
