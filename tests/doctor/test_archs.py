"""TORCH_CUDA_ARCH_LIST against nvcc and the GPUs here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.doctor.check import Check
from stoker.doctor.facts import Command, Cuda, Toolkit
from stoker.doctor.judge_archs import NAME, judge_archs
from stoker.doctor.need import Knobs, Need
from stoker.verify.archs import Arch, parse_arch_list
from stoker.verify.devices import Device

ARCHS_13 = tuple(Arch(*pair) for pair in ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)))
ARCHS_12 = (Arch(5, 0), Arch(7, 0), *ARCHS_13)
CUDA_13 = Toolkit(Command("nvcc", "/nvcc", (13, 0)), "PATH", archs=ARCHS_13)
CUDA_128 = Toolkit(Command("nvcc", "/nvcc", (12, 8)), "PATH", archs=ARCHS_12)
H100 = Device("NVIDIA H100", Arch(9, 0))
T4 = Device("Tesla T4", Arch(7, 5))


def judge(
    text: str | None, *devices: Device, toolkit: Toolkit | None = CUDA_13, knobs: Knobs = "pytorch"
) -> Check | None:
    cuda = Cuda(toolkit, (), devices=devices, device_note="no driver")
    env = {} if text is None else {NAME: text}
    return next(judge_archs(cuda, Need(knobs=knobs, what="PyTorch"), env), None)


@pytest.mark.parametrize(
    "text", ["9.0", "8.0;9.0+PTX", "8.0 8.6\t9.0", "9.0a", "10.0f", "12.0a", "Ampere;Hopper", "8.6(8.0)", " 9.0; "]
)
def test_what_torch_takes_is_taken(text: str) -> None:
    check = judge(text)
    assert check is not None
    assert check.status == "ok", check


@pytest.mark.parametrize("text", ["9", "8.0,9.0", "sm_90", "9.0b", "Hoper", "9.0+ptx", "native", ";;;", "8.0+PTX+PTX"])
def test_what_torch_does_not_take_fails_with_a_list_that_it_takes(text: str) -> None:
    check = judge(text)
    assert check is not None
    assert check.status == "fail"
    mended = re.search(rf'export {NAME}="([^"]+)"', check.remedy)
    assert mended is not None
    assert parse_arch_list(mended[1])


@pytest.mark.parametrize(("text", "named"), [("5.0;9.0", "5.0"), ("7.0", "7.0"), ("Maxwell", "5.0"), ("13.0", "13.0")])
def test_what_this_nvcc_cannot_compile_fails_with_what_it_can(text: str, named: str) -> None:
    check = judge(text)
    assert check is not None
    assert check.status == "fail"
    assert named in check.why
    assert "7.5 8.0 8.6 8.9 9.0 10.0 12.0" in check.why


def test_the_remedy_keeps_what_can_be_compiled() -> None:
    check = judge("5.0;8.0;9.0+PTX")
    assert check is not None
    assert check.remedy == f'export {NAME}="8.0;9.0+PTX"'


def test_variants_have_their_time() -> None:
    for text, toolkit, status in (
        ("8.0a", CUDA_13, "fail"),
        ("9.0f", CUDA_13, "fail"),
        ("10.0f", CUDA_128, "fail"),
        ("10.0a", CUDA_128, "ok"),
    ):
        check = judge(text, toolkit=toolkit)
        assert check is not None
        assert check.status == status, text


def test_extensions_do_not_know_families() -> None:
    check = judge("10.0f", knobs="extension")
    assert check is not None
    assert check.status == "fail"
    assert judge("native", knobs="extension") == judge("native", H100, knobs="extension")


def test_code_that_the_gpu_here_cannot_run_is_a_warning() -> None:
    check = judge("8.0", H100)
    assert check is not None
    assert check.status == "warn"
    assert "H100" in check.why
    assert check.remedy == f'export {NAME}="8.0;9.0"'
    ptx = judge("8.0+PTX", H100)
    assert ptx is not None
    assert ptx.status == "ok"


def test_unset_without_a_gpu_means_architectures_that_cuda_13_dropped() -> None:
    check = judge(None)
    assert check is not None
    assert check.status == "fail"
    assert "5.0" in check.why
    older = judge(None, toolkit=CUDA_128)
    assert older is not None
    assert older.status == "warn"
    with_gpu = judge(None, T4)
    assert with_gpu is not None
    assert with_gpu.status == "ok"


@pytest.mark.parametrize("word", ["Common", "All", "Auto"])
def test_words_that_depend_on_the_machine(word: str) -> None:
    check = judge(word)
    assert check is not None
    assert check.status == "fail"


def test_a_build_that_does_not_read_it_is_left_alone() -> None:
    assert judge(None, knobs="") is None
    check = judge("nonsense", knobs="")
    assert check is not None
    assert check.status == "warn"


def test_where_there_is_no_gpu_to_ask_one_variable_must_be_set() -> None:
    need = Need(what="x", gpu_or=("FLASH_ATTN_CUDA_ARCHS",))
    (check,) = judge_archs(Cuda(CUDA_13, (), device_note="no driver"), need, {})
    assert (check.name, check.status) == ("FLASH_ATTN_CUDA_ARCHS", "fail")
    assert list(judge_archs(Cuda(CUDA_13, (), devices=(H100,)), need, {})) == []
    assert list(judge_archs(Cuda(CUDA_13, ()), need, {"FLASH_ATTN_CUDA_ARCHS": "80"})) == []


@given(st.text(max_size=60) | st.from_regex(r"([ ;]|\d{1,3}\.\d[af]?|\+PTX|Common|native){0,6}", fullmatch=True))
def test_no_list_breaks_the_judge(text: str) -> None:
    for knobs in ("pytorch", "extension", ""):
        for toolkit in (CUDA_13, None):
            check = judge(text, H100, toolkit=toolkit, knobs=knobs)
            assert check is None or check.status == "ok" or check.remedy
