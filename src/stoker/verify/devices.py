"""GPUs by name or number. Unaware of binaries, and of which GPUs this machine has."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from stoker.verify.archs import Arch, ArchError, parse_arch


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. Memory in bytes; `cuda` is the newest CUDA version that its driver serves; None is unknown."""

    name: str
    arch: Arch
    memory: int | None = None
    driver: str = ""
    cuda: tuple[int, int] | None = None


KNOWN: tuple[tuple[str, str], ...] = (
    ("K80", "3.7"),
    ("M40|M60|GTX9[5-8]0(?:TI)?", "5.2"),
    ("JETSONNANO", "5.3"),
    ("P100|GP100", "6.0"),
    ("P40|P4|TITANXP|GTX10[5-8]0(?:TI)?", "6.1"),
    ("JETSONTX2|TX2", "6.2"),
    ("V100S?|TITANV|GV100", "7.0"),
    ("JETSONAGXXAVIER|JETSONXAVIERNX|XAVIER(?:NX)?", "7.2"),
    ("T4G?|TITANRTX|QUADRORTX[3-8]000|T[4-6]00|T1000|T1200|T2000|RTX20[5-8]0(?:TI|SUPER)?|GTX16[356]0(?:TI|SUPER)?",
     "7.5"),
    ("A100X?|A30|A800|GA100", "8.0"),
    ("A40|A10[GM]?|A16|A2|RTXA[2-6]000|A[2-6]000|RTXA[4-5]500|RTX30[5-9]0(?:TI)?", "8.6"),
    ("JETSONAGXORIN|JETSONORINNX|JETSONORINNANO|ORIN(?:NX|NANO)?", "8.7"),
    ("L4|L40[SG]?|L20|L2|RTX[2-6]0000?ADA(?:GENERATION)?|RTX4[05]00ADA(?:GENERATION)?|RTX40[5-9]0(?:TI|D|SUPER|TISUPER)?",
     "8.9"),
    ("H100|H200|H800|H20|GH200", "9.0"),
    ("B100|B200|GB200", "10.0"),
    ("B300|GB300", "10.3"),
    ("(?:AGX)?THOR|JETSONAGXTHOR|JETSONTHOR|JETSONT[45]000|T[45]000", "11.0"),
    ("RTX50[5-9]0(?:TI|D)?|RTXPRO[2-6][05]00(?:BLACKWELL)?", "12.0"),
    ("GB10|DGXSPARK", "12.1"),
)  # fmt: skip
"""GPU names, as `_bare` leaves them, and their capability (NVIDIA's pages "CUDA GPU Compute Capability")."""

_PATTERNS = tuple((re.compile(pattern), capability) for pattern, capability in KNOWN)
_SAYS_NOTHING = re.compile(
    r"NVIDIA|GEFORCE|TESLA|GRAPHICS|GPU|DRIVE|SXM\d?|PCIE|NVL\d*|HBM\d?E?|\d+GB|LAPTOP|MOBILE|MAX|Q|MAXQ|WORKSTATION|SERVER"
    r"|EDITION|SUPERCHIP|DEVELOPER|KIT|SFF"
)
"""Words around a GPU's name: brand, memory, form, edition."""

_EXAMPLES = (
    "V100", "T4", "A100", "A40", "A10", "RTX3090", "ORIN", "L4", "L40S", "RTX4090", "H100", "H200", "GH200", "B200",
    "GB200", "B300", "THOR", "RTX5090", "RTXPRO6000", "GB10",
)  # fmt: skip


def _bare(name: str) -> str:
    words = re.findall(r"[A-Z0-9]+", name.upper())
    return "".join(w for w in words if not _SAYS_NOTHING.fullmatch(w))


def device_of(text: str) -> Device:
    """A device by capability (9.0, sm_90) or by name (A100, "GeForce RTX 4090"); raises ArchError."""
    try:
        arch = parse_arch(text)
    except ArchError:
        pass
    else:
        if arch.major < 1 or arch.variant:
            raise ArchError(f"a device has a plain compute capability such as 9.0, not {text!r}")
        return Device(f"compute capability {arch.number}", arch)
    bare = _bare(text)
    for pattern, capability in _PATTERNS:
        if pattern.fullmatch(bare) or pattern.fullmatch(f"RTX{bare}"):
            return Device(text.strip(), parse_arch(capability))
    near = difflib.get_close_matches(bare, _EXAMPLES, 1)
    hint = f"did you mean {near[0]}?" if near else "give its compute capability, as in --device 9.0"
    raise ArchError(f"unknown device {text!r}; {hint}")
