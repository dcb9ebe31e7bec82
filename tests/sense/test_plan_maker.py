from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from stoker.sense.ninja.build_log import CLOCK_SLACK, NinjaLog
from stoker.sense.ninja.plan import (
    Plan,
    PlanSummary,
    key_of_argv,
    manifest_stamp,
    table_path,
    write_table,
)
from stoker.sense.ninja.plan_process import PlanRequest, make_plan

PROJECT = """
rule cc
  command = gcc -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = gcc @$out.rsp -o $out
  rspfile = $out.rsp
  rspfile_content = $in
rule gen
  command = cmp -s $in $out || cp $in $out
  restat = 1
rule stamp
  command = cp $in $out && echo "$out: $in" > $out.d
  depfile = $out.d
build gen.h: gen gen.in
build obj/a.o: cc a.c || gen.h
build obj/b.o: cc b.c || gen.h
build obj/c.o: cc c.c || gen.h
build prog: link obj/a.o obj/b.o obj/c.o
build data: stamp gen.in
build everything: phony prog data
"""


@pytest.fixture
def project(tmp_path: Path, needs: Callable[..., Any]) -> Path:
    needs("gcc")
    folder = tmp_path / "project with $ and space"
    folder.mkdir()
    (folder / "build.ninja").write_text(PROJECT)
    (folder / "gen.in").write_text("#define N 0\n")
    (folder / "a.c").write_text('#include "gen.h"\nint main(void) { return N; }\n')
    (folder / "b.c").write_text("int b;\n")
    (folder / "c.c").write_text("int c;\n")
    return folder


async def _plan(ninja: str, folder: Path, *targets: str, started: float | None = None) -> Plan:
    out = folder.parent / "plan.json"
    request = PlanRequest(ninja, str(folder), "build.ninja", targets, time.time() if started is None else started)
    plan, note = await make_plan(request, out)
    assert plan is not None, note
    assert {p.name for p in out.parent.glob("plan.json*")} - {out.name} <= {"plan.json.table", "plan.json.graph"}
    return plan


def _contents(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def _build(ninja: str, folder: Path, *arguments: str) -> int:
    """Build for real; how many edges ninja says it ran."""
    done = subprocess.run(
        [ninja, *arguments],
        cwd=folder,
        env={**os.environ, "NINJA_STATUS": "<edge>"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.count("<edge>")


async def test_a_plan_counts_what_ninja_then_runs(ninja: str, project: Path) -> None:
    plan = await _plan(ninja, project)
    assert plan.summary.tools == {"cxx": 3, "link": 1, "other": 2}
    assert plan.total == _build(ninja, project) == 6
    assert (await _plan(ninja, project, started=time.time() + 100)).total == 0

    (project / "b.c").write_text("int b2;\n")
    plan = await _plan(ninja, project, started=time.time() + 100)
    assert plan.total == 2
    assert _build(ninja, project) == 2


async def test_a_header_that_only_the_deps_log_knows(ninja: str, project: Path) -> None:
    _build(ninja, project)
    (project / "gen.in").write_text("#define N 1\n")
    plan = await _plan(ninja, project, started=time.time() + 100)
    assert plan.total == _build(ninja, project) == 4  # gen.h, a.o, prog, data


async def test_targets_limit_the_plan(ninja: str, project: Path) -> None:
    assert (await _plan(ninja, project, "obj/a.o")).total == 2
    assert _build(ninja, project, "obj/a.o") == 2


async def test_restat_makes_the_plan_an_upper_bound(ninja: str, project: Path) -> None:
    _build(ninja, project)
    os.utime(project / "gen.in")
    plan = await _plan(ninja, project, started=time.time() + 100)
    assert plan.total is not None
    assert plan.total >= _build(ninja, project)


async def test_planning_touches_nothing_of_the_build(ninja: str, project: Path) -> None:
    """Files as they lie there while compilers and linkers run, which a plain `ninja -n` deletes or cuts short."""
    _build(ninja, project, "obj/a.o")
    for name in ("obj/b.o.d", "prog.rsp", "obj/a.o.d"):
        (project / name).write_text("half a depfi")
    with (project / ".ninja_deps").open("ab") as file:
        file.write(b"\x07\x00")
    before = _contents(project)
    plan = await _plan(ninja, project, started=time.time() + 100)
    assert plan.total == 4  # b.o, c.o, prog, data
    assert _contents(project) == before


async def test_a_plan_from_mid_build_counts_what_is_done(
    ninja: str, tmp_path: Path, start: Callable[..., Any], until: Callable[..., Any]
) -> None:
    gate = tmp_path / "gate"
    jobs = "\n".join(f"build free{i}: r\n" for i in range(5)) + "\n".join(f"build shut{i}: w\n" for i in range(5))
    (tmp_path / "build.ninja").write_text(
        f"rule r\n  command = touch $out\nrule w\n  command = while [ ! -e {gate} ]; do sleep 0.05; done; touch $out\n"
        f"{jobs}\nbuild last: r free0 shut0\n"
    )
    started = time.time()
    process = start(ninja, "-j16", cwd=tmp_path)
    log = tmp_path / ".ninja_log"
    until(lambda: log.exists() and log.read_text().count("free") == 5)
    out = tmp_path / "plan.json"
    plan, _ = await make_plan(PlanRequest(ninja, str(tmp_path), "build.ninja", (), started), out)
    assert plan is not None
    assert (plan.total, plan.summary.finished, plan.summary.planned) == (11, 5, 6)
    gate.touch()
    assert process.wait() == 0
    assert len(NinjaLog(log).first_read(started, time.time()).this_run) == 11


async def test_what_makes_no_file_is_not_planned_again_once_it_has_run(
    ninja: str, tmp_path: Path, start: Callable[..., Any], until: Callable[..., Any]
) -> None:
    """As CMake's custom targets, and what waits for them."""
    gate = tmp_path / "gate"
    (tmp_path / "build.ninja").write_text(
        "rule none\n  command = true $out\n  pool = console\nrule r\n  command = touch $out\n"
        f"rule w\n  command = while [ ! -e {gate} ]; do sleep 0.05; done; touch $out\n"
        "build target: none\nbuild behind: r target\nbuild shut: w || behind\nbuild last: r shut\n"
    )
    started = time.time()
    process = start(ninja, cwd=tmp_path)
    log = tmp_path / ".ninja_log"
    until(lambda: log.exists() and "behind" in log.read_text())
    plan = await _plan(ninja, tmp_path, started=started)
    assert (plan.total, plan.summary.finished, plan.summary.planned) == (4, 2, 2)
    gate.touch()
    assert process.wait() == 0


async def test_a_plan_names_the_output_of_a_running_process(ninja: str, project: Path) -> None:
    plan = await _plan(ninja, project)
    command = "gcc -MD -MF obj/a.o.d -c a.c -o obj/a.o"
    assert plan.output_of(("/bin/sh", "-c", command)) == ("obj/a.o", "cxx")
    assert plan.output_of(tuple(command.split())) == ("obj/a.o", "cxx")
    assert plan.output_of(("/bin/sh", "-c", "cmp -s gen.in gen.h || cp gen.in gen.h")) == ("gen.h", "other")
    assert plan.output_of(("true",)) is None
    assert plan.output_of(()) is None
    plan.close()
    assert plan.output_of(("/bin/sh", "-c", command)) is None


async def test_included_manifests_and_a_builddir_of_its_own(ninja: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rules.ninja").write_text(
        "rule r\n  command = echo $builddir > $out && cat $out.rsp\n  rspfile = $out.rsp\n  rspfile_content = x\n"
    )
    (tmp_path / "sub" / "more.ninja").write_text("build m: r\n")
    (tmp_path / "build.ninja").write_text(
        "builddir = logs\ninclude sub/rules.ninja\nbuild a: r\nsubninja sub/more.ninja\n"
    )
    (tmp_path / "logs").mkdir()
    plan = await _plan(ninja, tmp_path)
    assert plan.output_of(("sh", "-c", "echo logs > a && cat a.rsp")) == ("a", "other")
    assert plan.total == _build(ninja, tmp_path) == 2
    assert (await _plan(ninja, tmp_path, started=time.time() + 100)).total == 0


async def test_a_dyndep_file_that_is_not_made_yet(ninja: str, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(
        "rule dd\n  command = printf 'ninja_dyndep_version = 1\\nbuild out: dyndep\\n' > $out\n"
        "rule r\n  command = touch $out\nbuild dd: dd\nbuild out: r || dd\n  dyndep = dd\n"
    )
    plan = await _plan(ninja, tmp_path)
    assert plan.total == _build(ninja, tmp_path) == 2


async def test_jobs_of_the_console_hide_no_others(ninja: str, tmp_path: Path) -> None:
    """As CMake's USES_TERMINAL makes them, by a rule or by an edge; one that names its pool in its command as well."""
    jobs = "".join(f"build o{n}: r\n" for n in range(40))
    (tmp_path / "build.ninja").write_text(
        "pool three\n  depth = 3\nrule r\n  command = touch $out\nrule named\n  command = echo $pool > $out\n"
        f"rule c\n  command = touch $out\n  pool = console\n{jobs}"
        "build terminal: c\nbuild other: r\n  pool = console\nbuild some: r\n  pool = three\n"
        "build spoken: named\n  pool = three\n"
    )
    plan = await _plan(ninja, tmp_path)
    assert plan.output_of(("sh", "-c", "echo three > spoken")) == ("spoken", "other")
    assert plan.total == 44
    _build(ninja, tmp_path)
    assert len((tmp_path / ".ninja_log").read_text().splitlines()) == 1 + 44
    assert (await _plan(ninja, tmp_path, started=time.time() + 100)).total == 0, "no command looks changed"


async def test_a_command_of_several_edges_names_none_when_only_one_is_left(ninja: str, tmp_path: Path) -> None:
    edges = "".join(f"build {name}: r\n" for name in "abc")
    (tmp_path / "build.ninja").write_text(f"rule r\n  command = touch a b c\n{edges}")
    _build(ninja, tmp_path, "a", "b")
    (tmp_path / "c").unlink()
    plan = await _plan(ninja, tmp_path, started=time.time() + 100)
    assert plan.total == 1
    assert plan.output_of(("sh", "-c", "touch a b c")) == ("", "other")
    await asyncio.sleep(2 * CLOCK_SLACK)  # the runs before are to be told from the one that begins now
    begun = time.time()
    _build(ninja, tmp_path, "c")
    (tmp_path / "a").unlink()
    plan = await _plan(ninja, tmp_path, started=begun)
    assert (plan.total, plan.summary.finished, plan.summary.planned) == (2, 1, 1), "one has ended, one is to run"


DYNDEP = """
rule cc
  command = cat $in > $out
rule dd
  command = printf 'ninja_dyndep_version = 1\\nbuild b.o: dyndep | a.mod\\nbuild a.o | a.mod: dyndep\\n' > $out
rule mod
  command = cat $in > $out; cat $in > a.mod
build all.dd: dd
build a.o: mod a.f || all.dd
  dyndep = all.dd
build b.o: cc b.f || all.dd
  dyndep = all.dd
"""


async def test_what_a_dyndep_file_of_an_earlier_run_says_is_out_of_date_counts(ninja: str, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(DYNDEP)
    (tmp_path / "a.f").write_text("a")
    (tmp_path / "b.f").write_text("b")
    assert (await _plan(ninja, tmp_path)).total == _build(ninja, tmp_path) == 3
    (tmp_path / "a.f").write_text("A")
    plan = await _plan(ninja, tmp_path, started=time.time() + 100)
    assert plan.total == _build(ninja, tmp_path) == 2, "b.o waits for a.mod, which the dyndep file alone tells"


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("build a: nothing b\n", "unknown build rule"),
        ("rule r\n  command = x @$rspfile\n  rspfile = $out.rsp\n  rspfile_content = y\nbuild a: r\n", "$rspfile"),
        ("x = y\ninclude $x.ninja\n", "variable"),
        ("include missing.ninja\n", "missing.ninja"),
        ("rule r\n  command = x\nbuild a: r missing\n", "missing"),
    ],
)
async def test_a_plan_that_cannot_be_made_says_why(any_ninja: str, tmp_path: Path, manifest: str, reason: str) -> None:
    (tmp_path / "build.ninja").write_text(manifest)
    request = PlanRequest(any_ninja, str(tmp_path), "build.ninja", (), time.time())
    plan, note = await make_plan(request, tmp_path / "plan.json")
    assert plan is not None
    assert plan.total is None
    assert reason in note


async def test_a_missing_ninja_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("")
    request = PlanRequest(str(tmp_path / "none"), str(tmp_path), "build.ninja", (), 0.0)
    plan, note = await make_plan(request, tmp_path / "plan.json")
    assert plan is not None
    assert plan.total is None
    assert "none" in note


async def test_a_ninja_that_hangs_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("")
    hang = tmp_path / "hang"
    hang.write_text("#!/bin/sh\nexec sleep 60\n")
    hang.chmod(0o755)
    request = PlanRequest(str(hang), str(tmp_path), "build.ninja", (), 0.0)
    plan, note = await make_plan(request, tmp_path / "plan.json", 1)
    assert plan is not None
    assert "too long" in note


async def test_a_place_that_cannot_be_written_is_a_note(any_ninja: str, tmp_path: Path) -> None:
    request = PlanRequest(any_ninja, str(tmp_path), "build.ninja", (), 0.0)
    plan, note = await make_plan(request, tmp_path / "missing" / "plan.json")
    assert plan is None
    assert "missing" in note


def test_a_damaged_plan_is_none(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert Plan.load(path) is None
    path.write_text("{}")
    table_path(path).write_bytes(b"\0\0\0\x09")
    assert Plan.load(path) is None


def test_a_large_table_is_searched_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    summary = PlanSummary(1, 0, 1, {}, "")
    path.write_text(json.dumps(asdict(summary)))
    argvs = [("g++", f"{i}.cc") for i in range(5000)]
    with table_path(path).open("wb") as file:
        write_table(file, ((key_of_argv(a), f"{a[1]}.o", "cxx") for a in argvs))
    plan = Plan.load(path)
    assert plan is not None
    assert [plan.output_of(a) for a in argvs] == [(f"{a[1]}.o", "cxx") for a in argvs]
    assert plan.output_of(("g++", "5000.cc")) is None


def test_a_command_that_several_edges_have_tells_the_tool_but_none_of_their_outputs(tmp_path: Path) -> None:
    path, argv = tmp_path / "plan.json", ("touch", "stamp")
    path.write_text(json.dumps(asdict(PlanSummary(1, 0, 1, {}, ""))))
    with table_path(path).open("wb") as file:
        write_table(file, ((key_of_argv(argv), output, "other") for output in ("a", "b", "a")))
    plan = Plan.load(path)
    assert plan is not None
    assert plan.output_of(argv) == ("", "other")


def test_the_stamp_changes_with_the_manifest(tmp_path: Path) -> None:
    assert manifest_stamp(str(tmp_path), "build.ninja") == ""
    (tmp_path / "build.ninja").write_text("a = b\n")
    first = manifest_stamp(str(tmp_path), "build.ninja")
    (tmp_path / "build.ninja").write_text("a = bc\n")
    assert manifest_stamp(str(tmp_path), "build.ninja") != first


async def test_a_real_cmake_project_with_probes(ninja: str, tmp_path: Path, needs: Callable[..., Any]) -> None:
    needs("cmake", "g++")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(demo CXX)\n"
        'include(CheckCXXSourceCompiles)\ncheck_cxx_source_compiles("int main() {}" WORKS)\n'
        "add_library(one STATIC one.cc)\nadd_library(two SHARED two.cc)\n"
        "add_executable(prog main.cc)\ntarget_link_libraries(prog one two)\n"
        "add_custom_command(OUTPUT gen.cc COMMAND ${CMAKE_COMMAND} -E touch gen.cc)\n"
        "target_sources(prog PRIVATE gen.cc)\n"
    )
    for name in ("one", "two"):
        (tmp_path / f"{name}.cc").write_text(f"int {name}() {{ return 0; }}\n")
    (tmp_path / "main.cc").write_text("int one(); int two();\nint main() { return one() + two(); }\n")
    build = tmp_path / "build"
    _configure(tmp_path, build, ninja)
    plan = await _plan(ninja, build)
    assert plan.summary.tools == {"cxx": 4, "archive": 1, "link": 2, "other": 1}
    assert plan.total == _build(ninja, build) == 8


def _configure(source: Path, build: Path, ninja: str) -> None:
    options = [f"-DCMAKE_MAKE_PROGRAM={ninja}", "-DCMAKE_NINJA_FORCE_RESPONSE_FILE=1"]
    subprocess.run(["cmake", "-S", source, "-B", build, "-GNinja", *options], check=True, capture_output=True)


def test_a_plan_is_made_without_loading_the_journals_vocabulary() -> None:
    """It takes longer to load than all the rest, beside the first jobs of each build."""
    code = "import sys, stoker.sense.ninja.plan_maker; print('stoker.model.events' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True).stdout == b"False\n"
