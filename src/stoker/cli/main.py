"""The table of sub-commands. Unaware of what they do: each lives in a module that is imported when it is called."""

from __future__ import annotations

import argparse
import difflib
import importlib
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from stoker import __version__
from stoker.cli import streams
from stoker.cli.errors import FAILURE, USAGE, CliError, status_of
from stoker.config.paths import UnsafeFolderError
from stoker.contract.strict_json import ContractError
from stoker.launch.refusals import LaunchError
from stoker.model.text import clean
from stoker.model.units import format_bytes

DESCRIPTION = """\
Run a long build within the machine's memory; watch and govern it from any terminal.
Nothing that happens to the terminal touches it."""

EPILOG = """\
stoker run -- ninja -C build      watch a build; q detaches, the build goes on
stoker attach                     look at it again, from any login
stoker jobs 12                    let 12 of its compilers run at once; 'auto' for what cores and memory allow
stoker demo                       a small real build, made on the spot
"""

LEAST_ADDRESS_SPACE = 64 * 1024 * 1024
"""Bytes of address space (ulimit -v) below which no command got to its work, on Python 3.11. Where exactly it breaks
off, and in what words, is chance."""

UNMAPPED = "failed to map segment"
"""What the C library says of a shared object for which the process may have no more memory (glibc's elf/dl-load.c)."""


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line that says what is wrong and what to do."""
        raise CliError(f"{message}; see '{self.prog} --help'")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return the exit status."""
    streams.fill()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        _check_address_space()
        _check_command(words)
        return _handled(_parsed(words))
    except CliError as err:
        print(f"stoker: {clean(str(err))}", file=sys.stderr)
        return err.status
    except LaunchError as err:
        print(f"stoker: {clean(str(err))}", file=sys.stderr)
        return status_of(err)
    except (UnsafeFolderError, ContractError) as err:
        print(f"stoker: {clean(str(err))}", file=sys.stderr)
        return FAILURE
    except (MemoryError, ImportError, RuntimeError, BlockingIOError) as err:
        if not (scarce := _scarce(err)):
            raise
        print(f"stoker: {scarce}", file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our stdout went away (`stoker ls | head`); nothing is wrong, and nothing more can be said.
        sys.stderr.close()
        return 141


def _check_address_space() -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        raise CliError(
            f"the address space is limited to {format_bytes(limit)} (ulimit -v), too little to run at all; raise that "
            "limit; a build that was started goes on",
            FAILURE,
        )


def _scarce(err: Exception) -> str:
    """What the machine has too little of, with the remedy; empty where that is not the matter."""
    if isinstance(err, MemoryError) or (isinstance(err, ImportError) and UNMAPPED in str(err)):
        return "no memory is to be had; raise the limit (ulimit -v) or free some; a build that was started goes on"
    if isinstance(err, BlockingIOError) or str(err) == "can't start new thread":
        return (
            "no process or thread is to be had; raise the limit (ulimit -u and -v, pids.max) or end some processes; "
            "a build that was started goes on"
        )
    return ""


def _handled(args: argparse.Namespace) -> int:
    """What the sub-command says; of files that cannot be read it says so in one line."""
    from stoker.record.journal import JournalError

    handler = _load(args.handler)
    try:
        return int(handler(args))
    except JournalError as err:
        raise CliError(str(err), FAILURE) from err
    except PermissionError as err:
        raise CliError(f"{err.filename}: {err.strerror}; is HOME, or XDG_STATE_HOME, yours?", FAILURE) from err
    except (BrokenPipeError, BlockingIOError):
        raise
    except OSError as err:
        streams.give_up_output()
        raise CliError(f"{err.filename or 'writing the answer'}: {err.strerror or err}", FAILURE) from err


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; what a sub-command does not know is an error that names that sub-command's own help."""
    args, unknown = build_parser(words[0] if words else "").parse_known_args(words)
    if unknown:
        raise CliError(f"unrecognized arguments: {' '.join(unknown)}; see 'stoker {args.command} --help'")
    return args


def _check_command(words: Sequence[str]) -> None:
    """An unknown sub-command gets the nearest one as a remedy, which argparse does not offer on 3.11."""
    if not words or words[0].startswith("-") or words[0] in COMMANDS:
        return
    near = difflib.get_close_matches(words[0], COMMANDS, 1)
    hint = f"did you mean 'stoker {near[0]}'?" if near else f"to watch a command: stoker run -- {words[0]} ..."
    raise CliError(f"no command {words[0]!r}; {hint}", USAGE)


def build_parser(chosen: str) -> argparse.ArgumentParser:
    """The parser of all sub-commands; only the chosen one gets its arguments, which may need modules of its own."""
    parser = Parser(
        prog="stoker",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"stoker {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (help_text, add_arguments, handler) in COMMANDS.items():
        sub = subparsers.add_parser(
            name, help=help_text, description=help_text[:1].upper() + help_text[1:], allow_abbrev=False
        )
        if name == chosen:
            (_load(add_arguments) if isinstance(add_arguments, str) else add_arguments)(sub)
        sub.set_defaults(handler=handler)
    return parser


def _run(parser: argparse.ArgumentParser) -> None:
    from stoker.cli.limits import settings

    _screen(parser)
    _limits(parser)
    parser.add_argument("--detach", action="store_true", help="start the build, print its ID, and return")
    parser.add_argument("-p", "--profile", metavar="NAME", help="run the steps of a profile ('stoker profiles list')")
    settings(parser)
    parser.add_argument(
        "--no-doctor", action="store_true", help="with -p: begin even if 'stoker doctor' says that it cannot succeed"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the last build of this folder, or of -p, or with build ID, at the step where it stopped",
    )
    parser.add_argument("--remedy", action="store_true", help="with --resume: do first what the diagnosis offers")
    parser.add_argument(
        "--again", action="store_true", help="start it even if the same command runs in this folder already"
    )
    parser.add_argument("--name", help="what to call the build (default: the folder's name)")
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="COMMAND...", help="the build, after --; after -p: more for it"
    )


def _demo(parser: argparse.ArgumentParser) -> None:
    _screen(parser)
    _limits(parser)
    parser.add_argument("--seconds", type=float, default=40.0, help="about how long it shall take (default: 40)")
    parser.add_argument("--fail", action="store_true", help="with one real compile error in it")


def _limits(parser: argparse.ArgumentParser) -> None:
    from stoker.cli.limits import jobs, memory

    parser.add_argument(
        "-j", "--jobs", type=jobs, metavar="auto|N", help="how many jobs may run (default: auto, by cores and memory)"
    )
    parser.add_argument(
        "--memory", type=memory, metavar="SIZE", help="what the jobs may hold together, as 12G or 80%% (default: all)"
    )


def _screen(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--plain", action="store_true", help="plain lines: the build's output and a narration")
    group.add_argument("--json", action="store_true", help="one JSON status a line, for programs")
    parser.add_argument("--theme", help="a theme's name; 'stoker themes list' shows them")


def _id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="a build's ID, name or the start of one (default: the live one)"
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def _attach(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    _screen(parser)
    parser.add_argument("--read-only", action="store_true", help="only look: no key can touch the build")


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID|FILE", help="a build's ID, or a journal")
    _screen(parser)
    parser.add_argument("--speed", type=float, default=10.0, help="times as fast as it was (default: 10)")


def _id_json(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    _json(parser)


def _log(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it grows, until the build ends")


def _events(parser: argparse.ArgumentParser) -> None:
    _log(parser)
    _json(parser)


def _stop(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("--force", action="store_true", help="SIGKILL at once instead of SIGTERM first")


def _themes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("list", "check"), metavar="list|check", help="show the themes, or check them for errors"
    )
    # A default, or argparse would name it among what is required.
    parser.add_argument("files", nargs="*", default=[], metavar="FILE", help="theme files to check (default: all)")


def _load(name: str) -> Callable[..., Any]:
    """The function behind "module:function"."""
    module, _, function = name.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return loaded


COMMANDS: dict[str, tuple[str, str | Callable[[argparse.ArgumentParser], None], str]] = {
    "run": ("run a build and watch it", _run, "stoker.cli.run:run"),
    "demo": ("a small real build that fights for memory, made on the spot", _demo, "stoker.cli.demo:demo"),
    "attach": ("watch a build that runs or has ended", _attach, "stoker.cli.view:attach"),
    "ls": ("list the builds", _json, "stoker.cli.query:ls"),
    "status": ("what a build is doing", _id_json, "stoker.cli.query:status"),
    "log": ("a build's output", _log, "stoker.cli.query:log"),
    "events": ("a build's journal", _events, "stoker.cli.query:events"),
    "jobs": ("how many jobs may run: set it, or print it", "stoker.cli.govern:add_jobs", "stoker.cli.govern:jobs"),
    "pause": ("start nothing new, or freeze everything", "stoker.cli.govern:add_pause", "stoker.cli.govern:pause"),
    "resume": ("go on after a pause", "stoker.cli.govern:add_resume", "stoker.cli.govern:resume"),
    "stop": ("end a build and everything it started", _stop, "stoker.cli.query:stop"),
    "replay": ("play a recorded build in the same screens", _replay, "stoker.cli.view:replay"),
    "verify": (
        "prove that binaries will run, and on which GPU",
        "stoker.cli.verify:add_arguments",
        "stoker.cli.verify:run",
    ),
    "doctor": (
        "say whether a build can succeed here, before it runs",
        "stoker.cli.doctor:add_arguments",
        "stoker.cli.doctor:run",
    ),
    "diagnose": (
        "say why a build failed, and what to do",
        "stoker.cli.diagnose:add_arguments",
        "stoker.cli.diagnose:run",
    ),
    "simulate": (
        "run a build on paper: any policy, any memory, any cores",
        "stoker.cli.simulate:add_arguments",
        "stoker.cli.simulate:run",
    ),
    "history": ("what jobs took in earlier builds", "stoker.cli.history:add_arguments", "stoker.cli.history:run"),
    "profiles": (
        "how projects are built: list, show or check",
        "stoker.cli.profiles:add_arguments",
        "stoker.cli.profiles:run",
    ),
    "themes": ("list or check the colour themes", _themes, "stoker.cli.themes:themes"),
}
