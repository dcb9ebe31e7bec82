"""The doctor before a build of a profile: what cannot succeed does not begin, and what is only doubtful does."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.memory_group import MIB, MemoryGroup
from support.program import Stoker

pytestmark = pytest.mark.long

NOT_STARTED = 125


@pytest.fixture
def profiles(stoker: Stoker) -> Path:
    """The person's own profiles."""
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    return folder


def only(folder: Path, *names: str) -> Path:
    """A folder with these of the system's programs, to be the whole PATH."""
    folder.mkdir()
    for name in names:
        found = next(f"{place}/{name}" for place in ("/usr/bin", "/bin") if Path(place, name).exists())
        (folder / name).symlink_to(found)
    return folder


def hide_toolkit(stoker: Stoker) -> None:
    """Nothing is in /usr/local/cuda, where builds look without PATH, for the stoker that is run."""
    if Path("/usr/local/cuda").exists():
        mount = '/usr/bin/mount -t tmpfs none /usr/local/cuda && exec "$@"'
        stoker.prefix = ["/usr/bin/unshare", "-m", "/bin/sh", "-c", mount, "sh"]


def refused(stoker: Stoker, folder: Path, *words: str, **env: str) -> str:
    """The one line that says why there is no build, and proof that there is none. A slow check is told before."""
    result = stoker.run("run", *words, cwd=folder, **env)
    lines = result.stderr.decode().splitlines(keepends=True)
    said = "".join(line for line in lines if "; waiting for " not in line)
    assert (result.returncode, result.stdout) == (NOT_STARTED, b""), said
    assert said.count("\n") == 1, said
    assert said.startswith("stoker: not started. ")
    assert not list(stoker.state.glob("stoker/builds/*"))
    assert not (folder / "began").exists()
    return said


def notices(stoker: Stoker) -> list[str]:
    """What the newest build's journal holds for its person, and the decisions list shows."""
    build = json.loads(stoker.run("ls", "--json").stdout)[0]["id"]
    return [event["text"] for event in stoker.events(build) if event["type"] == "noticed"]


BEGINS = "steps:\n  all: {command: touch began}\n"


def test_without_nvcc_on_path_it_is_not_started(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    (profiles / "kernels.yaml").write_text(f"checks: {{commands: [nvcc, touch]}}\n{BEGINS}")
    path = str(only(tmp_path / "bin", "touch", "sh", "gcc", "g++", "make"))
    stoker.env |= {"CUDA_HOME": "", "CUDA_PATH": "", "CUDACXX": ""}
    hide_toolkit(stoker)
    said = refused(stoker, tmp_path, "-p", "kernels", PATH=path)
    assert "nvcc: there is none" in said
    assert "-> " in said
    assert "stoker doctor -p kernels" in said

    again = stoker.run("run", "--plain", "--no-doctor", "-p", "kernels", cwd=tmp_path, PATH=path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "began").exists()


def test_the_path_of_a_step_is_the_one_that_counts(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    """It is there for the step that needs it, so the build runs; and it says that another step has it not."""
    bare = only(tmp_path / "bin", "touch", "sh", "gcc", "g++", "make")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "my-tool").write_text("#!/bin/sh\n")
    (tmp_path / "more" / "my-tool").chmod(0o755)
    checks = "checks: {commands: [my-tool]}\n"
    with_it = f"env: {{PATH: '{bare}:{tmp_path}/more'}}"
    (profiles / "one.yaml").write_text(f"{checks}steps:\n  all: {{command: touch began, {with_it}}}\n")
    (profiles / "two.yaml").write_text(
        f"{checks}steps:\n  all: {{command: touch began, {with_it}}}\n  more: {{command: touch more}}\n"
    )
    for name in ("one", "two"):
        result = stoker.run("run", "--plain", "-p", name, cwd=tmp_path, PATH=str(bare))
        assert result.returncode == 0, result.stderr
        told = [text for text in notices(stoker) if "my-tool" in text]
        assert bool(told) is (name == "two")
        assert all("in step more: no my-tool on PATH" in text for text in told)
    (tmp_path / "more" / "my-tool").unlink()
    (tmp_path / "began").unlink()
    result = stoker.run("run", "-p", "two", cwd=tmp_path, PATH=str(bare))
    assert result.returncode == NOT_STARTED
    assert b"command my-tool: " in result.stderr


@pytest.mark.parametrize(
    ("checks", "part"),
    [
        ("headers: [no_such_header.h]", "header no_such_header.h: the compiler does not find <no_such_header.h>"),
        ("files: [not/here]", "file not/here: there is no not/here"),
        ("python: [no_such_module]", "has no module no_such_module"),
        ("disk: 900 TiB", "build folder: "),
        ("commands: [no-such-tool], headers: [also_none.h]", "2 of "),
    ],
)
def test_what_a_profile_needs_and_does_not_find(
    stoker: Stoker, profiles: Path, tmp_path: Path, checks: str, part: str
) -> None:
    python = f"variables: {{python: '{sys.executable}', folder: .}}\n"
    (profiles / "needy.yaml").write_text(f"{python}checks: {{{checks}}}\n{BEGINS}")
    assert part in refused(stoker, tmp_path, "-p", "needy", *(["--detach"] if "files" in checks else []))


def test_submodules_that_were_not_fetched_come_first(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]

    def git(folder: Path, *words: str) -> None:
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    for name in ("inner", "upstream"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q")
        (tmp_path / name / "file.c").write_text("int x;\n")
        if name == "upstream":
            git(tmp_path / name, "submodule", "-q", "add", str(tmp_path / "inner"), "third_party/inner")
        git(tmp_path / name, "add", ".")
        git(tmp_path / name, "commit", "-q", "-m", "all")
    git(tmp_path, "clone", "-q", "upstream", "tree")
    checks = "checks: {submodules: yes, commands: [no-such-tool]}\n"
    (profiles / "deep.yaml").write_text(f"{checks}{BEGINS}")
    said = refused(stoker, tmp_path / "tree", "-p", "deep")
    remedy = f"git -C {tmp_path / 'tree'} submodule update --init --recursive"
    assert f"submodules: 1 of 1 missing: third_party/inner -> {remedy}" in said
    subprocess.run([*shlex.split(remedy), "--quiet"], env={**os.environ, "GIT_ALLOW_PROTOCOL": "file"}, check=True)
    (profiles / "deep.yaml").write_text(f"checks: {{submodules: yes}}\n{BEGINS}")
    assert stoker.run("run", "--plain", "-p", "deep", cwd=tmp_path / "tree").returncode == 0


def test_in_a_small_control_group_it_is_not_started(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    """Half of what a profile asks for is not enough; with a little less than all of it, it is tried."""
    (profiles / "large.yaml").write_text(f"checks: {{memory: 1200 MiB}}\n{BEGINS}")
    with MemoryGroup(400 * MIB) as group:
        command = group.wrap(stoker.argv("run", "-p", "large", "--plain"))
        result = subprocess.run(command, cwd=tmp_path, env=stoker.env, capture_output=True, check=False, timeout=60)
        assert result.returncode == NOT_STARTED, result.stderr
        assert b"memory limit: 400 MiB" in result.stderr
        assert not list(stoker.state.glob("stoker/builds/*"))
        group.set_limit(1000 * MIB)
        result = subprocess.run(command, cwd=tmp_path, env=stoker.env, capture_output=True, check=False, timeout=60)
        assert result.returncode == 0, result.stderr
    assert any(text.startswith("doctor: memory limit: ") for text in notices(stoker))


def test_warnings_go_along_with_the_build(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    (profiles / "mine.yaml").write_text(
        f"env: {{MAX_JOBS: '3', CMAKE_BUILD_TYPE: '${{kind}}'}}\nvariables: {{kind: Release}}\n{BEGINS}"
    )
    result = stoker.run("run", "--detach", "-p", "mine", "--set", "kind=Debug", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = result.stderr.decode()
    assert "stoker: warning: MAX_JOBS: 3: " in said
    assert "stoker: warning: CMAKE_BUILD_TYPE: Debug" in said, "--set counts"
    build = result.stdout.decode().strip()
    stoker.ended(build)
    told = [
        event for event in stoker.events(build) if event["type"] == "noticed" and event["text"].startswith("doctor")
    ]
    assert {event["severity"] for event in told} == {"warning"}
    assert {event["text"].split(": ")[1] for event in told} >= {"MAX_JOBS", "CMAKE_BUILD_TYPE"}

    plain = stoker.run("run", "--plain", "-p", "mine", cwd=tmp_path).stderr.decode()
    assert plain.count("doctor: MAX_JOBS: ") == 1, "the plain screen tells the journal's notices itself"
    assert "warning: MAX_JOBS" not in plain


def test_a_resumed_build_is_asked_for_what_is_left_of_it(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    """The tool of a step that has been done may be gone by then."""
    bin_ = only(tmp_path / "bin", "touch", "sh", "gcc", "g++", "make", "false", "true")
    (bin_ / "once").symlink_to("/bin/true")
    text = (
        "checks: {{files: [{file}]}}\nsteps:\n  one: {{command: once}}\n  two: {{command: [sh, -c, '[ -e ready ]']}}\n"
    )
    (profiles / "two.yaml").write_text(text.format(file="."))
    assert stoker.run("run", "--plain", "-p", "two", cwd=tmp_path, PATH=str(bin_)).returncode == 1
    (bin_ / "once").unlink()
    (tmp_path / "ready").touch()
    (profiles / "two.yaml").write_text(text.format(file="gone"))
    result = stoker.run("run", "--plain", "-p", "two", "--resume", cwd=tmp_path, PATH=str(bin_))
    assert (result.returncode, b"once" in result.stderr) == (NOT_STARTED, False), result.stderr
    assert b"file gone: " in result.stderr
    unnamed = stoker.run("run", "--plain", "--resume", cwd=tmp_path, PATH=str(bin_))
    assert (unnamed.returncode, b"file gone: " in unnamed.stderr) == (NOT_STARTED, True), unnamed.stderr
    (profiles / "two.yaml").write_text(text.format(file="ready"))
    result = stoker.run("run", "--plain", "-p", "two", "--resume", cwd=tmp_path, PATH=str(bin_))
    assert result.returncode == 0, result.stderr


def test_a_program_that_hangs_delays_the_build_and_is_told(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("cmake", "git"):
        (bin_ / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (bin_ / name).chmod(0o755)
    (profiles / "slow.yaml").write_text(BEGINS)
    path = f"{bin_}:{stoker.env['PATH']}"
    result = stoker.run("run", "--plain", "-p", "slow", cwd=tmp_path, PATH=path)
    assert result.returncode == 0, result.stderr
    assert "waiting for build tools" in result.stderr.decode()
    assert any(text.startswith("doctor: git: ") and "no answer" in text for text in notices(stoker))


def test_pytorch_in_a_folder_that_is_none_says_so_first(stoker: Stoker, tmp_path: Path) -> None:
    said = refused(stoker, tmp_path, "-p", "pytorch-cpu", "--set", f"python={sys.executable}")
    assert "not started. file torch/__init__.py: " in said
    assert f"stoker doctor -p pytorch-cpu --set python={sys.executable}" in said


def test_nothing_of_a_strangers_tree_reaches_the_terminal_as_it_is(
    stoker: Stoker, profiles: Path, tmp_path: Path
) -> None:
    (profiles / "deep.yaml").write_text(f"checks: {{submodules: yes}}\n{BEGINS}")
    evil = "\x1b]0;title\x07\x1b[31mred" + "x" * 5000
    (tmp_path / ".gitmodules").write_text(f'[submodule "a"]\n\tpath = {evil}\n')
    said = refused(stoker, tmp_path, "-p", "deep")
    assert "\x1b" not in said
    assert "red" in said
    assert len(said) < 2000
