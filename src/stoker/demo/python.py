"""The demo where there is no compiler: the same shape of build, its jobs Python that takes real memory and CPU time.

Unaware of where the files are written.
"""

from __future__ import annotations

from stoker.demo.ninjafile import NinjaFile
from stoker.demo.opening import WORK, add_opening
from stoker.demo.sizing import PYTHON_LIGHT_SHARE, DemoPlan

_OTHER_MIB = 8


def python_project(plan: DemoPlan, *, fail: bool) -> dict[str, str]:
    """Return the project's files by name."""
    ninja = NinjaFile()
    _, large = add_opening(ninja, plan)

    def job(
        output: str, inputs: list[str], mib: int = _OTHER_MIB, share: float = PYTHON_LIGHT_SHARE, flags: str = ""
    ) -> str:
        seconds = f"{share * plan.seconds_each:.3f}"
        return ninja.edge(output, "work", inputs, implicit=["work.py"], seconds=seconds, mib=str(mib), flags=flags)

    generated = [job(f"gen/kernel_{n:02}.txt", large) for n in range(plan.medium)]
    kernels = [
        job(f"obj/kernel_{n:02}.o", [generated[n % len(generated)]], mib, 1.0) for n, mib in enumerate(plan.heavy)
    ]
    light = [job(f"obj/grate_{n:02}.o", large) for n in range(plan.light)]
    grate = job("lib/libgrate.a", light)
    check = job("obj/check_gauge.o", [grate], flags="--fail" if fail else "")
    program = job("bin/furnace", [job("lib/libkernel.a", kernels), check, grate])
    return {"work.py": WORK, "build.ninja": ninja.text(job("selftest.txt", [program]))}
