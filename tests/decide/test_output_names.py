"""Names of outputs: what stays the same from build to build."""

from __future__ import annotations

import pytest

from stoker.decide.memory.output_names import lasting_name, stem


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "/tmp/pip-install-k3j9x2_1/flash-attn_0a1b2c3d4e5f60718293a4b5c6d7e8f9/build/temp.linux/csrc/src/fwd.o",
            "/tmp/pip-install-aaaabbbb/flash-attn_ffffffffffffffffffffffffffffffff/build/temp.linux/csrc/src/fwd.o",
        ),
        ("/tmp/tmpab12cd34/build/main.o", "/var/tmp/tmpzz99yy88/build/main.o"),
        ("/home/a/work/project/build/lib/x.o", "/srv/ci/7/project/build/lib/x.o"),
        ("CMakeFiles/cmTC_1a2b3.dir/test.c.o", "CMakeFiles/cmTC_9f8e7.dir/test.c.o"),
    ],
)
def test_one_output_has_one_name_wherever_it_is_built(first: str, second: str) -> None:
    assert lasting_name(first) == lasting_name(second)


def test_names_inside_a_build_folder_stay_whole() -> None:
    for name in ("main.o", "caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Copy.cpp.o", "a/../b.o"):
        assert lasting_name(name) == name


def test_different_outputs_keep_different_names() -> None:
    assert lasting_name("/tmp/pip-x/build/a/one.o") != lasting_name("/tmp/pip-x/build/b/one.o")
    assert lasting_name("/tmp/tmpxxxxxxxx/tmpfile") != lasting_name("/tmp/tmpxxxxxxxx/tmpother")


def test_a_stem_ends_at_the_first_digit() -> None:
    assert stem("csrc/flash_bwd_hdim128.o") == stem("flash_bwd_hdim256.o") == "flash_bwd_hdim"
    assert stem("1.o") == stem("dir2/") == ""
