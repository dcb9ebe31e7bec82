"""A profile's step packages what an earlier one wrote."""

from __future__ import annotations

import pytest

from package.conftest import Machine
from support.profiled import last, run
from support.program import Stoker
from support.wheels import field_of

PROFILE = """\
variables: {mode: bundle}
steps:
  wheel: {command: cp -r built dist}
  package:
    package: {wheel: dist/pack-*.whl, mode: "${mode}", output: out, deflate: 1}
verify: out/*.whl
"""


@pytest.mark.long
def test_a_step_packages_the_wheel_of_the_one_before(stoker: Stoker, machine: Machine) -> None:
    machine.install_nvidia()
    machine.wheel().parent.rename(machine.root / "built")
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(PROFILE)
    stoker.env |= machine.environment.variables

    assert run(stoker, "mine", machine.root, "--set", "mode=pypi")[0] == 0

    [made] = (machine.root / "out").glob("*.whl")
    assert made.name.endswith("-manylinux_2_27_x86_64.whl")
    assert any("nvidia-cublas==13.1.0.3" in line for line in field_of(made, "Requires-Dist"))
    assert "manylinux_2_27" in stoker.run("log", last(stoker)).stdout.decode()
    [verified] = [e["found"] for e in stoker.events(last(stoker)) if e["type"] == "verified"]
    assert [f["path"].partition("::")[0] for f in verified["files"]] == [str(made)]
