"""Strips shells, `cd X &&`, launchers and wrappers from a command line, so that the programs that do the work remain.

Pure. Knows enough of the shell's grammar for what ninja, make and CMake write, and is fast: a large project has 100 MB
of command lines, for which shlex would need minutes.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from typing import NamedTuple

_MAX_DEPTH = 5
"""Shells inside shells that are followed; real lines have two."""

_SPECIAL = re.compile(r"[^\w\s./=+:,@%^~-]")
_TOKEN = re.compile(
    r"""\d*(?:>>|>\||>&|<<|<&|[<>])"""
    r"""|(?:[^\s'"\\;&|<>()]+|'[^']*'|"(?:[^"\\]|\\.)*"|\\.|['"])+"""
    r"""|&&|\|\||[;&|()\n]""",
    re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_DOUBLE_ESCAPE = re.compile(r'\\([$`"\\\n])')
_SEPARATORS = frozenset(("&&", "||", ";", "|", "&", "(", ")", "\n"))
_REDIRECT = re.compile(r"\d*(?:>>|>\||>&|<<|<&|[<>])")

_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
_LAUNCHERS = frozenset(
    [
        "ccache",
        "sccache",
        "distcc",
        "icecc",
        "buildcache",
        "env",
        "nice",
        "ionice",
        "time",
        "nohup",
        "stdbuf",
        "setsid",
        "timeout",
        "taskset",
        "chrt",
    ]
)
_BUILTINS = frozenset((":", "true", "exit", "set", "export", "unset", "umask", "test", "[", "fi", "done", "}"))
_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{"))
"""Words in front of a command."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NUMBER = re.compile(r"[\d.,-]+[smhd]?")


class SimpleCommand(NamedTuple):
    """One program with its arguments, and the directory that a preceding `cd` led to ("" if there was none)."""

    argv: tuple[str, ...]
    directory: str


def split_commands(text: str) -> list[tuple[str, ...]]:
    """The simple commands of a shell line, without redirections. Expansions are left as they are written."""
    if not _SPECIAL.search(text) and "\n" not in text:
        words = tuple(text.split())
        return [words] if words else []
    text = text.replace("\\\n", "")
    commands: list[tuple[str, ...]] = []
    words_now: list[str] = []
    skip_target = False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _SEPARATORS:
            if words_now:
                commands.append(tuple(words_now))
            words_now, skip_target = [], False
        elif _REDIRECT.fullmatch(token):
            skip_target = True
        elif skip_target:
            skip_target = False
        else:
            words_now.append(_unquote(token))
    if words_now:
        commands.append(tuple(words_now))
    return commands


def simple_commands(argv: Sequence[str]) -> list[SimpleCommand]:
    """Return what a process with these arguments runs, without launchers and shells; built-ins of the shell are left
    out."""
    return _unwrap(tuple(argv), "", _MAX_DEPTH)


def last_argv(text: str) -> tuple[str, ...]:
    """Return the arguments that the shell's own process shows once it runs the last command of `text`.

    A shell with `-c` replaces itself by the last command (dash and bash do), unless that is a built-in.
    """
    commands = split_commands(text)
    last = commands[-1] if commands else ()
    while last and _ASSIGNMENT.match(last[0]):
        last = last[1:]
    return () if not last or last[0] in _BUILTINS | _KEYWORDS or last[0] == "cd" else last


def shell_text(argv: Sequence[str]) -> str | None:
    """Return the TEXT of `sh -c TEXT`, None if this is something else."""
    if not argv or os.path.basename(argv[0]) not in _SHELLS:
        return None
    for index, arg in enumerate(argv[1:-1], start=1):
        if arg.startswith("-") and not arg.startswith("--") and "c" in arg:
            return argv[index + 1]
        if not arg.startswith("-") and argv[index - 1] != "-o":
            return None
    return None


def _unquote(word: str) -> str:
    if not ("'" in word or '"' in word or "\\" in word):
        return word
    return _QUOTED.sub(_unquote_piece, word)


def _unquote_piece(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[1]
    if match[2] is not None:
        return _DOUBLE_ESCAPE.sub(r"\1", match[2])
    return match[3]


def _unwrap(argv: tuple[str, ...], directory: str, depth: int) -> list[SimpleCommand]:
    while argv and (argv[0] in _KEYWORDS or _ASSIGNMENT.match(argv[0])):
        argv = argv[1:]
    if not argv or depth == 0:
        return []
    text = shell_text(argv)
    if text is not None:
        return _unwrap_text(text, directory, depth - 1)
    inner = _without_launcher(argv)
    if inner is not None:
        return _unwrap(inner, directory, depth - 1)
    return [] if argv[0] in _BUILTINS else [SimpleCommand(argv, directory)]


def _unwrap_text(text: str, directory: str, depth: int) -> list[SimpleCommand]:
    found: list[SimpleCommand] = []
    for command in split_commands(text):
        if command[0] == "cd" and len(command) > 1:
            directory = os.path.normpath(os.path.join(directory, command[-1]))
        else:
            found += _unwrap(command, directory, depth)
    return found


def _without_launcher(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the command that a launcher runs, None if this is not a launcher."""
    program = os.path.basename(argv[0])
    if program in _SHELLS:
        return _after_options(argv[1:]) or None
    if program in _LAUNCHERS:
        return _after_options(argv[1:])
    if program == "libtool":
        mode = next((i for i, a in enumerate(argv) if a.startswith("--mode=")), None)
        return None if mode is None else _after_options(argv[mode + 1 :])
    if program.startswith("cmake") and argv[1:2] == ("-E",) and len(argv) > 3:
        if argv[2] in ("env", "time"):
            return _after_options(argv[3:])
        if argv[2] == "__run_co_compile" and "--" in argv:
            return argv[argv.index("--") + 1 :]
    return None


def _after_options(args: tuple[str, ...]) -> tuple[str, ...]:
    """Skip a launcher's options, their numbers, and NAME=VALUE words."""
    for index, arg in enumerate(args):
        if not (arg.startswith("-") or _ASSIGNMENT.match(arg) or _NUMBER.fullmatch(arg)):
            return args[index:]
    return ()
