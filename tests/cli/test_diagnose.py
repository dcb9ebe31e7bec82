"""`stoker diagnose` of a build that stoker ran, by its name."""

from __future__ import annotations

import json

from support.program import Stoker


def test_the_output_of_a_build_by_its_name(stoker: Stoker) -> None:
    words = "echo 'nvcc fatal   : Unsupported gpu architecture '\\''compute_120'\\'; exit 1"
    assert stoker.run("run", "--plain", "--name", "kernels", "--", "sh", "-c", words).returncode == 1
    told = stoker.run("diagnose", "--json", "kernels")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["matches"][0]["rule"] == "unsupported-gpu-architecture"
    assert stoker.run("diagnose", "nothing-of-this-name").returncode == 2
