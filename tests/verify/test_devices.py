"""GPUs by name and by number."""

from __future__ import annotations

import pytest

from stoker.verify.archs import ArchError
from stoker.verify.gpu.devices import device_of
from stoker.verify.gpu.driver_versions import FIRST, cuda_of_driver, first_driver, parse_cuda

NAMES = {
    "3.5": [
        "Tesla K40m",
    ],
    "3.7": [
        "Tesla K80",
    ],
    "5.0": [
        "Tesla M10", "GeForce GTX 750 Ti",
    ],
    "5.2": [
        "GeForce GTX TITAN X", "NVIDIA GeForce GTX 970", "Tesla M40 24GB", "Tesla M60", "980",
    ],
    "5.3": [
        "Jetson TX1", "NVIDIA Tegra X1",
    ],
    "6.0": [
        "Quadro GP100", "Tesla P100-PCIE-16GB", "Tesla P100-SXM2-16GB",
    ],
    "6.1": [
        "Tesla P40", "Tesla P4", "Tesla P6", "Quadro P6000", "Quadro P4000", "Quadro P2200", "NVIDIA TITAN Xp",
        "TITAN X (Pascal)", "NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce GTX 1060 6GB",
        "GeForce GTX 1060 with Max-Q Design", "NVIDIA GeForce GT 1030", "NVIDIA GeForce MX150", "1080 Ti",
    ],
    "6.2": [
        "Jetson TX2",
    ],
    "7.0": [
        "Tesla V100-SXM2-16GB", "Tesla V100-SXM3-32GB", "Tesla V100S-PCIE-32GB", "Tesla V100-FHHL-16GB",
        "Tesla V100-DGXS-32GB", "Tesla V100-SXM2-16GB-LS", "Tesla PG503-216", "NVIDIA TITAN V", "TITAN V CEO Edition",
        "Quadro GV100", "V100", "Tesla V100-SXM2-32GB",
    ],
    "7.2": [
        "Xavier", "Jetson AGX Xavier",
    ],
    "7.5": [
        "NVIDIA GeForce MX450", "NVIDIA GeForce MX550", "NVIDIA GeForce GTX 1630", "NVIDIA GeForce GTX 1650 Ti",
        "NVIDIA GeForce GTX 1650 SUPER", "GeForce GTX 1650 with Max-Q Design", "NVIDIA GeForce RTX 2070 SUPER",
        "GeForce RTX 2080 Super with Max-Q Design", "NVIDIA TITAN RTX", "Quadro RTX 5000 with Max-Q Design",
        "Quadro T2000", "Quadro T1000", "NVIDIA T1000 8GB", "NVIDIA T400 4GB", "NVIDIA T500",
        "NVIDIA T550 Laptop GPU", "NVIDIA T600 Laptop GPU", "NVIDIA T1200 Laptop GPU", "Tesla T4", "Tesla T40 24GB",
        "NVIDIA T4G", "GRID T4-16Q", "Tesla T10", "T4", "GeForce RTX 2080 Ti", "Quadro RTX 6000", "Quadro RTX 8000",
        "RTX 8000",
    ],
    "8.0": [
        "NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM-64GB",
        "NVIDIA A100X", "NVIDIA A30", "NVIDIA A30X", "NVIDIA A800-SXM4-80GB", "NVIDIA A800 40GB Active",
        "NVIDIA DGX A100", "NVIDIA CMP 170HX", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "GRID A100-40C",
        "NVIDIA A100-4-20C", "A100", "NVIDIA A100-SXM4-80GB", "a30", "GRID A100D-80C", "NVIDIA A30-4-6C",
    ],
    "8.6": [
        "NVIDIA GeForce RTX 2050", "NVIDIA GeForce RTX 2050 Laptop GPU", "NVIDIA GeForce MX570", "NVIDIA A40",
        "NVIDIA A40-48Q", "NVIDIA A10", "NVIDIA A10G", "NVIDIA A10-24Q", "NVIDIA A16", "NVIDIA A2",
        "NVIDIA RTX A6000", "NVIDIA RTX A5500", "NVIDIA RTX A5000 Laptop GPU", "NVIDIA RTX A4500", "NVIDIA RTX A4000",
        "NVIDIA RTX A3000 Laptop GPU", "NVIDIA RTX A3000 12GB Laptop GPU", "NVIDIA RTX A2000 12GB",
        "NVIDIA RTX A2000 8GB Laptop GPU", "NVIDIA RTX A1000", "NVIDIA RTX A1000 6GB Laptop GPU",
        "NVIDIA RTX A500 Laptop GPU", "NVIDIA RTX A400", "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "NVIDIA GeForce RTX 3070", "NVIDIA GeForce RTX 3060 Lite Hash Rate",
        "NVIDIA GeForce RTX 3050 6GB Laptop GPU", "NVIDIA GeForce RTX 3050 Ti Laptop GPU", "A10", "A10G", "A40",
        "NVIDIA GeForce RTX 3090", "rtx3060", "RTX A6000", "A6000",
    ],
    "8.7": [
        "Orin (nvgpu)", "NVIDIA Orin", "Jetson Orin Nano", "Jetson Orin Nano Super",
        "NVIDIA Jetson AGX Orin Developer Kit", "Jetson Orin NX 16GB", "Orin", "Jetson AGX Orin",
        "NVIDIA IGX Orin", "IGX Orin 700",
    ],
    "8.9": [
        "NVIDIA L4", "NVIDIA L40", "NVIDIA L40S", "NVIDIA L40G", "NVIDIA L20", "NVIDIA L2", "NVIDIA L40S-48Q",
        "NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 5880 Ada Generation", "NVIDIA RTX 5000 Ada Generation",
        "NVIDIA RTX 4500 Ada Generation", "NVIDIA RTX 4000 SFF Ada Generation",
        "NVIDIA RTX 4000 Ada Generation Laptop GPU", "NVIDIA RTX 3500 Ada Generation Laptop GPU",
        "NVIDIA RTX 3000 Ada Generation Laptop GPU", "NVIDIA RTX 2000 Ada Generation",
        "NVIDIA RTX 1000 Ada Generation Laptop GPU", "NVIDIA RTX 500 Ada Generation Laptop GPU",
        "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4080 SUPER",
        "NVIDIA GeForce RTX 4070 Ti SUPER", "NVIDIA GeForce RTX 4060 Ti", "NVIDIA GeForce RTX 4050 Laptop GPU", "L4",
        "L40S", "RTX 4090", "4090", "NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 6000 Ada Generation",
        "NVIDIA RTX6000-Ada-48Q",
    ],
    "9.0": [
        "NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM2e", "NVIDIA H100 NVL",
        "NVIDIA H100 SXM5 64GB", "NVIDIA H100 64GB HBM2", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 CNX",
        "NVIDIA H800", "NVIDIA H800 PCIe", "NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA H20", "NVIDIA H20-3e",
        "NVIDIA H20 NVL16", "NVIDIA GH200 480GB", "NVIDIA GH200 120GB", "NVIDIA GH200 144G HBM3e",
        "NVIDIA GH200 96GB HBM3", "NVIDIA DGX H100", "Tesla H100", "H100", "H100 PCIe", "GH200", "NVIDIA H100XM-80C",
        "NVIDIA H100-1-10CME",
    ],
    "10.0": [
        "NVIDIA B200", "NVIDIA B100", "NVIDIA GB200", "NVIDIA GB200 NVL72", "NVIDIA HGX B200", "B200", "GB200",
    ],
    "10.3": [
        "NVIDIA B300 SXM6 AC", "NVIDIA B300", "NVIDIA GB300", "NVIDIA GB300 NVL72", "B300", "GB300",
    ],
    "10.7": [
        "NVIDIA R100", "R200", "NVIDIA VR200 NVL144", "Rubin", "Vera Rubin",
    ],
    "11.0": [
        "NVIDIA Thor", "NVIDIA Jetson AGX Thor Developer Kit", "Jetson T5000", "Jetson T4000", "DRIVE AGX Thor",
        "Thor", "NVIDIA IGX Thor", "NVIDIA IGX T7000", "IGX Thor T5000",
    ],
    "12.0": [
        "NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5090 D", "NVIDIA GeForce RTX 5090 D v2",
        "NVIDIA GeForce RTX 5090 Laptop GPU", "NVIDIA GeForce RTX 5080", "NVIDIA GeForce RTX 5080 SUPER",
        "NVIDIA GeForce RTX 5070 Ti Laptop GPU", "NVIDIA GeForce RTX 5060 Ti", "NVIDIA GeForce RTX 5050",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA RTX 6000D", "NVIDIA RTX PRO 5000 Blackwell", "NVIDIA RTX PRO 5000 72GB Blackwell",
        "NVIDIA RTX PRO 4500 Blackwell", "NVIDIA RTX PRO 4500 Blackwell Server Edition",
        "NVIDIA RTX PRO 4000 Blackwell", "NVIDIA RTX PRO 4000 Blackwell SFF Edition",
        "NVIDIA RTX PRO 3000 Blackwell Generation Laptop GPU", "NVIDIA RTX PRO 5000 Blackwell Generation Laptop GPU",
        "NVIDIA RTX PRO 2000 Blackwell", "NVIDIA RTX PRO 1000 Blackwell Generation Laptop GPU",
        "NVIDIA RTX PRO 500 Blackwell Generation Laptop GPU", "RTX 5090", "NVIDIA GeForce RTX 5070 Ti",
        "RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA RTX Pro 6000 Blackwell DC-4-96Q",
        "RTX 6000 Pro", "RTX 6000 Pro Blackwell Max-Q",
    ],
    "12.1": [
        "NVIDIA GB10", "NVIDIA DGX Spark", "GB10", "DGX Spark",
    ],
}  # fmt: skip
"""Capabilities and the names that nvidia-smi prints, NVIDIA lists, or people type."""


@pytest.mark.parametrize(("capability", "name"), [(number, name) for number, names in NAMES.items() for name in names])
def test_a_gpu_is_known_by_the_names_it_goes_by(capability: str, name: str) -> None:
    assert device_of(name).arch.number == capability


@pytest.mark.parametrize("text", ["9.0", "sm_90", "90"])
def test_a_gpu_is_known_by_its_capability(text: str) -> None:
    assert device_of(text).arch.number == "9.0"


@pytest.mark.parametrize("text", ["3.7", "8.8", "10.7", "12.1", "12.2", "13.0"])
def test_a_capability_may_be_newer_than_this_program(text: str) -> None:
    assert device_of(text).arch.number == text


@pytest.mark.parametrize("text", ["99", "9.9", "4.0", "7.3", "990", "98.0", "sm_98", "100.0"])
def test_a_capability_that_no_gpu_has_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ArchError, match=r"--device 9\.0"):
        device_of(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("H1000", "H100"),
        ("toaster", "--device 9.0"),
        ("9.0a", "plain"),
        ("", "--device 9.0"),
        ("RTX 6000", r"Quadro RTX 6000 \(7.5\), RTX A6000 \(8.6\), RTX 6000 Ada \(8.9\) or RTX PRO 6000 \(12.0\)"),
        ("4000", "RTX PRO 4000"),
        ("TITAN X", "GTX TITAN X"),
        ("MI300X", "GPU of AMD"),
        ("AMD Radeon RX 7900 XTX", "GPU of AMD"),
        ("gfx942", "GPU of AMD"),
        ("Arc A770", "GPU of Intel"),
    ],
)
def test_an_unknown_gpu_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ArchError, match=hint):
        device_of(text)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("570.86.15", (12, 8)), ("570.86", (12, 8)), ("570", (12, 8)), ("535.104.05", (12, 2)), ("470.256.02", (11, 4)),
     ("580.65.06", (13, 0)), ("572.16", (12, 8)), ("999.1", max(FIRST))],
)  # fmt: skip
def test_a_driver_says_which_cuda_it_serves(driver: str, cuda: tuple[int, int]) -> None:
    assert cuda_of_driver(driver) == cuda


def test_the_first_driver_of_a_cuda_serves_it() -> None:
    assert first_driver((12, 8)) == "570.26"
    assert first_driver((19, 9)) == ""
    assert all(cuda_of_driver(first) == cuda for cuda, first in FIRST.items())


@pytest.mark.parametrize("text", ["", "12", "57.1", "570.x", "R570", "570.86.15.3", "340.108"])
def test_what_is_no_driver_is_refused(text: str) -> None:
    with pytest.raises(ArchError, match="driver"):
        cuda_of_driver(text)


@pytest.mark.parametrize("text", ["", "12", "twelve", "0.1", "570.86"])
def test_what_is_no_cuda_version_is_refused(text: str) -> None:
    with pytest.raises(ArchError, match="as nvidia-smi prints it"):
        parse_cuda(text)
