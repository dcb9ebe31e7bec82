"""`stoker diagnose` of a build that stoker ran, by its name."""

from __future__ import annotations

import json
from pathlib import Path

from support.program import Stoker


def test_the_output_of_a_build_by_its_name(stoker: Stoker) -> None:
    words = "echo 'nvcc fatal   : Unsupported gpu architecture '\\''compute_120'\\'; exit 1"
    assert stoker.run("run", "--plain", "--name", "kernels", "--", "sh", "-c", words).returncode == 1
    told = stoker.run("diagnose", "--json", "kernels")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["matches"][0]["rule"] == "unsupported-gpu-architecture"
    assert stoker.run("diagnose", "nothing-of-this-name").returncode == 2


def test_a_build_that_failed_names_its_cause_and_where_to_ask_further(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("#include <mpi.h>\n")
    (tmp_path / "build.ninja").write_text("rule cc\n  command = g++ -c a.cpp -o a.o\nbuild a.o: cc a.cpp\n")
    ran = stoker.run("run", "--plain", "--name", "mpi", "--", "ninja")
    assert ran.returncode == 1
    said = ran.stderr.decode()
    assert "stoker: A header is missing; what to do: stoker diagnose mpi-" in said, said
    told = stoker.run("diagnose", "mpi")
    assert told.stdout.startswith(b"A header is missing  [missing-header]\n  line ")


def test_what_was_mended_by_running_the_step_again_is_not_the_cause(stoker: Stoker, tmp_path: Path) -> None:
    # The first attempt's compiler is refused memory, by its own words; the second meets a real error. Both at once: the
    # first may end before anybody has seen it, the second before it is known that it has begun.
    (tmp_path / "cc.sh").write_text(
        "if [ -e tried ]; then echo 'a.cpp:3:12: error: no such name'; exit 1; fi\n"
        "touch tried; echo 'virtual memory exhausted: Cannot allocate memory'; exit 1\n"
    )
    (tmp_path / "build.ninja").write_text("rule cc\n  command = sh cc.sh\nbuild a.o: cc\n")
    assert stoker.run("run", "--plain", "--name", "again", "--", "ninja").returncode == 1
    output = next(stoker.state.glob("stoker/builds/again*/output.log")).read_text().splitlines()
    assert "virtual memory exhausted: Cannot allocate memory" in output
    (match,) = json.loads(stoker.run("diagnose", "--json", "again").stdout)["matches"]
    assert match["rule"] == "compile-error"
    assert output[match["line"] - 1].endswith("no such name")
