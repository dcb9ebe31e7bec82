"""How a list of builds tells them apart on few columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.record.in_words import in_words

NINJA = ("/home/ann/venv/bin/ninja", "-C", "out/Release")
WHEEL = ("pip", "install", "-v", "--no-build-isolation", "./pytorch-v2.9.0")


def test_what_fits_is_told_whole() -> None:
    assert in_words(NINJA, "/src/llvm", 80) == "/home/ann/venv/bin/ninja -C out/Release in /src/llvm"


def test_on_few_columns_the_program_keeps_its_name_and_the_folder_its_end() -> None:
    assert in_words(NINJA, "/home/ann/work/llvm", 40) == "ninja -C out/Release in …/ann/work/llvm"
    assert in_words(("ninja",), "/home/ann/work/llvm/build", 23) == "ninja in …/llvm/build"
    assert in_words(WHEEL, "/home/ann/work", 40) == "pip install…rch-v2.9.0 in /home/ann/work"


@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=60), st.integers(16, 90))
def test_it_never_takes_more_than_there_is(command: list[str], folder: str, width: int) -> None:
    assert len(in_words(command, folder, width)) <= width
