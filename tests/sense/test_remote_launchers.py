"""Which command lines have another machine compile."""

from __future__ import annotations

import pytest

from stoker.sense.commands.remote_launchers import sent_by


@pytest.mark.parametrize(
    ("argv", "engine"),
    [
        (["distcc", "g++", "-c", "a.cpp"], "distcc"),
        (["/bin/sh", "-c", "/usr/bin/distcc /usr/bin/c++ -c a.cpp -o a.o"], "distcc"),
        (["/bin/sh", "-c", "cd sub && DISTCC_VERBOSE=1 distcc g++ -c a.cpp && touch a.stamp"], "distcc"),
        (["sh", "-c", "ccache distcc g++ -c a.cpp"], "distcc"),
        (["/usr/lib/distcc/g++", "-c", "a.cpp"], "distcc"),
        (["sh", "-c", "/usr/lib/icecc/bin/g++ -c a.cpp"], "icecream"),
        (["nice", "-n", "5", "icecc", "g++", "-c", "a.cpp"], "icecream"),
        (["sccache", "nvcc", "-c", "k.cu"], "sccache"),
        (["g++", "-c", "/src/distcc/io.cpp"], None),
        (["sh", "-c", "g++ -Idistcc -c a.cpp -o distcc"], None),
        (["sh", "-c", "echo distcc g++"], None),
        ([], None),
    ],
)
def test_a_launcher_before_the_compiler_sends_it(argv: list[str], engine: str | None) -> None:
    assert sent_by(argv) == engine
