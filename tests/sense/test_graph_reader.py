"""Which planned edge waits for which, as real ninjas tell it."""

from __future__ import annotations

import os
import subprocess
import time
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker.sense.ninja import plan_graph
from stoker.sense.ninja.graph_groups import MAX_GROUPS, grouped
from stoker.sense.ninja.graph_reader import GraphError, Task, read_dot, tasks_of
from stoker.sense.ninja.plan import Plan
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph
from stoker.sense.ninja.plan_process import PlanRequest, make_plan

RULES = "rule r\n  command = cat $in > $out\nrule touch\n  command = touch $out\n"


async def plan_of(ninja: str, folder: Path, manifest: str | None = None, *targets: str) -> Plan:
    if manifest is not None:
        (folder / "build.ninja").write_text(RULES + manifest)
    scratch = folder / ".plan"
    scratch.mkdir(exist_ok=True)
    request = PlanRequest(ninja, str(folder), "build.ninja", targets, time.time() + 100)
    plan, note = await make_plan(request, scratch / "plan.json")
    assert plan is not None, note
    return plan


async def graph_of(ninja: str, folder: Path, manifest: str | None = None, *targets: str) -> PlanGraph:
    plan = await plan_of(ninja, folder, manifest, *targets)
    assert plan.graph is not None, plan.summary.note
    assert len(plan.graph) == plan.summary.planned
    return plan.graph


def waits(graph: PlanGraph, output: str) -> set[str]:
    """The planned outputs that an edge waits for, seen through groups without edges."""
    members: dict[int, set[str]] = {}
    for edge in range(len(graph)):
        members.setdefault(graph.groups[edge], set()).add(graph.output(edge))
    asked = graph.find(output)
    assert asked is not None
    found: set[str] = set()
    stack = list(graph.deps[graph.groups[asked]])
    while stack:
        group = stack.pop()
        found |= members.get(group, set())
        stack += () if group in members else graph.deps[group]
    return found


def run(ninja: str, folder: Path, *arguments: str) -> None:
    subprocess.run([ninja, *arguments], cwd=folder, check=True, capture_output=True)


async def test_a_diamond(ninja: str, tmp_path: Path) -> None:
    graph = await graph_of(ninja, tmp_path, "build a: touch\nbuild b: r a\nbuild c: r a\nbuild d: r b c\n")
    assert {o: waits(graph, o) for o in "abcd"} == {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"b", "c"}}
    assert graph.groups[graph.find("b") or 0] == graph.groups[graph.find("c") or 0]


async def test_implicit_and_order_only_inputs_are_waited_for(ninja: str, tmp_path: Path) -> None:
    graph = await graph_of(
        ninja, tmp_path, "build a: touch\nbuild b: touch\nbuild c: touch\nbuild d: touch\nbuild e: r a | b c || d\n"
    )
    assert waits(graph, "e") == {"a", "b", "c", "d"}


async def test_phony_edges_pass_on_what_they_wait_for(ninja: str, tmp_path: Path) -> None:
    graph = await graph_of(
        ninja,
        tmp_path,
        "build a: touch\nbuild b: touch\nbuild both: phony a b\nbuild one: phony a\nbuild more: phony both one\n"
        "build none: phony\nbuild c: touch || more\nbuild d: touch || none\nbuild e: touch || one\n",
    )
    assert waits(graph, "c") == {"a", "b"}
    assert waits(graph, "d") == set()
    assert waits(graph, "e") == {"a"}


async def test_many_behind_a_phony_are_told_in_few_groups(ninja: str, tmp_path: Path) -> None:
    """A hundred objects that each wait for a hundred generated headers, as CMake writes it."""
    headers = " ".join(f"h{i}" for i in range(100))
    lines = [f"build h{i}: touch" for i in range(100)] + [f"build order: phony || {headers}"]
    lines += [f"build o{i}: touch || order" for i in range(100)]
    lines += ["build lib: r " + " ".join(f"o{i}" for i in range(100))]
    graph = await graph_of(ninja, tmp_path, "\n".join(lines) + "\n")
    assert len(graph) == 201
    assert waits(graph, "o7") == {f"h{i}" for i in range(100)}
    assert len(graph.deps) <= 4
    assert graph.exact


async def test_every_output_of_an_edge_finds_it(ninja: str, tmp_path: Path) -> None:
    graph = await graph_of(ninja, tmp_path, "build a b | c: touch\nbuild d: r b\nbuild e: r c\n")
    assert graph.find("a") == graph.find("b") == graph.find("c")
    assert waits(graph, "d") == waits(graph, "e") == {"a"}
    assert graph.find("nothing") is None


async def test_only_what_the_targets_need(ninja: str, tmp_path: Path) -> None:
    manifest = "build a: touch\nbuild b: r a\nbuild c: r a\n"
    graph = await graph_of(ninja, tmp_path, manifest, "b")
    assert graph.find("c") is None
    assert waits(graph, "b") == {"a"}


async def test_an_edge_that_is_up_to_date_passes_on_an_order(ninja: str, tmp_path: Path) -> None:
    manifest = "build a: r a.in\nbuild b: touch || a\nbuild c: r b c.in\n"
    for name in ("a.in", "c.in"):
        (tmp_path / name).touch()
    (tmp_path / "build.ninja").write_text(RULES + manifest)
    run(ninja, tmp_path)
    for name in ("a.in", "c.in"):
        os.utime(tmp_path / name, (time.time() + 10, time.time() + 10))
    graph = await graph_of(ninja, tmp_path)
    assert graph.find("b") is None
    assert waits(graph, "c") == {"a"}


async def test_restat_edges_are_planned_with_all_behind_them(ninja: str, tmp_path: Path) -> None:
    manifest = "rule keep\n  command = cmp -s $in $out || cp $in $out\n  restat = 1\nbuild a: keep a.in\nbuild b: r a\n"
    (tmp_path / "a.in").touch()
    (tmp_path / "build.ninja").write_text(RULES + manifest)
    run(ninja, tmp_path)
    os.utime(tmp_path / "a.in", (time.time() + 10, time.time() + 10))
    graph = await graph_of(ninja, tmp_path)
    assert waits(graph, "b") == {"a"}


async def test_a_dyndep_file_adds_nothing_and_spoils_nothing(ninja: str, tmp_path: Path) -> None:
    """What it will say of the order is known to nobody before it is made."""
    graph = await graph_of(
        ninja,
        tmp_path,
        "rule dd\n  command = printf 'ninja_dyndep_version = 1\\nbuild out: dyndep | extra\\n' > $out\n"
        "build dd: dd\nbuild extra: touch\nbuild out: touch || dd\n  dyndep = dd\n",
    )
    assert waits(graph, "out") == {"dd"}


async def test_the_rule_that_makes_the_manifest_is_not_of_the_plan(ninja: str, tmp_path: Path) -> None:
    graph = await graph_of(
        ninja,
        tmp_path,
        "rule gen\n  command = touch build.ninja\n  generator = 1\nbuild build.ninja: gen gen.in\nbuild a: touch\n"
        "default a\n",
    )
    assert [graph.output(e) for e in range(len(graph))] == ["a"]


async def test_edges_with_one_and_the_same_command_are_told_apart(ninja: str, tmp_path: Path) -> None:
    manifest = "rule same\n  command = true\nbuild a: same\nbuild b: same\nbuild c: touch || a b\n"
    graph = await graph_of(ninja, tmp_path, manifest)
    assert waits(graph, "c") == {"a", "b"}


async def test_what_an_edge_took_before(ninja: str, tmp_path: Path) -> None:
    manifest = "rule slow\n  command = sleep 0.3; touch $out\nbuild a: slow a.in\nbuild new: touch a\n"
    (tmp_path / "a.in").touch()
    (tmp_path / "build.ninja").write_text(RULES + manifest)
    run(ninja, tmp_path, "a")
    os.utime(tmp_path / "a.in", (time.time() + 10, time.time() + 10))
    graph = await graph_of(ninja, tmp_path)
    seconds = {graph.output(e): graph.seconds[e] for e in range(len(graph))}
    assert seconds["a"] >= 0.3
    assert seconds["new"] == UNKNOWN


async def test_a_command_line_stands_for_all_objects_that_are_compiled_alike(ninja: str, tmp_path: Path) -> None:
    (tmp_path / "x.cc").touch()
    graph = await graph_of(
        ninja,
        tmp_path,
        "rule cc\n  command = c++ $flags -MF $out.d -o $out -c $in\n"
        "build d/one.o: cc x.cc\n  flags = -O2\nbuild d/two.o: cc x.cc\n  flags = -O2\n"
        "build d/three.o: cc x.cc\n  flags = -O0\n",
    )
    commands = {graph.output(e): graph.command(e) for e in range(len(graph))}
    assert commands["d/one.o"] == commands["d/two.o"]
    assert "-O2" in commands["d/one.o"]
    assert "-O0" in commands["d/three.o"]


async def test_names_that_look_like_graphviz(ninja: str, tmp_path: Path) -> None:
    names = ['x", shape=ellipse', '" -> "0x1', "[label=", "a b", "tab\there"]
    lines = [f"build {name.replace(' ', '$ ')}: touch" for name in names]
    joined = " ".join(name.replace(" ", "$ ") for name in names)
    graph = await graph_of(ninja, tmp_path, "\n".join([*lines, f"build last: touch {joined}"]) + "\n")
    assert waits(graph, "last") == set(names)


async def test_chains_that_stand_alike_share_groups_where_there_are_too_many(any_ninja: str, tmp_path: Path) -> None:
    lines = [f"build o{i}: touch\nbuild t{i}: r o{i}\nbuild ok{i}: r t{i}" for i in range(MAX_GROUPS)]
    graph = await graph_of(any_ninja, tmp_path, "\n".join(lines) + "\n")
    assert len(graph) == 3 * MAX_GROUPS
    assert len(graph.deps) == 3
    assert not graph.exact


async def test_a_graph_that_is_too_deep_leaves_the_total(any_ninja: str, tmp_path: Path) -> None:
    lines = ["build c0: touch", *(f"build c{i + 1}: r c{i}" for i in range(MAX_GROUPS + 5))]
    plan = await plan_of(any_ninja, tmp_path, "\n".join(lines) + "\n")
    assert plan.total == MAX_GROUPS + 6
    assert plan.graph is None
    assert "counting jobs" in plan.summary.note
    assert "deep" in plan.summary.note


async def test_nothing_to_do_has_no_graph(ninja: str, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(RULES + "build a: touch\n")
    run(ninja, tmp_path)
    plan = await plan_of(ninja, tmp_path)
    assert (plan.total, plan.graph, plan.summary.note) == (0, None, "")


async def test_a_plan_in_use_survives_the_next_one(any_ninja: str, tmp_path: Path) -> None:
    """CMake has written the manifest anew: the new plan lies where the old one lay."""
    old = await plan_of(any_ninja, tmp_path, "".join(f"build {'a' * 200}{i}: touch\n" for i in range(200)))
    new = await plan_of(any_ninja, tmp_path, "build b: touch\n")
    assert old.graph is not None
    assert new.graph is not None
    assert old.graph.find(f"{'a' * 200}199") is not None
    assert old.output_of(("sh", "-c", f"touch {'a' * 200}199")) is not None
    run(any_ninja, tmp_path)
    assert (await plan_of(any_ninja, tmp_path)).graph is None


def test_groups_that_wait_in_too_many_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.sense.ninja.graph_groups.MAX_DEPS", 3)
    chain = [Task((str(i),), frozenset(range(i)), i) for i in range(4)]
    with pytest.raises(GraphError, match="more than 3"):
        grouped(chain)


def test_a_graph_with_too_many_arrows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.sense.ninja.graph_reader.MAX_ARROWS", 1)
    with pytest.raises(GraphError, match="arrows"):
        read_dot(['"0x1" -> "0x2" [label=" r"]\n', '"0x2" -> "0x3" [label=" r"]\n'])


@given(st.lists(st.text(alphabet='"0xab -> []=label,shape\n', max_size=40)))
def test_whatever_is_printed_is_read_or_passed_over(lines: list[str]) -> None:
    tasks_of(read_dot(lines), ["a"])


def _written() -> bytes:
    out = BytesIO()
    edges = [PlannedEdge((f"out{i}", f"side{i}"), "cxx", float(i), i, 1) for i in range(3)]
    write_graph(out, edges, [(), (0,), (0, 1)], ["", "c++ -c x.cc"], exact=True)
    return out.getvalue()


WRITTEN = _written()


@given(st.integers(0, len(WRITTEN)))
@example(len(WRITTEN))
def test_a_file_that_was_cut_short_holds_no_graph(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    path = tmp_path_factory.mktemp("graph") / "g"
    path.write_bytes(WRITTEN[:length])
    graph = PlanGraph.load(path)
    assert (graph is None) == (length < len(WRITTEN))
    if graph is not None:
        assert [graph.find(o) for o in ("out2", "side1", "out")] == [2, 1, None]
        assert (graph.output(1), graph.command(1), list(graph.seconds)) == ("out1", "c++ -c x.cc", [0.0, 1.0, 2.0])
        graph.close()
        assert (graph.find("out2"), graph.output(1), graph.command(1)) == (None, "", "")


def test_what_was_looked_up_before_is_found_again_however_many_came_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_graph, "MAX_FOUND", 2)
    (tmp_path / "g").write_bytes(WRITTEN)
    graph = PlanGraph.load(tmp_path / "g")
    assert graph is not None
    for _ in range(2):
        assert [graph.find(o) for o in ("out2", "none", "out0", "side1", "out2")] == [2, None, 0, 1, 2]


def test_a_group_that_waits_for_a_later_one_is_refused(tmp_path: Path) -> None:
    out = BytesIO()
    write_graph(out, [PlannedEdge(("a",), "cxx", 0.0, 0)], [(1,), ()], [""], exact=True)
    (tmp_path / "g").write_bytes(out.getvalue())
    assert PlanGraph.load(tmp_path / "g") is None
