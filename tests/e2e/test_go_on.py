"""Going on with a failed build by a key: a real terminal, real git, and what becomes of it without the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gitrepo import ENV, with_submodules
from support.program import Stoker, until
from support.terminal import Terminal, harmful

pytestmark = pytest.mark.timeout(180)

CHECK = (
    "test -e gloo/go.sh || { printf '\\033]0;evil\\007'; "
    "echo \"Did you run 'git submodule update --init --recursive'?\"; exit 1; }; sh gloo/go.sh"
)
"""A build that needs its submodule, and then runs what is in it."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return with_submodules(tmp_path, "gloo", go_sh="while [ ! -e go ]; do sleep 0.2; done; echo built > made\n")


@pytest.fixture
def terminal(stoker: Stoker, clone: Path) -> Iterator[Terminal]:
    """The screen of a build that has just failed."""
    env = {**stoker.env, **ENV, "LC_ALL": "C.UTF-8"}
    opened = Terminal(stoker.argv("run", "--name", "b", "--", "sh", "-c", CHECK), env, clone)
    opened.wait_for("The sources of a third party are missing  (f: what to do)")
    yield opened
    opened.close()


def builds(stoker: Stoker) -> list[str]:
    return [p.name for p in (stoker.state / "stoker" / "builds").iterdir()]


@pytest.mark.long
def test_the_remedy_by_a_key_and_the_build_ends_well(stoker: Stoker, terminal: Terminal, clone: Path) -> None:
    (old,) = builds(stoker)
    terminal.send("f")
    screen = terminal.wait_for("fetch the submodule gloo, then run the step again")
    assert "Did you run 'git submodule update" in screen
    assert "evil" not in screen
    terminal.send("r")
    terminal.wait_for("resume this build?")
    terminal.answer("r")
    assert builds(stoker) == [old]  # the key that asked is no answer
    terminal.answer("y")
    terminal.wait_for("step 2/2", gone="resume this build?")
    (new,) = set(builds(stoker)) - {old}
    (clone / "go").touch()
    terminal.wait_for("exit code 0")
    assert (clone / "made").read_text() == "built\n"
    terminal.send("d")
    terminal.wait_for("fetch the submodule gloo")
    terminal.send("q")
    assert terminal.wait() == 0
    assert harmful(terminal.raw) == []
    assert terminal.restored
    assert stoker.status(new)["decisions"][0]["what"] == "fetch the submodule gloo, then run the step again"


@pytest.mark.long
def test_what_goes_on_lives_without_the_screen(stoker: Stoker, terminal: Terminal, clone: Path) -> None:
    (old,) = builds(stoker)
    terminal.send("r")
    terminal.wait_for("resume this build?")
    terminal.answer("y")
    until(lambda: len(builds(stoker)) == 2, "the build that goes on")
    terminal.hang_up()
    (new,) = set(builds(stoker)) - {old}
    (clone / "go").touch()
    assert stoker.ended(new)["exit_code"] == 0
    again = Terminal(stoker.argv("attach", old), stoker.env, stoker.root)
    again.wait_for("The sources of a third party are missing")
    again.send("c")
    again.wait_for("resume this build?")
    again.answer("y")
    again.wait_for(f"{new} has resumed")
    again.close()
    assert len(builds(stoker)) == 2
