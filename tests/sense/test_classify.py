from __future__ import annotations

import shlex
import subprocess

import pytest

from stoker.sense.commands.classify import (
    classify,
    classify_text,
    compiles_c,
    describe,
    is_helper,
    link_script,
    runs_others,
)
from stoker.sense.commands.shell import last_argv, shell_text, simple_commands, split_commands
from stoker.sense.proc.phase import phase_of
from stoker.sense.proc.processes import Process

CASES = [
    (
        "/usr/bin/c++ -O2 -MD -MT a.o -MF a.o.d -o CMakeFiles/x.dir/a.cc.o -c /src/a.cc",
        "cxx",
        "CMakeFiles/x.dir/a.cc.o",
    ),
    ("x86_64-linux-gnu-g++-12 -c a.cpp", "cxx", "a.o"),
    ("clang++ -oa.o -c a.cc", "cxx", "a.o"),
    ("gcc -E a.c", "cxx", None),
    ("gcc -M -MT a.d a.c", "cxx", "a.d"),
    ("g++ a.cc b.o -o prog", "cxx", "prog"),
    ("g++ a.o b.o -shared -o libx.so -Wl,-soname,libx.so", "link", "libx.so"),
    ("g++ @link.rsp -o prog", "link", "prog"),
    ("g++ a.o", "link", "a.out"),
    ("g++ --version", "other", None),
    ("clang -x cuda -c k.cu -o k.o", "nvcc", "k.o"),
    ("nvcc -gencode arch=compute_90,code=sm_90 --threads 4 -x cu -c k.cu -o k.cu.o", "nvcc", "k.cu.o"),
    ("nvcc -forward-unknown-to-host-compiler -rdc=true -x cu -rdc=true -c k.cu -o k.cu.o", "nvcc", "k.cu.o"),
    ("nvcc -cubin -odir out k.cu --output-file=k.cubin", "nvcc", "k.cubin"),
    ("nvcc -dlink a.o b.o -o dlink.o", "link", "dlink.o"),
    ("nvcc a.o b.o -o prog", "link", "prog"),
    ("cicc --c++17 in.ii -o out.ptx", "nvcc", "out.ptx"),
    ("ptxas -arch=sm_90 k.ptx -o k.cubin", "nvcc", "k.cubin"),
    ("cudafe++ --gen_c_file_name a.cpp in.ii", "nvcc", None),
    ("/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus -quiet a.cc -o /tmp/x.s", "cxx", "/tmp/x.s"),
    ("ld.lld -o prog a.o", "link", "prog"),
    ("nvlink -o a.cubin b.o", "link", "a.cubin"),
    ("ar qc libx.a a.o b.o", "archive", "libx.a"),
    ("llvm-ar --plugin=x rcs out/libx.a a.o", "archive", "out/libx.a"),
    ("ranlib libx.a", "archive", "libx.a"),
    ("cmake -E cmake_link_script CMakeFiles/x.dir/link.txt --verbose=1", "link", None),
    ("cmake -E touch stamp", "other", None),
    ("python3 gen.py -o x", "other", None),
    ("clang-tidy -p build a.cc", "other", None),
    ("ccache g++ -c a.cc -o a.o", "cxx", "a.o"),
    ("sccache nvcc -c a.cu -o a.o", "nvcc", "a.o"),
    ("env CCACHE_DIR=/x ccache icecc g++ -c a.cc -o a.o", "cxx", "a.o"),
    ("nice -n 10 g++ -c a.cc -o a.o", "cxx", "a.o"),
    ("cmake -E env A=b -- g++ -c a.cc -o a.o", "cxx", "a.o"),
    ("cmake -E __run_co_compile --tidy=x --source=a.cc -- g++ -c a.cc -o a.o", "cxx", "a.o"),
    ("/bin/bash ../libtool --tag=CXX --mode=compile g++ -c a.cc -o a.lo", "cxx", "a.lo"),
    ("cd sub && g++ -c a.cc -o a.o", "cxx", "sub/a.o"),
    ("cd /abs/x && cd ../y && g++ -c a.cc -o a.o", "cxx", "/abs/y/a.o"),
    (": && /usr/bin/g++ -O3 a.o -o prog  -Wl,-rpath,/x && :", "link", "prog"),
    (": && cmake -E rm -f libx.a && ar qc libx.a a.o && ranlib libx.a && :", "archive", "libx.a"),
    ("""g++ -DX='"a b"' "-DY=\\"z\\"" -c a.cc -o 'out dir/a.o' 2>&1 >log""", "cxx", "out dir/a.o"),
    ("cd x && cmake -E echo hi > y; touch z", "other", None),
    ("", "other", None),
]


@pytest.mark.parametrize(("command", "tool", "output"), CASES)
def test_a_shell_line_tells_its_tool_and_output(command: str, tool: str, output: str | None) -> None:
    assert classify_text(command) == (tool, output)


@pytest.mark.parametrize(
    ("command", "others"),
    [
        ("g++ -O0 -c a.cc -o a.t.o && python3 heavy.py 700 a.o", True),
        ("python3 gen.py > a.cc && g++ -c a.cc -o a.o", True),
        ("./mkconst && /opt/bin/nvcc -c a.cu -o a.o", True),
        (": && g++ a.o -o prog && ./prog --selftest && :", True),
        ("g++ -c a.cc -o a.o", False),
        ("cd sub && ccache g++ -c a.cc -o a.o", False),
        ("g++ -MD -MF .deps/a.Tpo -c a.cc -o a.o && mv -f .deps/a.Tpo .deps/a.Po", False),
        ("mkdir -p $(dirname x/a.o); gcc -c a.c -o x/a.o; ./scripts/basic/fixdep d x/a.o", False),
        (": && cmake -E rm -f libx.a && ar qc libx.a a.o && ranlib libx.a && :", False),
        ("gcc -shared a.o -o liba.so && aarch64-linux-gnu-strip liba.so", False),
        ("nvcc -M a.cu -o a.d && nvcc -c a.cu -o a.o", False),
        ("python3 gen.py -o x", False),
        ("", False),
    ],
)
def test_what_runs_beside_a_compiler_is_known(command: str, others: bool) -> None:
    assert runs_others(("sh", "-c", command)) is others


@pytest.mark.parametrize(
    ("command", "is_c"),
    [
        ("cc -c foo.c -o foo.o", True),
        ("gcc -DHAVE_CONFIG_H -I. -MT foo.o -MD -MP -MF .deps/foo.Tpo -c -o foo.o foo.c && mv -f x y", True),
        ("gcc -c -o foo.o `test -f 'src/foo.c' || echo './'`src/foo.c", True),
        ("/bin/bash ./libtool --tag=CC --mode=compile gcc -c -o foo.lo foo.c", True),
        ("ccache clang-17 -c start.S -o start.o", True),
        ("gcc -x c -c generated -o foo.o", True),
        ("gcc -x c++ -c foo.c -o foo.o", False),
        ("g++ -c foo.c -o foo.o", False),
        ("/usr/bin/clang++-17 -c foo.c -o foo.o", False),
        ("gcc -c foo.cc -o foo.o", False),
        ("gcc foo.o -o foo", False),
        ("gcc", False),
        ("", False),
    ],
)
def test_what_compiles_c_shows_it_before_it_has_begun(command: str, *, is_c: bool) -> None:
    assert compiles_c(("sh", "-c", command)) is is_c


@pytest.mark.parametrize(("command", "tool", "output"), [c for c in CASES if c[0] and not set(c[0]) & set("&;>'")])
def test_the_bare_process_tells_the_same_as_its_shell(command: str, tool: str, output: str | None) -> None:
    assert classify(shlex.split(command)) == (tool, output)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ("sh",),
        ("sh", "-c"),
        ("ccache",),
        ("env",),
        ("cmake", "-E"),
        ("nvcc",),
        ("-bash",),
        ("g++", "-o"),
    ],
)
def test_odd_processes_are_other_work(argv: tuple[str, ...]) -> None:
    assert classify(argv) == ("other", None)
    assert isinstance(describe(argv), str)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("/usr/bin/cmake", "-S", ".", "-B", "build"), "cmake -S . -B build"),
        (("sh", "-c", "cd /x && /usr/bin/python3 /a/b/gen.py --all"), "python3 gen.py --all"),
        (("/usr/bin/python3", "-m", "pip", "install", "."), "pip install ."),
        (("sh", "-c", "exit 3"), "sh -c exit 3"),
    ],
)
def test_a_description_is_short_and_has_no_paths_in_front(argv: tuple[str, ...], text: str) -> None:
    assert describe(argv) == text


def test_a_long_description_is_cut() -> None:
    assert describe(("g++", *["-DX"] * 100)).endswith("…")


@pytest.mark.parametrize(
    "line", ["a b", "a 'b c' d", 'a "b  x" c', r"a b\ c", 'a -DX=\\"y\\"', "a '' b", "'a'b\"c\" d", "a \\\n b"]
)
def test_words_are_those_of_the_shell(line: str) -> None:
    """The shell itself is asked."""
    printed = subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True).stdout
    assert split_commands(line) == [tuple(printed.split("\0")[:-1])]


def test_an_open_quote_is_no_error() -> None:
    assert split_commands("g++ 'a b") == [("g++", "'a", "b")]


def test_the_last_program_is_what_the_shell_becomes() -> None:
    assert last_argv("cd x && A=1 g++ -c a.cc") == ("g++", "-c", "a.cc")
    assert last_argv(": && g++ a.o && :") == ()


def test_only_a_shell_with_a_command_has_text() -> None:
    assert shell_text(("/bin/sh", "-e", "-c", "make all")) == "make all"
    assert shell_text(("bash", "script.sh", "-c", "x")) is None
    assert shell_text(("make", "-c", "x")) is None


def test_shells_in_shells_end() -> None:
    line = "g++ -c a.cc"
    for _ in range(7):
        line = f"sh -c {shlex.quote(line)}"
    assert simple_commands(shlex.split(line)) == []


def _process(pid: int, ppid: int, comm: str, state: str = "S") -> Process:
    return Process(pid, ppid, 1, 1, state, comm, pid, 0, 0, 0, 1)


@pytest.mark.parametrize(
    ("names", "phase"),
    [
        (("sh", "g++", "cc1plus", "as"), "cc1plus"),
        (("sh", "nvcc", "sh", "cicc"), "cicc"),
        (("sh", "nvcc", "ptxas"), "ptxas"),
        (("g++", "collect2", "ld"), "ld"),
        (("sh", "python3"), "python3"),
        (("sh",), "sh"),
        (("ccache", "g++"), "g++"),
        ((), ""),
    ],
)
def test_the_phase_is_the_innermost_worker(names: tuple[str, ...], phase: str) -> None:
    name, pid = phase_of([_process(10 + i, 9 + i, name) for i, name in enumerate(names)])
    assert name == phase
    assert (names[pid - 10] if pid else "") == phase, "the pid is that process's, not the shell's"


def test_a_dead_pass_is_no_phase() -> None:
    assert phase_of([_process(10, 9, "g++"), _process(11, 10, "cc1plus", "Z"), _process(12, 10, "as")]) == ("as", 12)


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/cmake -E cmake_echo_color --switch= --green --progress-num=1 'Building CXX object a.cpp.o'",
        "/usr/bin/cmake -E cmake_progress_start /b/CMakeFiles 0",
        "cd /b && /usr/bin/cmake -E cmake_depends 'Unix Makefiles' /s /s /b /b /b/CMakeFiles/x.dir/DependInfo.cmake",
        "/usr/bin/cmake -S/s -B/b --check-build-system CMakeFiles/Makefile.cmake 0",
        "/usr/bin/cmake -P CMakeFiles/x.dir/cmake_clean_target.cmake",
        "mkdir -p out && echo CC a.o",
        "rm -f a.o; touch stamp; :",
        "cat parts.txt",
        "printf '%s' done",
        "if gcc -march=native -xc /dev/null -S -o /dev/null; then echo yes; fi",
        "gcc -dumpversion",
        "true",
    ],
)
def test_a_recipes_line_that_only_tells_or_tidies_is_a_helper(command: str) -> None:
    assert is_helper(("sh", "-c", command))
    assert is_helper(shlex.split(command)) or set(command) & set("&;") or command == "true"


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/cmake -E cmake_link_script CMakeFiles/app.dir/link.txt --verbose=1",
        "/usr/bin/cmake -E cmake_autogen CMakeFiles/x_autogen.dir/AutogenInfo.json Release",
        "/usr/bin/cmake -E env A=1 c++ -c a.cpp -o a.o",
        "/usr/bin/cmake -E tar cf a.tar b",
        "mkdir -p out && c++ -c a.cpp -o out/a.o",
        'echo "$(c++ -c a.cpp)"',
        "sleep 62; : x",
        "for d in a b; do touch $d; done",
        "./gen.py > a.h",
        "if c++ -c a.cpp -o a.tmp; then mv a.tmp a.o; else exit 1; fi",
    ],
)
def test_whatever_may_work_is_none(command: str) -> None:
    assert not is_helper(("sh", "-c", command))


def test_no_command_is_no_helper() -> None:
    assert not is_helper(())


def test_the_link_script_of_cmakes_makefiles() -> None:
    link = "cd /b/sub && /usr/bin/cmake -E cmake_link_script CMakeFiles/app.dir/link.txt --verbose=1"
    assert link_script(("sh", "-c", link)) == "/b/sub/CMakeFiles/app.dir/link.txt"
    assert link_script(("cmake", "-E", "cmake_link_script", "CMakeFiles/app.dir/link.txt")).endswith("app.dir/link.txt")
    assert link_script(("cmake", "-E", "touch", "link.txt")) == ""
