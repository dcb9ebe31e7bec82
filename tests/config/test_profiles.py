"""Profiles as people write them: what is read, what is put together, and how every fault is reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stoker.config.profiles.chain import MAX_CHAIN, NoSuchProfileError, profile_files
from stoker.config.profiles.conditions import obstacle
from stoker.config.profiles.form import keys_of
from stoker.config.profiles.load import FaultyProfileError, ProfileError, load_profile, read_profile
from stoker.config.profiles.profile import Checks, Profile, ProfileStep, Tmp, When
from stoker.config.profiles.schema import schema

GIB = 2**30

WHOLE = """\
description: all there is
variables:
  arch: ""
  flags: -O2 --threads ${threads}
  threads: "2"
  few: "3"
env:
  ARCHS: ${arch}
  NVCC: ${flags} $$HOME
level: 8
memory: 12 GiB
heavy: [flash, mem_eff]
cache: auto
tmp: {kind: tmpfs, size: 4G}
steps:
  configure:
    command: cmake -S . -B 'the build' "-DA=${flags}"
    when: {no_file: the build/build.ninja, differs: {arch: "5.0"}}
  heavy:
    command: [ninja, -C, the build, "${heavy}"]
    level: ${few}
    retries: 1
    scheduler: ninja
    cwd: sub
    env: {ONLY: "${few}"}
  all:
    command: ninja "-DX=${heavy}" ${extra}
priors:
  big:
    tool: nvcc
    points: {0: 1 GiB, 9: 2 GiB cicc}
verify: dist/*.whl
checks:
  disk: 5 GiB
  cuda: 12.6
  commands: [ninja, cmake]
  submodules: yes
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "stoker" / "profiles"
    folder.mkdir(parents=True)
    return folder


def faults(folder: Path, text: str, name: str = "mine") -> list[str]:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return [str(fault).removeprefix(f"{path}:") for fault in read_profile(path)[1]]


def words(profile: Profile) -> list[tuple[str, ...]]:
    return [step.command for step in profile.steps]


def test_everything_that_can_be_written_is_read(own: Path) -> None:
    (own / "mine.yaml").write_text(WHOLE)
    profile = load_profile("mine", {"threads": "4"}, ("-k0", "a b"))
    assert profile.env == {"ARCHS": "", "NVCC": "-O2 --threads 4 $HOME"}
    assert profile.chosen == {"NVCC"}
    assert (profile.level, profile.memory, profile.cache) == (8, 12 * GIB, "auto")
    assert profile.tmp == Tmp("tmpfs", 4 * GIB)
    configure, heavy, rest = profile.steps
    assert configure.command == ("cmake", "-S", ".", "-B", "the build", "-DA=-O2 --threads 4")
    assert configure.when == When(no_file=("the build/build.ninja",), differs={"arch": "5.0"})
    assert heavy == ProfileStep(
        "heavy", ("ninja", "-C", "the build", "flash", "mem_eff"), {"ONLY": "3"}, "sub", 3, When(), 1, "ninja"
    )
    assert rest.command == ("ninja", "-DX=flash;mem_eff", "-k0", "a b")
    assert [(prior.name, prior.curve.peak) for prior in profile.priors] == [("big", 2 * GIB)]
    assert profile.verify == ("dist/*.whl",)
    assert profile.checks == Checks(disk=5 * GIB, cuda="12.6", commands=("ninja", "cmake"), submodules=True)


def test_a_value_with_blanks_or_signs_stays_one_word(own: Path) -> None:
    (own / "mine.yaml").write_text("variables: {v: x}\nsteps: {a: {command: 'echo ${v} <${v}>'}}\n")
    assert words(load_profile("mine", {"v": "a b; rm $(x) 'y"})) == [("echo", "a b; rm $(x) 'y", "<a b; rm $(x) 'y>")]


def test_heavy_targets_can_be_given_or_left_out_by_hand(own: Path) -> None:
    (own / "mine.yaml").write_text(WHOLE)
    assert load_profile("mine", {"heavy": "one 'two $x'"}).heavy == ("one", "two $x")
    none = load_profile("mine", {"heavy": ""})
    assert none.heavy == ()
    assert words(none)[1] == ("ninja", "-C", "the build")


def test_a_profile_over_another_changes_what_it_names(own: Path) -> None:
    (own / "base.yaml").write_text(WHOLE)
    (own / "mid.yaml").write_text(
        "extends: base\nvariables: {arch: '8.0'}\nenv: {MORE: '1'}\nheavy: [flash]\n"
        "priors: {small: {points: {0: 1 MiB, 1: 1 MiB}}}\nchecks: {disk: 9 GiB}\n"
    )
    (own / "top.yaml").write_text(
        "extends: mid\nsteps:\n  first: {command: echo}\n  all: {}\n  heavy: {level: 1, env: {ALSO: '2'}}\n"
    )
    profile = load_profile("top")
    assert profile.variables["arch"] == profile.env["ARCHS"] == "8.0"
    assert profile.env["MORE"] == "1"
    assert profile.checks == Checks(disk=9 * GIB, cuda="12.6", commands=("ninja", "cmake"), submodules=True)
    assert [prior.name for prior in profile.priors] == ["big", "small"]
    assert [step.name for step in profile.steps] == ["first", "all", "heavy"]
    assert words(profile)[1:] == [("ninja", "-DX=flash"), ("ninja", "-C", "the build", "flash")]
    assert (profile.steps[2].level, profile.steps[2].env) == (1, {"ONLY": "3", "ALSO": "2"})


def test_ones_own_profile_goes_before_the_shipped_one_and_may_extend_it(own: Path) -> None:
    shipped = profile_files()["ninja"]
    (own / "ninja.yaml").write_text("extends: ninja\nvariables: {folder: out}\n")
    assert profile_files()["ninja"] == own / "ninja.yaml"
    assert words(load_profile("ninja")) == [("ninja", "-C", "out")]
    assert load_profile(str(shipped)).variables["folder"] == "build"


def test_classes_of_jobs_are_no_profile() -> None:
    assert "priors" not in profile_files()
    with pytest.raises(NoSuchProfileError, match="no profile 'priors'"):
        load_profile("priors")


STEPS = "steps: {a: {command: x}}\n"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "steps: {a: {comand: x}}\n",
            ["1: unknown key 'comand'; did you mean 'command'?", "1: step 'a' needs a command"],
        ),
        ("step: {a: {command: x}}\n", ["1: unknown key 'step'; did you mean 'steps'?"]),
        (
            "steps:\n  a: {command: x, shell: true}\n",
            ["2: unknown key 'shell'; known are command, cwd, env, level, package, retries, scheduler, when"],
        ),
        ("steps: {a: {command: 'x && y'}}\n", ["1: no shell runs a command, so '&&' means nothing; write two steps"]),
        ('steps: {a: {command: "x \'y"}}\n', ["1: 'command' cannot be cut into words: no closing quotation"]),
        (
            "steps: {a: {command: '${ach}'}}\nvariables: {arch: x}\n",
            ["1: unknown variable 'ach'; did you mean 'arch'?"],
        ),
        (
            "variables:\n  a: ${b}\n  b: x\nenv:\n  x: ${c}\n" + STEPS,
            ["5: unknown variable 'c'; known are a, b, extra, heavy"],
        ),
        ("variables:\n  a: ${a}\n" + STEPS, ["2: variable 'a' refers to itself: a -> a"]),
        (
            "variables: {Arch: x}\n" + STEPS,
            ["1: a variable is not called 'Arch': small letters, digits and _; not extra, not heavy"],
        ),
        ("env: {A-B: x}\n" + STEPS, ["1: 'A-B' cannot be the name of an environment variable"]),
        ("memory: much\n" + STEPS, ["1: 'memory' is a size like 12 GiB, 64G or 500MB, not 'much'"]),
        (
            "memory: 48\n" + STEPS,
            ["1: 'memory' is at least 32.0 MiB, not 48 B; write a unit, as in 12 GiB"],
        ),
        ("level: 0\n" + STEPS, ["1: 'level' is a whole number from 1 to 4096, not '0'"]),
        ("cache: cache\n" + STEPS, ["1: 'cache' cannot be 'cache'; did you mean 'ccache'?"]),
        ("checks:\n  cuda: new\n" + STEPS, ["2: 'cuda' is a version like 12.6, not 'new'"]),
        ("heavy: {a: b}\n" + STEPS, ["1: 'heavy' is a list, not a mapping; write [one, two]"]),
        ("heavy: [[a]]\n" + STEPS, ["1: 'heavy' is a list of more than single values"]),
        ("steps: [a, b]\n", ["1: 'steps' is a list; write a mapping"]),
        (
            "steps: {a: {command: x, when: {equals: {ach: y}}}}\nvariables: {arch: x}\n",
            ["1: unknown variable 'ach'; did you mean 'arch'?"],
        ),
        (
            "steps: {a b: {command: x}}\n",
            ["1: a step is not called 'a b': letters, digits, '.', '_' and '-', up to 64"],
        ),
        ("steps: {a: {}}\n", ["1: step 'a' needs a command"]),
        ("steps: {a: {command: []}}\n", ["1: step 'a' needs a command"]),
        ("steps: {a: {package: {mode: pypi}}}\n", ["1: step 'a' needs the wheel that it packages"]),
        ("steps: {a: {command: x, package: {wheel: x.whl}}}\n", ["1: step 'a' has a command; write two steps"]),
        (
            "steps: {a: {package: {wheel: x.whl, mode: pypy3}}}\n",
            ["1: 'mode' cannot be 'pypy3'; did you mean 'pypi'?"],
        ),
        ("description: nothing else\n", ["1: a profile needs steps; write them, or extend a profile that has some"]),
        ("extends: ninj\n", ["1: no profile 'ninj'; did you mean 'ninja'?"]),
        ("extends: mine\n", ["1: profiles extend one another in a circle: mine -> mine"]),
        (
            "priors:\n  a: {tool: cpp, points: {0: 1 GiB, 5: 1 GiB}}\n" + STEPS,
            ["2: 'tool' cannot be 'cpp'; known are archive, cxx, link, nvcc, other"],
        ),
        (
            "a: [\n",
            ["2: not valid YAML: while parsing a flow node did not find expected node content"],
        ),
    ],
)
def test_a_fault_is_reported_in_one_line_with_its_place_and_the_nearest_right_word(
    own: Path, text: str, reported: list[str]
) -> None:
    assert faults(own, text) == reported


def test_a_circle_and_a_chain_without_end_are_refused(own: Path) -> None:
    (own / "a.yaml").write_text("extends: b\n" + STEPS)
    (own / "b.yaml").write_text("extends: c\n")
    (own / "c.yaml").write_text("extends: a\n")
    with pytest.raises(FaultyProfileError, match=r"c\.yaml:1: profiles extend .* circle: a -> b -> c -> a"):
        load_profile("a")
    for n in range(MAX_CHAIN + 1):
        (own / f"p{n}.yaml").write_text(f"extends: p{n + 1}\n")
    (own / f"p{MAX_CHAIN + 1}.yaml").write_text(STEPS)
    with pytest.raises(FaultyProfileError, match="more than 8 profiles extend one another"):
        load_profile("p0")


def test_a_fault_in_a_profile_below_is_reported_at_its_own_place(own: Path) -> None:
    (own / "base.yaml").write_text("level: none\n" + STEPS)
    (own / "mine.yaml").write_text("extends: base\n")
    with pytest.raises(FaultyProfileError, match=rf"^{own}/base\.yaml:1: 'level'"):
        load_profile("mine")


def test_values_that_grow_without_end_are_refused(own: Path) -> None:
    lines = "".join(f"  v{n}: {f'${{v{n + 1}}}' * 10}\n" for n in range(12))
    assert "grows beyond 64 KiB" in faults(own, f"variables:\n{lines}  v12: x\n{STEPS}")[0]


def test_values_that_refer_twice_to_one_another_are_found_out_once_each(own: Path) -> None:
    doubled = "".join(f"  v{n}: {f'${{v{n + 1}}}' * 2}\n" for n in range(60))  # 2^60 references in all
    assert "grows beyond 64 KiB" in faults(own, f"variables:\n{doubled}  v60: x\n{STEPS}")[0]
    (own / "mine.yaml").write_text(f"variables:\n{doubled}  v60: ''\n{STEPS}")
    assert load_profile("mine").variables["v0"] == ""


def test_values_that_refer_through_thousands_of_others_are_refused(own: Path) -> None:
    chain = "".join(f"  v{n}: ${{v{n + 1}}}\n" for n in range(1500))
    assert "refers through more than 100 variables" in faults(own, f"variables:\n{chain}  v1500: x\n{STEPS}")[0]


@pytest.mark.parametrize(
    ("settings", "extra", "reported"),
    [
        ({"ach": "x"}, (), "this profile has no variable 'ach'; did you mean 'arch'?"),
        ({"heavy": "x"}, (), "this profile has no variable 'heavy'; known are arch"),
        ({}, ("x",), r"profile 'mine' takes no words behind --; none of its commands holds \${extra}"),
    ],
)
def test_what_does_not_go_with_a_profile_is_refused(
    own: Path, settings: dict[str, str], extra: tuple[str, ...], reported: str
) -> None:
    (own / "mine.yaml").write_text("variables: {arch: x}\n" + STEPS)
    with pytest.raises(ProfileError, match=reported):
        load_profile("mine", settings, extra)


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("file: [here, gone]", "there is no gone"),
        ("no_file: here", "there is here"),
        ("command: no-such-command", "no-such-command is not on PATH"),
        ("no_command: sh", "sh is on PATH"),
        ("equals: {arch: '9.0'}", "arch is '8.0'"),
        ("differs: {arch: '${same}'}", "arch is '8.0'"),
        ("heavy: yes", "there are no heavy targets"),
        ("{file: here, no_file: gone, command: sh, equals: {arch: '8.0'}, heavy: no}", ""),
    ],
)
def test_a_step_is_part_of_the_build_if_all_of_its_conditions_hold(own: Path, when: str, why: str) -> None:
    (own / "here").touch()
    when = when if when.startswith("{") else f"{{{when}}}"
    (own / "mine.yaml").write_text(
        f"variables: {{arch: '8.0', same: '8.0'}}\nsteps: {{a: {{command: x, when: {when}}}}}\n"
    )
    profile = load_profile("mine")
    assert obstacle(profile.steps[0].when, profile, own) == why


def test_the_page_names_every_key_and_its_example_is_without_fault(own: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "profiles.md").read_text()
    _, keys, steps = page.split("\n| key | |\n")
    named = [re.findall(r"^\| `(\w+)` \|", part.partition("\n\n")[0], re.MULTILINE) for part in (keys, steps)]
    assert named == [list(keys_of(Profile)), list(keys_of(ProfileStep))]
    for part, heading in ((When, "\n## Steps"), (Checks, "\n## Checks")):
        text = page.partition(heading)[2].partition("\n## ")[0]
        assert all(f"`{key}`" in text for key in keys_of(part)), part
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert faults(own, example) == []
    assert [step.name for step in load_profile("mine").steps] == [
        "configure",
        "heavy",
        "heavy-objects",
        "wheel",
        "smoke",
    ]


def test_the_page_names_every_shipped_profile() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "profiles.md").read_text()
    table = page.partition("| shipped | builds |")[2].partition("\n\n")[0]
    named = [name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1] if row else "")]
    assert sorted(named) == sorted(profile_files())


def test_the_schema_knows_every_key_and_takes_every_value() -> None:
    """By the schema's own few words: every key of WHOLE stands in it, at every depth."""
    import yaml

    def check(value: Any, part: dict[str, Any], place: str) -> None:
        if not isinstance(value, dict) or "anyOf" in part:
            return
        for key, below in value.items():
            known = part.get("properties", {}).get(key) or part.get("additionalProperties")
            assert known, f"{place}.{key} is not in the schema"
            check(below, known, f"{place}.{key}")

    check(yaml.safe_load(WHOLE), schema(), "profile")
    assert schema()["properties"]["steps"]["additionalProperties"]["additionalProperties"] is False
    assert schema()["properties"]["cache"]["anyOf"][0] == {"enum": ["none", "auto", "ccache", "sccache"]}
    assert all("description" in part for part in schema()["properties"].values())
