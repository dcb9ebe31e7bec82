"""Compares stoker's reading of real wheels with that of other tools, and measures it; or fuzzes it.

    python -m bench.verify compare torch-2.9.1-....whl xformers-....whl
    python -m bench.verify corpus [--keep FOLDER] [WHEEL...]
    python -m bench.verify fuzz --cases 2000 lib.so lib.a some.whl

`compare` and `corpus` need `cuobjdump` on PATH or in the package nvidia-cuda-cuobjdump, `corpus` auditwheel too
(`pip install auditwheel`), and fetches its wheels itself. Those of `compare` come from `pip download --no-deps`; only
their shared libraries are unpacked, one at a time, for cuobjdump alone. `fuzz` leaves files of 8 MiB and more alone.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from bench.verify_corpus import corpus
from stoker.model.report import FileReport
from stoker.verify.pipeline import VerifyRequest, verify

HEADING = re.compile(r"^Fatbin (elf|ptx) code:", re.MULTILINE)
ARCH = re.compile(r"^arch = sm_(\w+)", re.MULTILINE)


def cuobjdump() -> str:
    """The program's path; exits when there is none."""
    found = shutil.which("cuobjdump")
    if found is None:
        for file in metadata.files("nvidia-cuda-cuobjdump") or ():
            if file.name == "cuobjdump":
                return str(file.locate())
        sys.exit("cuobjdump is not there: pip install nvidia-cuda-cuobjdump")
    return found


def listed(program: str, path: Path) -> tuple[Counter[str], str]:
    """What cuobjdump finds (sm_90a for machine code, compute_90a for PTX), and why it gave up if it did."""
    if path.suffix == ".cubin":
        done = subprocess.run([program, "--list-elf", path], capture_output=True, text=True, check=False)
        names = [f"sm_{name}" for name in re.findall(r"\.sm_(\w+)\.cubin$", done.stdout, re.MULTILINE)]
    else:
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        kinds, archs = HEADING.findall(done.stdout), ARCH.findall(done.stdout)
        names = [("sm_" if k == "elf" else "compute_") + a for k, a in zip(kinds, archs, strict=False)]
    return Counter(names), done.stderr.strip() if done.returncode else ""


def read(file: FileReport) -> Counter[str]:
    """The same from stoker's report."""
    return Counter({a.arch: a.count for a in file.archs})


def unpacked(wheel: Path, names: set[str]) -> Iterator[tuple[str, Path]]:
    """The wheel's members of these names, one at a time on disk."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        for name in names & set(archive.namelist()):
            path = Path(folder) / Path(name).name
            with archive.open(name) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            yield name, path
            path.unlink()


def compare(paths: list[Path], limit: int) -> int:
    """Print one line for each binary with device code; returns 1 when any differs."""
    program, differing = cuobjdump(), 0
    for path in paths:
        report = verify(VerifyRequest([str(path)], devices=["9.0"]))
        wheel = path.suffix == ".whl"
        found = {f.path.partition("::")[2] if wheel else f.path: f for f in report.files if f.archs}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{path.name}: {len(report.files)} binaries, {report.seconds:.2f} s, process so far {peak:.0f} MiB")
        names = set(sorted(found)[:: max(1, len(found) // limit)])
        for name, place in unpacked(path, names) if wheel else ((n, Path(n)) for n in names):
            started = time.perf_counter()
            verify(VerifyRequest([str(place)], devices=["9.0"]))
            took = 1000 * (time.perf_counter() - started)
            (theirs, failure), ours = listed(program, place), read(found[name])
            # cuobjdump names a family cubin by itself after its number alone.
            plain = Counter({k.rstrip("f") if place.suffix == ".cubin" else k: v for k, v in ours.items()})
            same = theirs in (ours, plain)
            differing += not same and not failure
            word = "same" if same else f"cuobjdump gave up ({failure})" if failure else "DIFFERS"
            print(f"  {word}  {name}  {place.stat().st_size / 1e6:.0f} MB  {took:.0f} ms")
            if not same:
                print(f"    cuobjdump {dict(theirs)}\n    stoker    {dict(ours)}")
            elif len(names) < 20:
                print("    " + ", ".join(f"{k} {v}" for k, v in sorted(ours.items())))
    return int(differing > 0)


def mutate(rng: random.Random, data: bytearray) -> None:
    """Damage some bytes, where the structure is as often as elsewhere."""
    places = [m.start() for m in re.finditer(rb"\x50\xed\x55\xba|\x7fELF|PK\x01\x02|PK\x03\x04|PK\x05\x06|`\n", data)]
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        near = rng.choice(places) if places and rng.random() < 0.7 else rng.randrange(max(1, len(data)))
        at = min(len(data) - 1, max(0, near + rng.randrange(-8, 120)))
        width = rng.choice((1, 2, 4, 8))
        value = rng.choice((0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, rng.getrandbits(64), len(data)))
        data[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    if rng.random() < 0.2:
        del data[rng.randrange(len(data)) :]


_MAX_SEED = 8 << 20
"""Bytes of a file that is damaged again and again."""


def fuzz(paths: list[Path], wanted: int, seed: int) -> int:
    """Damage copies of small files and verify them; a crash shows itself, slow cases are printed."""
    rng = random.Random(seed)
    seeds = [p for p in paths if p.stat().st_size < _MAX_SEED]
    if not seeds:
        sys.exit(f"fuzz takes files below {_MAX_SEED >> 20} MiB, and every one named is larger")
    slowest = first = 0.0
    with tempfile.TemporaryDirectory(prefix="stoker-fuzz-") as folder:
        for cases in range(1, wanted + 1):
            origin = rng.choice(seeds)
            data = bytearray(origin.read_bytes())
            mutate(rng, data)
            place = Path(folder) / origin.name
            place.write_bytes(data)
            started = time.monotonic()
            verify(
                VerifyRequest([str(place)], arch_list="8.0;9.0+PTX", devices=["9.0"], environment={"PATH": "/usr/bin"})
            )
            took = time.monotonic() - started
            if took > max(2.0, slowest):
                shutil.copy(place, f"/tmp/stoker-slow-{cases}-{origin.name}")
                print(f"slow: case {cases} from {origin.name}: {took:.2f} s, kept")
            slowest = max(slowest, took)
            if cases == 200:
                first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{wanted} cases, no crash; slowest {slowest:.2f} s; peak {peak:.0f} MiB ({first:.0f} after 200)")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compare", "corpus", "fuzz"))
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument(
        "--keep", type=Path, help="a folder for the wheels of the corpus; else each is deleted once judged"
    )
    parser.add_argument("--limit", type=int, default=200, help="binaries of one wheel that are compared")
    parser.add_argument("--cases", type=int, default=2000, help="files that are damaged")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_intermixed_args()
    if args.what == "corpus":
        program = cuobjdump()
        return corpus(args.keep, args.paths, lambda path: listed(program, path))
    if args.what == "compare":
        return compare(args.paths, args.limit)
    return fuzz(args.paths, args.cases, args.seed)


if __name__ == "__main__":
    sys.exit(main())
