"""GPUs by name: as nvidia-smi and torch print them, and as people write them. Pure text.

Capabilities are those of NVIDIA's pages "CUDA GPU Compute Capability" and "Legacy CUDA GPU Compute Capability"; for
names that are not there (mobile and rebranded GPUs), those of the chip.
"""

from __future__ import annotations

import difflib
import re

KNOWN: tuple[tuple[str, str], ...] = (
    ("K10|GTX6[6-9]0(?:TI)?", "3.0"),
    ("JETSONTK1|TK1", "3.2"),
    ("K[24]0[CMSTX]?|GTXTITAN(?:BLACK|Z)?|GTX780(?:TI)?", "3.5"),
    ("K80M?", "3.7"),
    ("M10|GTX7[45]0(?:TI)?|GTX9[56]0M|M[56]20|M1200|M[12]000M|K2200|K1200|K620", "5.0"),
    ("M4|M6|M40|M60|GTX9[5-8]0(?:TI)?|GTX9[78]0M|GTX965M|GTXTITANX|M[2456]000|M[345]000M|M2200|M5500", "5.2"),
    ("JETSONNANO|(?:JETSON)?TX1|X1", "5.3"),
    ("P100|GP100", "6.0"),
    ("P4|P6|P40|TITANXP|TITANXPASCAL|GTX10[5-8]0(?:TI)?|GTX?10[13]0|MX(?:[12]50|230|3[35]0)", "6.1"),
    ("P[1-6]000|P[2-5]200|P[56][02]0|P400", "6.1"),
    ("(?:JETSON)?TX2(?:I|NX)?", "6.2"),
    ("V100(?:S|DX?|[LX])?|TITANV(?:CEO)?|GV100|PG503\\d*", "7.0"),
    ("(?:JETSON)?(?:AGX)?XAVIER(?:NX)?", "7.2"),
    ("T4G?|T10|T40|TITANRTX|QUADRORTX[34568]000|RTX8000|T[456]00|T550|T1000|T1200|T2000|CMP[345]0HX", "7.5"),
    ("RTX20[678]0(?:TI|SUPER)?|GTX16[356]0(?:TI|SUPER)?|MX[45]50", "7.5"),
    ("A100(?:X|DX?)?|A30X?|A800D?|GA100|PG506\\d*|CMP170HX", "8.0"),
    ("A2|A10[GM]?|A16|A40|RTXA(?:[1-6]000|[45]500|400|500)|RTX30[5-9]0(?:TI)?|RTX2050|MX570A?|CMP90HX", "8.6"),
    ("(?:JETSON|IGX)?(?:AGX)?ORIN(?:NX|NANO|[57]00)?(?:SUPER)?", "8.7"),
    ("L2|L4|L20|L40[GS]?|RTX(?:500|[1-6]000|3500|4500|5880)ADA|RTX40[5-9]0(?:TI|D|SUPER|TISUPER)?", "8.9"),
    ("H100(?:L|X[LM])?|H200X?|H800(?:L|XM)?|H20X?|GH[12]00", "9.0"),
    ("G?B[12]00", "10.0"),
    ("G?B300", "10.3"),
    ("R[12]00|VR200|RUBIN|VERARUBIN", "10.7"),
    ("(?:JETSON|IGX)?(?:AGX)?THOR|(?:JETSON)?T[45]000|IGX(?:THOR)?T[57]000", "11.0"),
    ("RTX50[5-9]0(?:TI|SUPER|TISUPER|D|DV2)?|RTXPRO(?:[1-6]000|[45]500|500)(?:BLACKWELL)?|RTX6000D", "12.0"),
    ("RTX(?:[1-6]000|[45]500|500)PRO(?:BLACKWELL)?", "12.0"),
    ("GB10|SPARK", "12.1"),
)  # fmt: skip
"""Patterns for names, as `_bare` returns them, and their capability."""

_PATTERNS = tuple((re.compile(pattern), capability) for pattern, capability in KNOWN)

_SEVERAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?:RTX)?([3-6]000)"),
        "Quadro RTX {0} (7.5), RTX A{0} (8.6), RTX {0} Ada (8.9) or RTX PRO {0} (12.0)",
    ),
    (re.compile(r"TITANX()"), "GTX TITAN X (5.2) or TITAN X Pascal (6.1)"),
)
"""Names that several GPUs share, and what to write instead."""

_PART = re.compile(r"\bMIG\b.*|-(?:\d+-)?\d+(?:Q|CME|[ABC])(?![A-Z0-9])")
"""A part of a GPU: MIG (`H100 80GB HBM3 MIG 1g.10gb`), or a virtual GPU (`A40-48Q`, `A100-4-20C`)."""

_QUADRO = re.compile(r"\bQUADRO\b(?!\s*RTX)")
"""Ignored like other brands, except before RTX: the Quadro RTX 6000 is not the RTX 6000 Ada."""

_SAYS_NOTHING = re.compile(
    r"NVIDIA|GEFORCE|TESLA|GRID|TEGRA|GRAPHICS|GPU|NVGPU|DRIVE|[DH]GX|DGXS|SXM\d?|PCIE|NVL\d*|CNX|FHHL|AC|LS|DC"
    r"|HBM\d?E?|3E|\d+GB?|LAPTOP|MOBILE|MAX|Q|MAXQ|WITH|DESIGN|WORKSTATION|SERVER|ACTIVE|EDITION|GENERATION|SUPERCHIP"
    r"|DEVELOPER|KIT|SFF|LITE|HASH|RATE"
)
"""Words around a GPU's name: brand, memory, form factor, edition."""

_OTHERS = (
    (re.compile(r"\b(?:AMD|RADEON|INSTINCT|MI\d{1,3}[AX]?|RX ?\d{4}\w*|GFX\d+\w?)\b"), "AMD"),
    (re.compile(r"\b(?:INTEL|ARC|GAUDI|PONTE)\b"), "Intel"),
)
"""Other makers' GPUs, as people write them."""

_EXAMPLES = (
    "V100", "T4", "A100", "A40", "A10", "RTX3090", "ORIN", "L4", "L40S", "RTX4090", "H100", "H200", "GH200", "B200",
    "GB200", "B300", "RUBIN", "THOR", "RTX5090", "RTXPRO6000", "GB10",
)  # fmt: skip


def capability_of(name: str) -> str:
    """Return the compute capability (9.0) of a GPU by its name; empty for a name that is unknown or ambiguous."""
    bare = _bare(name)
    if any(pattern.fullmatch(bare) for pattern, _ in _SEVERAL):
        return ""
    # "4090", "A6000" and "1080 Ti" are names too.
    for candidate in (bare, f"RTX{bare}", f"GTX{bare}"):
        for pattern, capability in _PATTERNS:
            if pattern.fullmatch(candidate):
                return capability
    return ""


def hint(name: str) -> str:
    """Return what to write instead of an unknown name; empty if unclear."""
    for pattern, maker in _OTHERS:
        if pattern.search(name.upper()):
            return f"that is a GPU of {maker}; code is judged only for NVIDIA's"
    bare = _bare(name)
    for pattern, others in _SEVERAL:
        if match := pattern.fullmatch(bare):
            return f"that name fits several GPUs: write {others.format(match[1])}"
    near = difflib.get_close_matches(bare, _EXAMPLES, 1)
    return f"did you mean {near[0]}?" if near else ""


def _bare(name: str) -> str:
    text = _QUADRO.sub(" ", _PART.sub(" ", name.upper()))
    words = re.findall(r"[A-Z0-9]+", text)
    return "".join(w for w in words if not _SAYS_NOTHING.fullmatch(w))
