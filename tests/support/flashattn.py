"""The flash-attn sdist cut down to three of its 72 kernels, so that the extension still links and every kernel is real.

Kernel files stay as they are. Only setup.py's list of sources and the dispatch in flash_api.cpp are shortened: half
precision, head dimension 32, not causal; forward, split forward and backward.
"""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

KERNELS = ("flash_fwd_hdim32_fp16_sm80", "flash_fwd_split_hdim32_fp16_sm80", "flash_bwd_hdim32_fp16_sm80")
"""The smallest of each kind; `sm80` is part of the names, whatever architecture they are compiled for."""

_DISPATCH = """
#undef FP16_SWITCH
#define FP16_SWITCH(COND, ...) [&] { using elem_type = cutlass::half_t; return __VA_ARGS__(); }()
#undef HEADDIM_SWITCH
#define HEADDIM_SWITCH(HEADDIM, ...) [&] { constexpr static int kHeadDim = 32; return __VA_ARGS__(); }()
#define CAUSAL_SWITCH(COND, NAME, ...) [&] { constexpr static bool NAME = false; return __VA_ARGS__(); }()
"""


def unpack_few(sdist: Path, folder: Path) -> Path:
    """The source tree, below `folder`, with three kernels."""
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    setup = tree / "setup.py"
    left = re.compile(r'\n *"csrc/flash_attn/src/(\w+)\.cu",')
    text = left.sub(lambda found: found[0] if found[1] in KERNELS else "", setup.read_text())
    assert tuple(sorted(left.findall(text))) == tuple(sorted(KERNELS)), "setup.py is of another form"
    setup.write_text(text)
    api = tree / "csrc" / "flash_attn" / "flash_api.cpp"
    text = api.read_text().replace('#include "static_switch.h"\n', '#include "static_switch.h"\n' + _DISPATCH)
    shorter = text.replace("BOOL_SWITCH(params.is_causal,", "CAUSAL_SWITCH(params.is_causal,")
    assert shorter.count("CAUSAL_SWITCH(params") == 2, "flash_api.cpp is of another form"
    api.write_text(shorter)
    return tree
