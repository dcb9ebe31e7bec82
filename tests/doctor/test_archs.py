"""TORCH_CUDA_ARCH_LIST against nvcc and the GPUs here."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.doctor.check import Check
from stoker.doctor.facts import Cuda, Program, Toolkit
from stoker.doctor.judge_archs import NAME, judge_archs
from stoker.doctor.need import Cost, Knobs, Need
from stoker.verify.archs import Arch, parse_arch_list
from stoker.verify.gpu.devices import Device

ARCHS_13 = tuple(Arch(*pair) for pair in ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)))
ARCHS_12 = (Arch(5, 0), Arch(7, 0), *ARCHS_13)
CUDA_13 = Toolkit(Program("nvcc", "/nvcc", (13, 0)), "PATH", archs=ARCHS_13)
CUDA_128 = Toolkit(Program("nvcc", "/nvcc", (12, 8)), "PATH", archs=ARCHS_12)
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
    repaired = re.search(rf'export {NAME}="([^"]+)"', check.remedy)
    assert repaired is not None
    assert parse_arch_list(repaired[1])


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


def all_of(text: str, need: Need, toolkit: Toolkit | None = CUDA_13, **env: str) -> dict[str, Check]:
    cuda = Cuda(toolkit, (), device_note="no driver")
    return {check.name: check for check in judge_archs(cuda, need, {need.arch_variable: text, **env})}


@pytest.mark.parametrize(("text", "status"), [("9.0a", "ok"), ("10.0f", "fail"), ("8.0a", "fail"), ("12.0f", "ok")])
def test_code_for_one_gpu_or_a_family_is_what_this_toolkits_ptxas_takes(text: str, status: str) -> None:
    codes = (*ARCHS_13, Arch(9, 0, "a"), Arch(12, 0, "f"))
    toolkit = Toolkit(Program("nvcc", "/nvcc", (13, 0)), "PATH", archs=ARCHS_13, codes=codes)
    check = judge(text, toolkit=toolkit)
    assert check is not None
    assert check.status == status


def test_where_ptxas_does_not_say_the_versions_count() -> None:
    old = Toolkit(Program("nvcc", "/nvcc", (11, 8)), "PATH", archs=ARCHS_12)
    refused = judge("9.0a", toolkit=old)
    assert refused is not None
    assert refused.status == "fail", "sm_90a came with CUDA 12.0"
    taken = judge("9.0a", toolkit=CUDA_128)
    assert taken is not None
    assert taken.status == "ok"


@pytest.mark.parametrize(
    ("switch", "archs", "reported"),
    [("1", "7.0 7.5", True), ("1", "7.5;8.6", False), ("", "7.5", False), ("0", "7.5", False)],
)
def test_attention_kernels_for_gpus_that_cannot_run_them(switch: str, archs: str, reported: bool) -> None:
    need = Need(knobs="pytorch", what="PyTorch")
    found = all_of(archs, need, CUDA_128, USE_FLASH_ATTENTION=switch)
    assert ("USE_FLASH_ATTENTION" in found) is reported
    assert not reported or found["USE_FLASH_ATTENTION"].status == "warn"


FLASH = Need(
    knobs="extension",
    arch_variable="FLASH_ATTN_CUDA_ARCHS",
    arch_choice=("80", "90", "100", "120"),
    arch_default="80;90",
)


@pytest.mark.parametrize(
    ("text", "status", "part"),
    [
        ("", "ok", "80;90, its own list"),
        ("80;120", "ok", "80;120"),
        ("86;90", "warn", "86: it knows 80 90 100 120"),
        ("86", "fail", "none of 80 90 100 120"),
        ("8.0", "fail", "none of 80 90 100 120"),
    ],
)
def test_flash_attention_has_a_list_of_its_own(text: str, status: str, part: str) -> None:
    found = all_of(text, FLASH)
    assert set(found) == {"FLASH_ATTN_CUDA_ARCHS"}
    assert found["FLASH_ATTN_CUDA_ARCHS"].status == status
    assert part in found["FLASH_ATTN_CUDA_ARCHS"].why


def test_what_flash_attention_leaves_out_and_does_not_read_is_reported() -> None:
    old = Toolkit(Program("nvcc", "/nvcc", (12, 4)), "PATH", archs=(Arch(8, 0), Arch(9, 0)))
    found = all_of("90;120", FLASH, old, TORCH_CUDA_ARCH_LIST="9.0")
    assert "cannot compile for 120, which is left out" in found["FLASH_ATTN_CUDA_ARCHS"].why
    assert found["FLASH_ATTN_CUDA_ARCHS"].remedy == 'export FLASH_ATTN_CUDA_ARCHS="90"'
    assert found["TORCH_CUDA_ARCH_LIST"].remedy == "unset TORCH_CUDA_ARCH_LIST"


def test_the_cost_is_reported_with_its_source_and_what_is_not_known() -> None:
    cost = Cost(48, 9000.0, "by somebody", rest=24, cores=4.0, library="lib.so", sizes=(("8.0", 3 * 2**20),))
    need = Need(knobs="pytorch", what="PyTorch", cost=cost)
    found = all_of("8.0;9.0+PTX", need)["architectures"]
    assert found.status == "ok"
    assert "2 x 2 h 30 min = 5 h 00 min of CPU time, 75 min at best on 4 cores" in found.why
    assert "for 48 CUDA files (by somebody); 24 more have no figure yet" in found.why
    assert "lib.so of the last build holds 8.0 3.0 MiB; 9.0 not built here before" in found.why
    both = replace(need, cost=replace(cost, sizes=(("8.0", 3 * 2**20), ("9.0", 2**20))))
    assert all_of("9.0", both)["architectures"].why.endswith("9.0 1.0 MiB, of which 1.0 MiB are asked for")
    assert "architectures" not in all_of("8.0;9.0", Need(knobs="pytorch", what="PyTorch")), "nothing is made up"


def test_an_extension_with_cmake_files_of_its_own_may_know_more() -> None:
    need = Need(knobs="extension", cmake=(3, 26))
    assert all_of("10.0f", need)[NAME].status == "warn"
    assert all_of("10.0f", replace(need, cmake=()))[NAME].status == "fail"
