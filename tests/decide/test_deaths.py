"""Who killed what, from what real builds said, and whether that is a reason to try again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.recovery.death_messages import said_by
from stoker.decide.recovery.deaths import (
    MAX_RERUNS,
    Again,
    Attempt,
    Death,
    Evidence,
    FailedStep,
    GiveUp,
    judge,
    shows_stop,
    verdict,
)
from stoker.model.events import KilledBy
from stoker.sense.ninja import build_output

DATA = Path(__file__).parent.parent / "data" / "deaths"
GIB = 2**30


def steps(name: str, tmp_path: Path) -> list[FailedStep]:
    """The failed steps of a recorded output, as the engine reads them."""
    log = tmp_path / "output.log"
    log.write_bytes((DATA / f"{name}.txt").read_bytes())
    found = build_output.BuildOutput(log).finish()
    return [
        FailedStep(f.output, f.command, f.exit_code, tuple(line.decode() for line in f.excerpt))
        for f in found
        if isinstance(f, build_output.ReportedFailure)
    ]


def causes(name: str, tmp_path: Path, evidence: Evidence | None = None) -> dict[str, str]:
    """What each failed step of a recorded output is judged to be."""
    deaths = [judge(step, evidence or Evidence()) for step in steps(name, tmp_path)]
    return {d.output: d.by or ("inside" if d.inside else "error") for d in deaths}


SIGKILLED = [
    ("ninja113-cc1plus", "a.o"),
    ("ninja113-driver", "a.o"),
    ("ninja113-group", "a.o"),
    ("ninja113-oom", "a.o"),
    ("ninja113-cicc", "k.o"),
    ("ninja113-cicc-threads", "k.o"),
    ("ninja113-ld", "app"),
    ("ninja113-as", "a.o"),
    ("ninja113-lto1", "app"),
    ("ninja113-bash", "a.o"),
    ("ninja113-cargo", "foo"),
    ("ninja111-cc1plus", "a.o"),
    ("ninja111-driver", "a.o"),
    ("ninja111-group", "a.o"),
    ("ninja111-oom", "a.o"),
    ("ninja111-cicc", "k.o"),
    ("make-cc1plus", "a.o"),
    ("make-driver", "a.o"),
    ("make-shell", "a.o"),
    ("make-group", "a.o"),
    ("make-sub-cc1plus", "a.o"),
    ("pip-hidden", "a.o"),
]


@pytest.mark.parametrize(("name", "output"), SIGKILLED)
def test_sigkill_is_for_memory_if_the_kernel_has_counted_and_else_from_an_unknown_sender(
    name: str, output: str, tmp_path: Path
) -> None:
    assert causes(name, tmp_path) == {output: "unknown"}
    assert causes(name, tmp_path, Evidence(oom_kills=1)) == {output: "memory"}


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("ninja113-limit-exhausted", "a.o"),
        ("ninja113-limit-total", "long.ii"),
        ("ninja113-limit-edg", "k.o"),
        ("ninja113-limit-ptxas", "k.o"),
        ("ninja113-limit-rustc", "x"),
    ],
)
def test_a_compiler_that_was_refused_memory_says_so_itself(name: str, output: str, tmp_path: Path) -> None:
    assert causes(name, tmp_path) == {output: "memory"}


@pytest.mark.parametrize("name", ["ninja113-segfault", "ninja113-segfault-driver", "ninja113-terminated"])
def test_a_crash_and_a_polite_end_are_errors_of_the_build(name: str, tmp_path: Path) -> None:
    """A compiler that crashes will crash again, and SIGTERM comes from somebody who wants an end."""
    assert causes(name, tmp_path, Evidence(oom_kills=1)) == {"a.o": "error"}


@pytest.mark.parametrize("name", ["ninja113-nested", "ninja111-nested"])
def test_a_step_that_failed_only_because_of_steps_inside_it_does_not_count(name: str, tmp_path: Path) -> None:
    found = causes(name, tmp_path, Evidence(oom_kills=2))
    assert found == {"ext": "inside", "a.o": "memory", "b.o": "memory"}


def test_of_a_make_inside_a_step_its_own_target_is_run_alone(tmp_path: Path) -> None:
    (step,) = steps("ninja113-nested-make", tmp_path)
    death = judge(step, Evidence(oom_kills=1))
    assert (death.output, death.by, death.outputs) == ("ext", "memory", ("a.o",))


def test_an_error_beside_a_killed_compiler_stays_an_error(tmp_path: Path) -> None:
    assert causes("ninja113-mixed", tmp_path) == {"a.o": "unknown", "b.o": "error"}
    assert causes("make-mixed", tmp_path)["b.o"] == "error"


@pytest.mark.parametrize("by", ["shed", "person"])
def test_what_stoker_killed_needs_no_text(by: KilledBy, tmp_path: Path) -> None:
    for name in ("ninja111-group", "ninja113-group", "make-group"):
        assert causes(name, tmp_path, Evidence(oom_kills=1, killed={"a.o": by})) == {"a.o": by}
    assert causes("ninja113-group", tmp_path, Evidence(killed={"/src/n/a.o": by})) == {"a.o": by}
    assert causes("ninja113-group", tmp_path, Evidence(killed={"ba.o": by})) == {"a.o": "unknown"}


@pytest.mark.parametrize(
    "line",
    [
        # pytorch/pytorch#28886, which is nvcc 10; the string is in nvcc 13 still
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "nvcc error   : 'ptxas' died due to signal 9 (Kill signal)",
        "cicc died due to signal 9",
        # gcc before version 10, gcc/gcc.c: "Killed (program %s)"
        "c++: internal compiler error: Killed (program cc1plus)",
        "/usr/bin/x86_64-linux-gnu-g++-9: fatal error: Killed signal terminated program cc1plus",
        "collect2: error: ld terminated with signal 9 [Killed]",
        # clang's driver names the signal as strsignal(3) does
        "clang-14: error: unable to execute command: Killed",
        "clang++: error: unable to execute command: Killed",
        # the same process, told by those around it
        "go build example.com/x: /usr/lib/go/pkg/tool/linux_amd64/compile: signal: killed",
        "subprocess.CalledProcessError: Command '['cmake', '--build', '.']' died with <Signals.SIGKILL: 9>.",
        "error: command '/usr/bin/g++' failed with exit code -9",
        "sccache: error: Compiler killed by signal 9",
        "make[3]: *** [CMakeFiles/x.dir/build.make:76: CMakeFiles/x.dir/a.cpp.o] Killed",
        "gmake: *** [all] Error 137",
        "/bin/sh: line 1: 19656 Killed                  g++ -c a.cpp",
    ],
)
def test_words_of_tools_that_were_killed(line: str) -> None:
    assert said_by(line) == "killed"
    assert said_by(line + "  ") == "killed"


@pytest.mark.parametrize(
    "line",
    [
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "LLVM ERROR: out of memory",
        "rustc-LLVM ERROR: out of memory",
        "as: out of memory allocating 65552 bytes after a total of 270336 bytes",
        "/usr/bin/ld: final link failed: memory exhausted",
        "/usr/bin/ld: final link failed: Memory exhausted",
        "g++: fatal error: cannot execute 'cc1plus': vfork: Cannot allocate memory",
        "MemoryError",
    ],
)
def test_words_of_tools_that_were_refused_memory(line: str) -> None:
    assert said_by(line) == "exhausted"


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:3:5: error: 'nope' was not declared in this scope",
        'a.cu(12): error: identifier "nope" is undefined',
        "a.cpp:1:10: fatal error: Python.h: No such file or directory",
        "/usr/bin/ld: a.o: in function `main': a.cpp:(.text+0x5): undefined reference to `nope()'",
        "ld.lld: error: undefined symbol: nope",
        "error[E0425]: cannot find value `nope` in this scope",
        "nvcc fatal   : Unsupported gpu architecture 'compute_50'",
        "ptxas fatal   : Unresolved extern function 'nope'",
        "CMake Error at CMakeLists.txt:3 (message):",
        "make[1]: *** No rule to make target 'a.c', needed by 'a.o'.  Stop.",
        "ninja: error: loading 'build.ninja': No such file or directory",
        "a.cpp:4:1: internal compiler error: Segmentation fault",
        "g++: fatal error: Terminated signal terminated program cc1plus",
    ],
)
def test_words_of_real_errors(line: str) -> None:
    assert said_by(line) == "error"


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:3:5: warning: 'Killed' is deprecated",
        "a.cpp:3:5: warning: unused variable 'error: x' [-Wunused]",
        "a.cpp:3:5: note: in a call that says error: nothing",
        '   12 |   throw Error("error: Killed signal terminated program cc1plus");',
        '      throw Error("fatal error: Killed signal terminated program cc1plus");',
        "/src/Killed/a.cpp: In function 'int main()':",
        "Killed/a.cpp:3:5: warning: memory exhausted is a strange name",
        "a.cpp:3:5: warning: the user will read: Cannot allocate memory",
        "-- Looking for std::bad_alloc - found",
        "[12/99] Building Killed.cpp.o",
        'g++ -c Killed.cpp -DWHY="error: Killed" -o a.o',
        "collect2: error: ld returned 1 exit status",
        "clang: error: clang frontend command failed due to signal (use -v to see invocation)",
        '1 error detected in the compilation of "a.cu".',
        "In file included from a.cpp:1:",
        "error.cpp",
        "",
    ],
)
def test_words_that_tell_nothing(line: str) -> None:
    assert said_by(line) == ""


@pytest.mark.parametrize(
    ("command", "silent"),
    [
        ("/usr/bin/c++ -O2 -c a.cpp -o a.o", True),
        ("cd /b && x86_64-linux-gnu-g++-12 -c a.cpp", True),
        ("ccache nvcc -c k.cu", True),
        (": && /usr/bin/clang++ -o app a.o && :", True),
        ("python gen.py", False),
        ("test -e /opt/gcc", False),
        ("grep -q x nvcc.log", False),
    ],
)
def test_without_a_status_only_a_compiler_that_ends_without_a_word_was_killed(command: str, silent: bool) -> None:
    """Ninja before 1.12 tells no status, and a compiler that fails says why."""
    step = FailedStep("x", command, None, ("", "  "))
    assert judge(step, Evidence()).is_error is not silent
    assert judge(FailedStep("x", command, 1, ()), Evidence()).is_error


def death(output: str, by: KilledBy | None = "memory") -> Death:
    return Death(output, (output,), by)


def test_killed_compilers_run_again_first_and_alone() -> None:
    found = verdict([death("a.o"), death("b.o")], Attempt())
    why = "2 jobs were killed for memory: a.o, b.o; they run first and alone"
    assert found == Again(("a.o", "b.o"), why, ("a.o", "b.o"))


@pytest.mark.parametrize(("by", "kept"), [("memory", "3.0"), ("shed", "3.0"), ("person", "2.0")])
def test_what_was_seen_to_need_something_runs_again_beside_what_fits(by: KilledBy, kept: str) -> None:
    found = verdict([death("a.o", by)], Attempt(peaks={"a.o": 2 * GIB}))
    assert isinstance(found, Again)
    assert (found.first, found.alone) == (("a.o",), ())
    assert found.why.endswith(f": a.o; it runs first, beside what fits where ~{kept} GiB is kept for it")


def test_what_dies_with_room_for_what_it_was_seen_to_need_runs_alone_then() -> None:
    peaks = {"a.o": 2 * GIB, "b.o": GIB}
    found = verdict([death("a.o"), death("b.o")], Attempt(1, peaks=peaks, first=frozenset({"a.o"})))
    assert isinstance(found, Again)
    assert (found.first, found.alone) == (("a.o", "b.o"), ("a.o",))
    assert found.why.endswith("they run first, beside what fits where ~1.5 GiB is kept for them; alone: a.o")


def test_one_that_was_killed_from_outside_runs_again_once_and_alone() -> None:
    found = verdict([death("a.o", "unknown")], Attempt(peaks={"a.o": GIB}))
    assert found == Again(
        ("a.o",), "1 job was killed by SIGKILL from an unknown sender: a.o; it runs first and alone", ("a.o",)
    )
    again = verdict([death("a.o", "unknown")], Attempt(2, frozenset({"a.o"})))
    assert again == GiveUp("a.o was killed by SIGKILL from an unknown sender again, although it ran alone")


def test_an_output_that_is_killed_alone_is_given_up_in_figures() -> None:
    attempt = Attempt(2, frozenset({"x/flash_bwd.o"}), {"x/flash_bwd.o": int(5.2 * GIB)}, 6 * GIB)
    found = verdict([death("x/flash_bwd.o")], attempt)
    assert found == GiveUp("x/flash_bwd.o was killed for memory even alone, at 5.2 GiB of 6.0 GiB")


def test_figures_that_are_not_known_are_left_out() -> None:
    found = verdict([death("a.o")], Attempt(2, frozenset({"a.o"})))
    assert found == GiveUp("a.o was killed for memory even alone")


def test_several_causes_are_told_apart() -> None:
    found = verdict([death("a.o"), death("b.o", "person"), death("c.o", "shed"), death("d.o")], Attempt(1))
    assert found.why == (
        "2 jobs were killed for memory: a.o, d.o; 1 stopped to free memory: c.o; 1 killed by a person: b.o; "
        "they run first and alone"
    )


def test_a_real_error_among_them_ends_it() -> None:
    found = verdict([death("a.o"), death("b.o", None), death("c.o")], Attempt(1))
    assert found == GiveUp("b.o failed by itself; 2 jobs were killed beside it: a.o, c.o")
    found = verdict([death("b.o", None), death("a.o"), death("d.o", None)], Attempt(1))
    assert found == GiveUp("b.o, d.o failed by themselves; 1 job was killed beside them: a.o")


def test_without_a_death_nothing_is_to_be_said() -> None:
    assert verdict([death("a.o", None)], Attempt(1)) == GiveUp("")
    assert verdict([], Attempt(1)) == GiveUp("")
    assert verdict([Death("ext", ("ext",), inside=True)], Attempt(1)) == GiveUp("")


def test_what_failed_only_for_what_is_inside_it_is_no_obstacle() -> None:
    found = verdict([Death("ext", ("ext",), inside=True), death("a.o")], Attempt(1))
    assert isinstance(found, Again)
    assert found.first == ("a.o",)


def test_there_is_an_end_even_if_something_else_dies_each_time() -> None:
    assert isinstance(verdict([death("d.o")], Attempt(MAX_RERUNS - 2)), Again)
    assert isinstance(verdict([death("e.o")], Attempt(MAX_RERUNS - 1)), Again)
    last = verdict([death("f.o")], Attempt(MAX_RERUNS))
    assert last == GiveUp("1 job was killed for memory: f.o; the step was run again 5 times already")


def test_what_a_person_kills_counts_towards_no_end() -> None:
    assert isinstance(verdict([death("a.o", "person")], Attempt(MAX_RERUNS)), Again)


def test_a_long_list_and_long_names_make_no_long_sentence() -> None:
    found = verdict([death(f"{'x' * 5000}{n}\x1b[2J") for n in range(100)], Attempt(1))
    assert isinstance(found, Again)
    assert len(found.first) == 100
    assert len(found.why) < 700
    assert "\x1b" not in found.why
    assert found.why.startswith("100 jobs were killed for memory: xxx")
    assert "and 95 more" in found.why


causes_strategy = st.sampled_from(["memory", "unknown", "shed", "person", None])


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), causes_strategy), max_size=8),
    st.integers(0, 9),
    st.sets(st.sampled_from("abcdef")),
)
def test_a_step_runs_again_only_if_all_was_killed_and_nothing_of_it_alone(
    found: list[tuple[str, KilledBy | None]], spent: int, alone: set[str]
) -> None:
    deaths = [death(output, by) for output, by in found]
    answer = verdict(deaths, Attempt(spent, frozenset(alone)))
    if isinstance(answer, Again):
        assert deaths
        assert all(d.by is not None for d in deaths)
        assert not alone & {d.output for d in deaths}
        assert spent <= MAX_RERUNS
        assert set(answer.alone) <= set(answer.first)
        assert set(answer.first) == {d.output for d in deaths}
    else:
        assert not answer.why or any(d.by is not None for d in deaths)


@given(st.text(max_size=300), st.integers(0, 9000))
def test_any_line_is_taken(text: str, more: int) -> None:
    """Whatever a build writes, however long."""
    assert said_by(text + "a: " * more) in ("", "killed", "exhausted", "error")


@pytest.mark.parametrize(
    ("command", "status", "lines", "shows"),
    [
        ("c++ -c a.cpp", 143, (), True),
        ("", 143, ("other.cpp:3: error: from a job before",), True),
        ("c++ -c a.cpp", None, (), True),
        ("c++ -c a.cpp", 1, ("c++: fatal error: Terminated signal terminated program cc1plus",), True),
        ("c++ -c a.cpp", 1, ("clang: error: unable to execute command: Terminated",), True),
        ("c++ a.o", 1, ("collect2: fatal error: ld terminated with signal 15 [Terminated]",), True),
        ("", 2, ("make[1]: *** [Makefile:3: a.o] Terminated",), True),
        ("ninja -C sub", 1, (), True),
        ("c++ -c a.cpp", 1, ("a.cpp:1:1: error: 'x' does not name a type",), False),
        ("c++ -c a.cpp", 1, ("a.cpp:1:1: error: 'x' does not name a type", "sh: 1: Terminated"), False),
        ("", 1, ("a.cpp:1:1: error: 'x' does not name a type",), False),
        ("./run-tests", 3, ("2 of 7 failed",), False),
        ("./run-tests", None, (), False),
    ],
)
def test_a_failure_during_a_stop_is_one_only_if_more_than_the_stop_shows(
    command: str, status: int | None, lines: tuple[str, ...], shows: bool
) -> None:
    assert shows_stop(FailedStep("a.o", command, status, lines)) is shows
