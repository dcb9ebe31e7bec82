"""Names of architectures, TORCH_CUDA_ARCH_LIST, and NVIDIA's rules of what runs where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.verify.archs import (
    TORCH_NAMES,
    Arch,
    ArchError,
    arch_of,
    cubin_runs,
    parse_arch,
    parse_arch_list,
    ptx_runs,
    toolkit_of_ptx,
    with_dots,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("8.0", "sm_80"),
        ("8.0;9.0+PTX", "sm_80 sm_90 compute_90"),
        ("8.0 8.6\t9.0a", "sm_80 sm_86 sm_90a"),
        ("10.0f+PTX", "sm_100f compute_100f"),
        ("12.1", "sm_121"),
        ("8.6(8.0)", "sm_86"),
        ("8.6(8.0)+PTX", "sm_86 compute_86 compute_80"),
        ("Ampere", "sm_80 sm_86"),
        ("Volta+PTX", "sm_70 compute_70"),
        ("Maxwell+PTX", "sm_50 sm_52 compute_52"),
        ("Ampere+Tegra", "sm_87"),
        ("Hopper Hopper;9.0", "sm_90"),
        ("Blackwell+PTX", "sm_100 sm_120 compute_100 compute_120"),
        (" ;8.0; ", "sm_80"),
    ],
)
def test_an_architecture_list_means_what_pytorch_makes_of_it(text: str, names: str) -> None:
    assert " ".join(w.name for w in parse_arch_list(text)) == names


@pytest.mark.parametrize(
    ("text", "dotted"),
    [
        ("80;90;100;120", "8.0;9.0;10.0;12.0"),
        ("90a 120f+PTX", "9.0a 12.0f+PTX"),
        ("8.0;10.0+PTX 8.6(8.0)", "8.0;10.0+PTX 8.6(8.0)"),
        ("Ampere;sm_90;1234;8", "Ampere;sm_90;1234;8"),
        ("", ""),
    ],
)
def test_numbers_without_a_dot_are_capabilities_too(text: str, dotted: str) -> None:
    assert with_dots(text) == dotted


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("8.0,9.0", "semicolons"),
        ("Hoper", "'Hopper'"),
        ("Auto", "every machine"),
        ("native", "every machine"),
        ("8", "8.0"),
        ("9.0b", "9.0a"),
        ("", "empty"),
        ("sm_80", "8.0"),
    ],
)
def test_a_wrong_list_is_refused_with_the_remedy(text: str, remedy: str) -> None:
    with pytest.raises(ArchError, match=remedy):
        parse_arch_list(text)


@pytest.mark.parametrize(
    ("code", "device", "runs"),
    [
        ("8.0", "8.0", True),
        ("8.0", "8.6", True),
        ("8.6", "8.0", False),
        ("8.0", "9.0", False),
        ("9.0", "8.9", False),
        ("7.0", "7.5", True),
        ("10.0", "10.3", True),
        ("10.0", "12.0", False),
        ("12.0", "12.1", True),
        ("12.1", "12.0", False),
        # "a" is for one capability alone, "f" for its family from there on.
        ("9.0a", "9.0", True),
        ("10.0a", "10.3", False),
        ("10.3a", "10.3", True),
        ("10.0f", "10.0", True),
        ("10.0f", "10.3", True),
        ("10.3f", "10.0", False),
        ("10.0f", "11.0", False),
        ("12.0f", "12.1", True),
        # Embedded chips keep to themselves.
        ("8.0", "8.7", False),
        ("8.7", "8.9", False),
        ("8.7", "8.7", True),
        ("10.0", "10.1", False),
        # Thor was 10.1 before CUDA 13 and 11.0 since.
        ("10.1", "11.0", True),
        ("11.0", "10.1", True),
    ],
)
def test_machine_code_runs_where_nvidia_says(code: str, device: str, runs: bool) -> None:
    assert cubin_runs(parse_arch(code), parse_arch(device)) is runs


@pytest.mark.parametrize(
    ("code", "device", "runs"),
    [
        ("7.0", "12.1", True),
        ("9.0", "9.0", True),
        ("9.0", "8.9", False),
        ("8.0", "8.7", True),
        ("9.0a", "9.0", True),
        ("9.0a", "10.0", False),
        ("10.0f", "10.3", True),
        ("10.0f", "12.0", False),
    ],
)
def test_ptx_is_compiled_where_nvidia_says(code: str, device: str, runs: bool) -> None:
    assert ptx_runs(parse_arch(code), parse_arch(device)) is runs


archs = st.builds(Arch, st.integers(3, 13), st.integers(0, 9), st.sampled_from(["", "a", "f"]))
plain = st.builds(Arch, st.integers(3, 13), st.integers(0, 9))


@given(archs, plain)
def test_what_runs_as_machine_code_would_run_as_ptx_too(code: Arch, device: Arch) -> None:
    thor = {(10, 1), (11, 0)}
    if cubin_runs(code, device) and not {code.capability, device.capability} <= thor:
        assert ptx_runs(code, device)


@given(plain, plain)
def test_the_narrower_the_variant_the_fewer_the_devices(code: Arch, device: Arch) -> None:
    alone, family = Arch(*code.capability, "a"), Arch(*code.capability, "f")
    assert cubin_runs(alone, device) <= cubin_runs(family, device) <= cubin_runs(code, device)
    assert ptx_runs(alone, device) <= ptx_runs(family, device) <= ptx_runs(code, device) or code.capability == (11, 0)


@given(archs)
def test_a_name_reads_back(arch: Arch) -> None:
    assert parse_arch(arch.number) == parse_arch(arch.sm) == parse_arch(arch.compute) == arch


def test_numbers_of_two_and_three_digits() -> None:
    assert arch_of(90, "a").number == "9.0a"
    assert arch_of(121).number == "12.1"
    assert parse_arch("100f").capability == (10, 0)


@pytest.mark.parametrize(
    ("isa", "cuda"),
    [((7, 0), (11, 0)), ((7, 8), (11, 8)), ((8, 0), (12, 0)), ((8, 5), (12, 5)), ((8, 7), (12, 8)), ((9, 0), (13, 0))],
)
def test_which_cuda_brought_a_ptx_version(isa: tuple[int, int], cuda: tuple[int, int]) -> None:
    assert toolkit_of_ptx(isa) == cuda


def test_every_name_of_pytorch_can_be_asked_for() -> None:
    for name in TORCH_NAMES:
        assert parse_arch_list(name)
        assert any(w.kind == "ptx" for w in parse_arch_list(f"{name}+PTX"))
