"""Recognises builds of one library for several GPUs, and NVIDIA's own libraries, by their names alone. Pure."""

from __future__ import annotations

import re

_NVIDIA = re.compile(
    r"lib(?:cublas|cudadevrt|cudensitymat|cudnn|cudss|custatevec|cufft|curand|cusolver|cusparse|cutensor|nccl|npp|nvonnxparser|nvfatbin|nvJitLink|nvvm|nvblas|nvpl|nvjpeg|nvshmem|nvrtc|nvinfer|cufile|cupti|checkpoint|nvcomp|nvimgcodec|nvperf|nvtiff)"
    r"[\w-]*(?:\.[0-9a-f]{8})?\.(?:so(?:\.[\d.]+)?|a)|libtensorrt_rtx[\w-]*\.so(?:\.[\d.]+)?"
)
_NVIDIAS_FOLDER = re.compile(r"(?:^|.*(?:::|/))(?:nvidia/(?:[\w.]+/){1,2}(?:lib|lib64)|tensorrt\w*_libs)/[^/]*")
"""The folders in NVIDIA's packages: nvidia/cublas/lib, nvidia/cu13/lib, tensorrt_rtx_libs."""
_FOLDER_OF_BUILD = re.compile(r"(?:cuda|cu|rocm|hip|vulkan|sycl|metal|cpu|basic|noavx|avx|avx2|avx512)[\d.]*")
_FOLDER_FOR_TORCH = re.compile(r"/torch-?\d+\.\d[\w.+]*(?=/|$)")
_BUILD_OF = re.compile(r"(?:cuda|cu|sm|compute|rocm|xpu)_?\d+[af]?|cpu")


def library(path: str) -> str:
    """Return a library's path without the CUDA version or architecture in its name.

    Packages such as bitsandbytes ship `libbitsandbytes_cuda118.so` beside `..._cuda130.so` and `..._cpu.so`, and load
    the one that fits; ctransformers has lib/cuda/libctransformers.so beside lib/avx2/libctransformers.so, and vesin
    torch-2.13/lib/libvesin_torch.so beside those for eleven other versions of torch. Triton ships several versions of
    NVIDIA's libraries in separate folders; for those only the name counts.
    """
    folder, _, name = path.rpartition("/")
    if vendors(path):
        return name.partition(".")[0]
    parent, _, last = folder.rpartition("/")
    if _FOLDER_OF_BUILD.fullmatch(last):
        folder = f"{parent}/#"
    return f"{_FOLDER_FOR_TORCH.sub('/#', folder)}/{_BUILD_OF.sub('#', name)}"


def vendors(path: str) -> bool:
    """Whether a file is one of NVIDIA's own libraries, which choose a kernel for the GPU that they find."""
    name = path.rsplit("/", 1)[-1].rsplit("::", 1)[-1]
    return bool(_NVIDIA.fullmatch(name) or _NVIDIAS_FOLDER.fullmatch(path))


def only_linked_with(path: str) -> bool:
    """Whether a file only serves to link with: a static library in a package, which nothing loads, and NVIDIA's device
    runtime anywhere, which some packages (cumm, cuda-runtime) ship for others."""
    name = path.rsplit("/", 1)[-1].rsplit("::", 1)[-1]
    return name in _DEVICE_RUNTIMES or (name.endswith(".a") and bool(_IN_A_PACKAGE.search(path)))


_DEVICE_RUNTIMES = ("libcudadevrt.a", "cudadevrt.lib")
_IN_A_PACKAGE = re.compile(r"::|/(?:site|dist)-packages/")

_RUNTIME_COMPILER = re.compile(r"libnvrtc[\w.-]*\.so(?:\.[\d.]+)?|nvrtc64_[\w]+\.dll")


def runtime_compiler(name: str) -> bool:
    """Whether a library of this name is NVRTC."""
    return bool(_RUNTIME_COMPILER.fullmatch(name))
