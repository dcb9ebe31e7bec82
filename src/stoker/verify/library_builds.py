"""Which files are builds of one library for several GPUs, and which are NVIDIA's own: by their names alone. Pure."""

from __future__ import annotations

import re

_NVIDIA = re.compile(
    r"lib(?:cublas|cudadevrt|cudnn|cufft|curand|cusolver|cusparse|cutensor|nccl|npp|nvjpeg|nvshmem|nvrtc|nvinfer|cufile|cupti|checkpoint|nvperf)"
    r"[\w-]*\.(?:so(?:\.[\d.]+)?|a)"
)
_BUILD_OF = re.compile(r"(?:cuda|cu|sm|compute|rocm|xpu)_?\d+[af]?|cpu")


def library(path: str) -> str:
    """A library's path without the CUDA version or architecture in its name.

    Packages such as bitsandbytes ship `libbitsandbytes_cuda118.so` beside `..._cuda130.so` and `..._cpu.so`, and load
    the one that fits. Of NVIDIA's own, triton ships several versions in folders of their own: there the name counts.
    """
    folder, _, name = path.rpartition("/")
    if vendors(path):
        return name.partition(".")[0]
    return f"{folder}/{_BUILD_OF.sub('#', name)}"


def vendors(path: str) -> bool:
    """Whether a file is one of NVIDIA's own libraries, which choose a kernel for the GPU that they find."""
    return bool(_NVIDIA.fullmatch(path.rsplit("/", 1)[-1].rsplit("::", 1)[-1]))
