"""The table of sub-commands. Unaware of what they do: each lives in a module that is imported when it is called."""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from stoker import __version__
from stoker.cli import streams
from stoker.cli.errors import FAILURE, USAGE, CliError, status_of
from stoker.config.paths import UnsafeFolderError
from stoker.contract.strict_json import ContractError
from stoker.launch.refusals import LaunchError
from stoker.model.text import clean

DESCRIPTION = """\
Run a long build within the machine's memory; watch and govern it from any terminal.
Closing the terminal does not affect it."""

EPILOG = """\
stoker run -- ninja -C build      run and watch a build; q detaches, the build continues
stoker attach                     reattach, from any login
stoker jobs 12                    run 12 jobs at once; 'auto': as many as cores and memory allow
stoker demo                       a small real build, generated on the spot
"""

UNMAPPED = "failed to map segment"
"""What the C library says of a shared object for which the process may have no more memory (glibc's elf/dl-load.c)."""


_LEFT_ALONE = {"--", "-h", "--help"}
"""Words with which the order is kept: the first ends the options, and what prints help wants no half of a parser."""


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors, and with options and other words in any order."""

    _intermixed = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse options first and the other words then, unless one of these ends the options."""
        rest = any(a.nargs in (argparse.PARSER, argparse.REMAINDER) for a in self._get_positional_actions())
        if self._intermixed or rest or args is None or _LEFT_ALONE & set(args):
            return super().parse_known_args(args, namespace)
        self._intermixed = True  # it calls this method for either half
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False

    @property
    def options(self) -> list[str]:
        """What begins with a dash and is known."""
        return list(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line that says what is wrong and what to do."""
        raise CliError(f"{message}; see '{self.prog} --help'")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return the exit status."""
    streams.fill()
    words = list(sys.argv[1:] if argv is None else argv) or _without_words()
    try:
        _check_command(words)
        args = parsed(words)
        _enable_gc()
        return _handled(args)
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


def _enable_gc() -> None:
    """Search for garbage from now on, not among what has been loaded so far, if the entry point switched that off."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


OTHER_NAMES = {"--level": ("-j",)}
"""Options that people try because the screens use the word, and what the option is called."""


def _without_words() -> list[str]:
    """Return what a bare `stoker` means: the builds, before a person at a terminal, else help."""
    from stoker.cli.screen import has_size, running_in_terminal

    return ["home"] if running_in_terminal() and has_size() else ["help"]


def _scarce(err: Exception) -> str:
    """Return what the machine has too little of, with the remedy; empty where that is not the matter."""
    if isinstance(err, MemoryError) or (isinstance(err, ImportError) and UNMAPPED in str(err)):
        return "out of memory; raise the limit (ulimit -v) or free some; a build that was started goes on"
    if isinstance(err, BlockingIOError) or str(err) == "can't start new thread":
        return (
            "no process or thread can be started; raise the limit (ulimit -u and -v, pids.max) or end some processes; "
            "a build that was started goes on"
        )
    return ""


def _handled(args: argparse.Namespace) -> int:
    """Run the sub-command; of files that cannot be read it says so in one line."""
    from stoker.record.journal_error import JournalError

    try:
        return int(_module(args.command).run(args))
    except JournalError as err:
        raise CliError(str(err), FAILURE) from err
    except PermissionError as err:
        raise CliError(f"{err.filename}: {err.strerror}; is HOME, or XDG_STATE_HOME, yours?", FAILURE) from err
    except (BrokenPipeError, BlockingIOError):
        raise
    except OSError as err:
        streams.give_up_output()
        raise CliError(f"{err.filename or 'writing the answer'}: {err.strerror or err}", FAILURE) from err


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; what a sub-command does not know is an error that names that sub-command's own help."""
    args, unknown = build_parser(words[0] if words else "").parse_known_args(words)
    if unknown:
        raise CliError(_unknown(unknown, args.command))
    args.given = list(words)
    return args


def _unknown(words: Sequence[str], command: str) -> str:
    """Return what a sub-command says of words that it does not know: of options, or which is too many."""
    options = [word for word in words if word.startswith("-")]
    if options:
        parser = Parser()
        _module(command).add_arguments(parser)
        option = options[0].partition("=")[0]
        meant = [known for known in OTHER_NAMES.get(option, ()) if known in parser.options]
        near = meant or difflib.get_close_matches(option, set(parser.options) - _LEFT_ALONE, 1)
        hint = f"did you mean {near[0]}?" if near else f"see 'stoker {command} --help'"
        return f"{command} has no option {options[0]}; {hint}"
    return f"{command}: {words[0]!r} is one word too many; see 'stoker {command} --help'"


def _check_command(words: Sequence[str]) -> None:
    """An unknown sub-command gets the nearest one as a remedy, which argparse does not offer on 3.11."""
    if not words or words[0].startswith("-") or words[0] in COMMANDS:
        return
    if words[0] == "resume":
        text = "'stoker unpause' ends a pause, 'stoker run --resume' resumes a build that failed or was stopped"
        raise CliError(f"no command 'resume'; {text}", USAGE)
    near = difflib.get_close_matches(words[0], COMMANDS, 1)
    hint = f"did you mean 'stoker {near[0]}'?" if near else f"to watch a command: stoker run -- {words[0]} ..."
    raise CliError(f"no command {words[0]!r}; {hint}", USAGE)


def build_parser(*chosen: str) -> argparse.ArgumentParser:
    """Make the parser of all sub-commands; only the chosen ones get their arguments, which may need modules."""
    parser = Parser(
        prog="stoker",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"stoker {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_text in COMMANDS.items():
        sub = subparsers.add_parser(
            name, help=help_text, description=help_text[:1].upper() + help_text[1:], allow_abbrev=False
        )
        if name in chosen:
            _module(name).add_arguments(sub)
    return parser


def _module(name: str) -> Any:
    """Import the module of a sub-command."""
    return importlib.import_module(f"stoker.cli.commands.{name}")


COMMANDS = {
    "home": "show all builds on one screen; 'stoker' alone does the same",
    "run": "run a build and watch it",
    "demo": "run a small generated build whose jobs compete for memory",
    "attach": "watch a running or ended build",
    "ls": "list the builds",
    "status": "show what a build is doing",
    "log": "print a build's output",
    "events": "print what happened in a build",
    "jobs": "set or print how many jobs may run",
    "pause": "start nothing new, or freeze everything",
    "unpause": "end a pause: start jobs again, and continue frozen ones",
    "freeze": "freeze one job until it is thawed",
    "thaw": "thaw one frozen job, or start one from the deck",
    "stop": "end a build and everything it started",
    "replay": "play back a recorded build in the same screens",
    "verify": "check whether binaries will run, and on which GPUs",
    "package": "make a wheel that installs elsewhere, with or without its libraries inside",
    "doctor": "check whether a build can succeed here, before it runs",
    "diagnose": "find out why a build failed, and what to do",
    "report": "write a recorded build as one HTML page",
    "compare": "compare two builds, or several runs of each",
    "export": "export a recorded build: for Perfetto, spreadsheets, programs",
    "simulate": "simulate a build with any policy, memory and number of cores",
    "history": "show the builds of this folder, and what their jobs took; --all: of all folders",
    "profiles": "list, show or check profiles, which describe how to build projects",
    "rules": "check your own rules for diagnose, or try all rules on a log",
    "themes": "list or check the colour themes",
    "completion": "print shell completions",
    "help": "show help for a command; --man prints the manual page",
    "version": "print the version",
}
"""What there is, with a line of help. Each is a module of `cli.commands` with `add_arguments` and `run`."""
