"""Asks torch about itself in a subprocess: importing it here would take seconds and memory, and could crash.

`get_arch_list()` is empty on a machine without a GPU, and it names what the build was asked for, not what the binaries
contain. So the script reads the flags behind it, and the report shows them beside what the binaries contain.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoker.model.report import TorchFacts
from stoker.verify.python_probe import NoProbeAnswerError, ask

SECONDS = 60.0
"""Importing torch takes 2 s warm, and may take 30 s from a cold network disk."""

_SCRIPT = """
import json, sys
sys.path[:0] = [p for p in sys.argv[1:] if p]
import torch
def get(question):
    try:
        return question()
    except Exception:
        return None
def flags():
    return torch.cuda.get_arch_list() or (torch._C._cuda_getArchFlags() or "").split()
def dotted(version):
    return ".".join(map(str, version)) if isinstance(version, tuple) else str(version or "")
count = get(torch.cuda.device_count) or 0
answer = {
    "version": str(torch.__version__),
    "cuda": str(torch.version.cuda or ""),
    "arch_list": get(flags) or [],
    "capabilities": get(lambda: ["%d.%d" % torch.cuda.get_device_capability(i) for i in range(count)]) or [],
    "cxx11_abi": get(torch.compiled_with_cxx11_abi),
    "cudnn": str(get(torch.backends.cudnn.version) or ""),
    "nccl": dotted(get(lambda: torch.cuda.nccl.version())),
    "path": str(torch.__file__),
}
print()
print("stoker-answer:" + json.dumps(answer))
"""


def ask_torch(python: str, folder: Path | None, environment: Mapping[str, str], seconds: float = SECONDS) -> TorchFacts:
    """Return torch's answers, from the copy in `folder`, otherwise from the one that `python` finds. Never raises."""
    try:
        answer = ask(python, _SCRIPT, [str(folder) if folder else ""], environment, seconds)
        return _facts(answer)
    except NoProbeAnswerError as err:
        return TorchFacts(error=str(err))


def _facts(answer: Any) -> TorchFacts:
    if not isinstance(answer, dict):
        raise NoProbeAnswerError("its answer is invalid")
    abi = answer.get("cxx11_abi")
    return TorchFacts(
        version=str(answer.get("version", "")),
        cuda=str(answer.get("cuda", "")),
        arch_list=tuple(map(str, answer.get("arch_list") or ())),
        capabilities=tuple(map(str, answer.get("capabilities") or ())),
        cxx11_abi=abi if isinstance(abi, bool) else None,
        cudnn=str(answer.get("cudnn", "")),
        nccl=str(answer.get("nccl", "")),
        path=str(answer.get("path", "")),
    )
