"""Libraries that others load by name at run time, so that nothing links against them. Pure names.

From PyTorch's own packaging (.ci/manywheel, until mid-2026) and from what these libraries pass to dlopen.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Companions(NamedTuple):
    """Who loads which files beside it, as a pattern for `glob`, and whether it cannot work without."""

    loader: re.Pattern[str]
    pattern: str
    vital: bool


COMPANIONS = (
    Companions(re.compile(r"libnvrtc\.so\.\d+(?:\.\d+)*"), "libnvrtc-builtins.so*", vital=True),
    Companions(re.compile(r"libcudnn\.so\.\d+"), "libcudnn_*.so*", vital=True),
    Companions(re.compile(r"libcufile\.so\.\d+"), "libcufile_rdma.so*", vital=False),
    Companions(re.compile(r"libcupti\.so\.\d+"), "libnvperf_host.so*", vital=False),
    Companions(re.compile(r"libnvshmem_host\.so\.\d+"), "nvshmem_bootstrap_*.so*", vital=False),
    Companions(re.compile(r"libnvshmem_host\.so\.\d+"), "nvshmem_transport_*.so*", vital=False),
)
"""Without libnvrtc-builtins nvrtc compiles nothing (its error 7)."""

_KEPT = re.compile(r"lib(?:cudnn|cublas|nvrtc-builtins|gomp)[\w-]*\.so(?:\.[\d.]+)?")
"""cuDNN loads cuBLAS and its own parts by name, nvrtc its builtins; a second OpenMP in a process makes more threads
than there are cores."""


_OF_CUDNN = re.compile(r"libnvrtc\.so\.\d+(?:\.\d+)*")


def loaded_by_cudnn(name: str) -> bool:
    """Whether cuDNN asks for a library by name, where it compiles kernels (libcudnn_graph.so.9: "libnvrtc.so.%d")."""
    return bool(_OF_CUDNN.fullmatch(name))


def keeps_its_name(name: str) -> bool:
    """Whether a library is asked for by its own name at run time, so that a hash in it would hide it."""
    return bool(_KEPT.fullmatch(name))
