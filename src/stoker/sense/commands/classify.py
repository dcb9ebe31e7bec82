"""Command line -> what kind of work it is, its output, and a short description for a person. Pure.

Unaware of processes and files: response files are not opened, because the program's name and its own arguments are
enough.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from typing import NamedTuple

from stoker.model.tool import Tool
from stoker.sense.commands.shell import SimpleCommand, shell_text, simple_commands

__all__ = ["Work", "classify", "classify_text", "compiles_c", "describe", "is_helper", "link_script", "programs_of"]

MAX_DESCRIPTION = 100
"""Characters of a description: a line of a screen, with room for a name before it."""

_COMPILER = re.compile(
    r"(?:.*-)?(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|clang-cl|gfortran|f95|f77|flang|icx|icpx|icc|icpc|ifx|nvc|nvc\+\+"
    r"|nvfortran|hipcc|amdclang|amdclang\+\+|dpcpp|emcc|em\+\+|xlc|xlc\+\+|armclang|armclang\+\+)(?:-\d[\d.]*)?"
)
_ARCHIVER = re.compile(r"(?:.*-)?(?:ar|ranlib)(?:-\d[\d.]*)?")
_LINKER = re.compile(
    r"(?:.*-)?(?:ld|ld\.\w+|lld|ld64\.lld|wasm-ld|mold|wild|nvlink|collect2|lto-wrapper|lto1)(?:-\d[\d.]*)?"
)
_PASSES: dict[str, Tool] = {
    "cc1": "cxx",
    "cc1plus": "cxx",
    "cc1obj": "cxx",
    "f951": "cxx",
    "as": "cxx",
    "cicc": "nvcc",
    "ptxas": "nvcc",
    "cudafe++": "nvcc",
    "fatbinary": "nvcc",
}
"""The programs that compiler drivers start themselves."""

_COMPILE_ONLY = frozenset(
    [
        "-c",
        "-S",
        "-E",
        "-M",
        "-MM",
        "-fsyntax-only",
        "--compile",
        "--preprocess",
        "-dc",
        "-dw",
        "--device-c",
        "--device-w",
        "-cubin",
        "--cubin",
        "-ptx",
        "--ptx",
        "-fatbin",
        "--fatbin",
        "-optix-ir",
        "--optix-ir",
    ]
)
SOURCES = (
    *(".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cu", ".hip", ".m", ".mm", ".s", ".S", ".i", ".ii", ".cppm", ".ixx"),
    *(".f", ".for", ".f90", ".F", ".F90", ".f95", ".f03", ".f08"),
)
_C_SOURCES = (".c", ".i", ".s", ".S")
_C_LANGUAGES = ("c", "cpp-output", "assembler", "assembler-with-cpp")
"""The sources that C compilers take for C and assembler, and the names that -x has for them."""

_TAKES_A_WORD = frozenset(
    [
        "-o",
        "-x",
        "-I",
        "-L",
        "-D",
        "-U",
        "-MF",
        "-MT",
        "-MQ",
        "-T",
        "-u",
        "-z",
        "-Xlinker",
        "-Xcompiler",
        "-Xptxas",
        "-Xcudafe",
        "-Xfatbin",
        "-Xassembler",
        "-Xpreprocessor",
        "-include",
        "-imacros",
        "-isystem",
        "-iquote",
        "-idirafter",
        "-isysroot",
        "-arch",
        "-gencode",
        "-ccbin",
        "--compiler-bindir",
        "-soname",
        "-Xclang",
        "-mllvm",
        "-target",
        "--param",
        "-aux-info",
        "-odir",
        "--threads",
        "-t",
        "-std",
        "--generate-code",
        "--gpu-architecture",
    ]
)
"""Options whose next word is not an input file."""

_OTHER_O = ("-odir", "-optf", "-openmp", "-object")
"""Options that start with -o and name no output."""

_HELPERS = frozenset(("cat", "echo", "printf", "mkdir", "rmdir", "rm", "touch", "ln", "test"))
_CMAKE_HELPERS = frozenset(
    [
        *(
            "cmake_echo_color",
            "cmake_progress_start",
            "cmake_progress_report",
            "cmake_depends",
            "cmake_symlink_library",
        ),
        *("cmake_symlink_executable", "cmake_copy_f90_mod", "cmake_transform_depfile", "cmake_unimplemented_variable"),
        *("echo", "echo_append", "touch", "touch_nocreate", "make_directory", "remove", "remove_directory", "rm"),
        *("copy", "copy_if_different", "copy_directory", "copy_directory_if_different", "create_symlink"),
        *("create_hardlink", "rename", "compare_files", "cat", "true", "false", "environment", "capabilities"),
    ]
)
"""What `cmake -E` does besides real work: neither links (cmake_link_script) nor generates (cmake_autogen,
cmake_autorcc)."""

_COMPANIONS = _HELPERS | frozenset(
    [
        *("mv", "cp", "sed", "grep", "cmp", "chmod", "install", "true", "false", "basename", "dirname", "expr", "date"),
        *("install_name_tool", "codesign", "fixdep", "objtool"),
    ]
)
"""Programs that recipes run before or after a compiler, and that need next to nothing beside it."""

_LIGHT = _COMPANIONS - {"codesign", "fixdep", "install_name_tool", "objtool"}
"""Those that hold next to nothing however large the files are."""

_BINUTIL = re.compile(r"(?:.*-)?(?:strip|objcopy|nm|readelf|size)(?:-\d[\d.]*)?")
"""More of them, which may have the target in front of their names."""

_WEIGHT: dict[Tool, int] = {"nvcc": 4, "cxx": 3, "link": 2, "archive": 1, "other": 0}
"""Of several commands in one shell line, the heaviest names the job."""


class Work(NamedTuple):
    """What a command does and the file it makes; None if its arguments do not show it."""

    tool: Tool
    output: str | None


def classify(argv: Sequence[str]) -> Work:
    """Return the work of a process with these arguments, looking through shells, launchers and `cd X &&`."""
    return _heaviest(simple_commands(argv))


def classify_text(command: str) -> Work:
    """Return the work of a shell command line, as ninja and make pass it to sh."""
    return classify(("sh", "-c", command))


def compiles_c(argv: Sequence[str]) -> bool:
    """Say whether a command line compiles C or assembler: its output may have a name that does not show it."""
    compilers = (command.argv for command in simple_commands(argv) if _work(command).tool == "cxx")
    program, *args = next(compilers, ("",))
    if "++" in os.path.basename(program):
        return False  # a driver for C++ takes any source for C++
    if (language := _language(args)) is not None:
        return language in _C_LANGUAGES
    sources = [i for i in _inputs(args) if i.endswith(SOURCES)]
    return bool(sources) and all(source.endswith(_C_SOURCES) for source in sources)


def programs_of(argv: Sequence[str]) -> frozenset[str]:
    """Return the base names of all programs that a command line starts, as far as it shows."""
    return frozenset(os.path.basename(c.argv[0]) for c in simple_commands(argv))


def runs_others(argv: Sequence[str]) -> bool:
    """Say whether a command line runs another program beside a compiler, a linker or an archiver, such as a script:
    the job then needs what that program needs, which the tool does not show."""
    commands = simple_commands(argv)
    works = [_work(command).tool for command in commands]
    others = (command.argv for command, tool in zip(commands, works, strict=True) if tool == "other")
    return any(tool != "other" for tool in works) and any(not _is_companion(other) for other in others)


def _is_companion(argv: Sequence[str]) -> bool:
    program = os.path.basename(argv[0])
    return program in _COMPANIONS or _BINUTIL.fullmatch(program) is not None or _helps(argv)


def is_light(argv: Sequence[str]) -> bool:
    """Say whether a job only copies, links, edits or removes files, so that it holds next to nothing."""
    commands = simple_commands(argv)
    if not commands:
        return shell_text(argv) is not None
    programs = ((os.path.basename(command.argv[0]), command.argv) for command in commands)
    return all(
        (program in _LIGHT or (program.startswith("cmake") and _helps(argv)))
        and not any("$(" in word or "`" in word for word in argv)
        for program, argv in programs
    )


def is_helper(argv: Sequence[str]) -> bool:
    """Say whether a recipe's line only reports progress or tidies files, so that it is not a job of a build."""
    commands = simple_commands(argv)
    if not commands:
        return shell_text(argv) is not None  # nothing but shell built-ins
    return all(_helps(command.argv) for command in commands)


def _helps(argv: Sequence[str]) -> bool:
    if any("$(" in word or "`" in word for word in argv):
        return False
    program, args = os.path.basename(argv[0]), argv[1:]
    if program.startswith("cmake"):
        tidies = args[:1] == ("-P",) and os.path.basename(args[-1]).startswith("cmake_clean")
        says = args[:1] == ("-E",) and not _CMAKE_HELPERS.isdisjoint(args[1:2])
        return tidies or says or "--check-build-system" in args
    return program in _HELPERS or _only_asks(program, args)


def _only_asks(program: str, args: Sequence[str]) -> bool:
    """Say whether a compiler has nothing to compile: it is asked for its version, or whether it supports an option."""
    is_compiler = program == "nvcc" or _COMPILER.fullmatch(program) is not None
    return is_compiler and set(_inputs(args)) <= {os.devnull}


def link_script(argv: Sequence[str]) -> str:
    """Return the file with the commands by which CMake's makefiles link, "" if this is something else."""
    for (program, *args), directory in simple_commands(argv):
        if os.path.basename(program).startswith("cmake") and args[:2] == ["-E", "cmake_link_script"] and args[2:]:
            return os.path.join(directory, args[2])
    return ""


def describe(argv: Sequence[str]) -> str:
    """Return a short description: the heaviest command, without its path and without the shell around it."""
    commands = simple_commands(argv)
    if not commands:
        return " ".join(argv)[:MAX_DESCRIPTION]
    best = max(commands, key=lambda c: _WEIGHT[_work(c).tool])
    words = [os.path.basename(best.argv[0]), *best.argv[1:]]
    if words[0].startswith("python") and words[1:2] == ["-m"] and len(words) > 2:
        del words[:2]
    elif words[0].startswith("python") and len(words) > 1 and words[1].startswith("/"):
        words[1] = os.path.basename(words[1])
    text = " ".join(words)
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"


def _heaviest(commands: Sequence[SimpleCommand]) -> Work:
    works = [_work(command) for command in commands]
    return max(works, key=lambda w: _WEIGHT[w.tool], default=Work("other", None))


def _work(command: SimpleCommand) -> Work:
    program, args = os.path.basename(command.argv[0]), command.argv[1:]
    work = _work_of(program, args)
    if work.output and command.directory and not work.output.startswith("/"):
        return work._replace(output=os.path.normpath(f"{command.directory}/{work.output}"))
    return work


def _work_of(program: str, args: Sequence[str]) -> Work:
    if program in _PASSES:
        return Work(_PASSES[program], _option(args, "-o", "--output-file", "--create"))
    if program == "nvcc":
        return _driver(args, "nvcc")
    if _COMPILER.fullmatch(program):
        return _driver(args, "nvcc" if _language(args) in ("cuda", "cu") else "cxx")
    if _LINKER.fullmatch(program):
        return Work("link", _output(args))
    if _ARCHIVER.fullmatch(program):
        return Work("archive", _archive(program, args))
    if program.startswith("cmake") and args[:1] == ("-E",):
        linking = args[1:2] in (("cmake_link_script",), ("vs_link_exe",), ("vs_link_dll",))
        return Work("link" if linking else "other", None)
    return Work("other", None)


def _driver(args: Sequence[str], compiles: Tool) -> Work:
    """A compiler driver compiles, or links, or (asked for its version) does neither."""
    inputs = _inputs(args)
    if not inputs:
        return Work("other", None)
    output = _output(args)
    if "-dlink" in args or "--device-link" in args:
        return Work("link", output)
    sources = [i for i in inputs if i.endswith(SOURCES)]
    if not sources and _COMPILE_ONLY.isdisjoint(args) and _language(args) is None:
        return Work("link", output or "a.out")
    if output is None and sources and "-c" in args:
        output = os.path.splitext(os.path.basename(sources[0]))[0] + ".o"
    return Work(compiles, output or _option(args, "-MT", "-MQ"))


def _inputs(args: Sequence[str]) -> list[str]:
    inputs: list[str] = []
    skip = False
    for arg in args:
        if skip:
            skip = False
        elif arg in _TAKES_A_WORD:
            skip = True
        elif not arg.startswith("-"):
            inputs.append(arg)
    return inputs


def _language(args: Sequence[str]) -> str | None:
    return _option(args, "-x", "--x", "--language")


def _option(args: Sequence[str], *names: str) -> str | None:
    """Return the value of an option written `-o X`, `--out X` or `--out=X`; the last one wins, as in compilers."""
    value: str | None = None
    for index, arg in enumerate(args):
        if arg in names:
            value = args[index + 1] if index + 1 < len(args) else value
        else:
            value = next((arg[len(n) + 1 :] for n in names if arg.startswith(n + "=")), value)
    return value


def _output(args: Sequence[str]) -> str | None:
    """Return the output in `-o`, also when written without a space."""
    attached = [a[2:] for a in args if a.startswith("-o") and len(a) > 2 and not a.startswith(_OTHER_O)]
    return _option(args, "-o", "--output-file", "--output") or (attached[-1] if attached else None)


def _archive(program: str, args: Sequence[str]) -> str | None:
    """ar's archive is the word after its operation letters; ranlib's is its first word."""
    words = [a for a in args if not a.startswith("--")]
    named = next((w for w in words if w.endswith((".a", ".lib"))), None)
    if named or "ranlib" in program:
        return named or next((w for w in words if not w.startswith("-")), None)
    return words[1] if len(words) > 1 else None
