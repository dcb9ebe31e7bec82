"""GPUs by name and by number."""

from __future__ import annotations

import pytest

from stoker.verify.archs import ArchError
from stoker.verify.devices import device_of

NAMES = {
    "V100": "7.0", "Tesla V100-SXM2-32GB": "7.0", "T4": "7.5", "Tesla T4": "7.5", "GeForce RTX 2080 Ti": "7.5",
    "Quadro RTX 6000": "7.5", "A100": "8.0", "NVIDIA A100-SXM4-80GB": "8.0", "a30": "8.0", "A10": "8.6", "A10G": "8.6",
    "A40": "8.6", "NVIDIA GeForce RTX 3090": "8.6", "rtx3060": "8.6", "RTX A6000": "8.6", "Orin": "8.7",
    "Jetson AGX Orin": "8.7", "L4": "8.9", "L40S": "8.9", "RTX 4090": "8.9", "4090": "8.9",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "8.9",
    "RTX 6000 Ada Generation": "8.9", "H100": "9.0", "NVIDIA H100 80GB HBM3": "9.0", "H100 PCIe": "9.0",
    "NVIDIA H200": "9.0", "GH200": "9.0", "NVIDIA GH200 480GB": "9.0", "B200": "10.0", "GB200": "10.0", "B300": "10.3",
    "GB300": "10.3", "Thor": "11.0", "RTX 5090": "12.0", "NVIDIA GeForce RTX 5070 Ti": "12.0",
    "RTX PRO 6000 Blackwell Workstation Edition": "12.0", "GB10": "12.1", "DGX Spark": "12.1",
}  # fmt: skip


@pytest.mark.parametrize(("name", "capability"), NAMES.items())
def test_a_gpu_is_known_by_the_names_it_goes_by(name: str, capability: str) -> None:
    assert device_of(name).arch.number == capability


@pytest.mark.parametrize("text", ["9.0", "sm_90", "90"])
def test_a_gpu_is_known_by_its_capability(text: str) -> None:
    assert device_of(text).arch.number == "9.0"


@pytest.mark.parametrize(
    ("text", "hint"), [("H1000", "H100"), ("toaster", "--device 9.0"), ("9.0a", "plain"), ("", "--device 9.0")]
)
def test_an_unknown_gpu_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ArchError, match=hint):
        device_of(text)
