"""Missing libraries, found as the machine's own dynamic linker finds them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.verify.binary.byte_source import Deadline, FileSource
from stoker.verify.binary.elf import Dynamic, read_dynamic, read_elf
from stoker.verify.linking.libraries import (
    CACHE,
    Linker,
    MissingLibrary,
    SharedLibrary,
    foreign_paths,
    provider,
    read_cache,
)
from stoker.verify.linking.requirements import bringer
from stoker.verify.pipeline import VerifyRequest, verify

Compile = Callable[..., Path]
LEAF = "int leaf(void) { return 1; }"
MIDDLE = "int leaf(void); int middle(void) { return leaf(); }"
ROOT = "int middle(void); int root(void) { return middle(); }"
OLD, NEW = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"


def missing(path: Path, **environment: str) -> list[MissingLibrary]:
    with FileSource(path) as source:
        elf = read_elf(source)
        dynamic = read_dynamic(source, elf)
    assert dynamic is not None
    return list(Linker(environment).load(SharedLibrary(path, elf, dynamic), Deadline()).missing)


def ldd(path: Path, **environment: str) -> set[str]:
    """What ldd calls not found. It runs the dynamic linker on the file, which is why stoker does not use it."""
    done = subprocess.run(
        ["ldd", str(path)], env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True
    )
    return set(re.findall(r"(\S+) => not found", done.stdout))


def named(lost: list[MissingLibrary]) -> set[str]:
    return {m.name for m in lost}


@pytest.fixture
def chain(cc: Compile) -> Callable[..., Path]:
    """root -> middle -> leaf, in folders of their own, with the search paths named; libc for good measure."""

    def build(tags: str, root: str = "", middle: str = "") -> Path:
        leaf = cc("leaf/libleaf.so", LEAF, "-Wl,-soname,libleaf.so")
        paths = [f"-Wl,-rpath,{middle}"] if middle else []
        between = cc("middle/libmiddle.so", MIDDLE, "-Wl,-soname,libmiddle.so", tags, *paths, str(leaf))
        paths = [f"-Wl,-rpath,{root}"] if root else []
        hidden = "-Wl,--allow-shlib-undefined"
        return cc("root/libroot.so", ROOT, tags, hidden, *paths, str(between), "-lc")

    return build


@pytest.mark.parametrize("tags", [OLD, NEW])
@pytest.mark.parametrize("root", ["", "$ORIGIN/../middle", "${ORIGIN}/../middle:$ORIGIN/../leaf", "$ORIGIN/../leaf"])
@pytest.mark.parametrize("middle", ["", "$ORIGIN/../leaf"])
def test_the_same_is_missing_as_by_ldd(chain: Callable[..., Path], tags: str, root: str, middle: str) -> None:
    path = chain(tags, root, middle)

    assert named(missing(path)) == ldd(path)


def test_a_search_path_of_the_environment_counts(chain: Callable[..., Path], tmp_path: Path) -> None:
    path = chain(NEW)
    folders = f"{tmp_path}/middle:{tmp_path}/leaf"

    assert named(missing(path)) == ldd(path) == {"libmiddle.so"}
    assert missing(path, LD_LIBRARY_PATH=folders) == []
    assert ldd(path, LD_LIBRARY_PATH=folders) == set()


def test_the_folders_that_were_tried_are_told(chain: Callable[..., Path], tmp_path: Path) -> None:
    path = chain(NEW, "$ORIGIN/nowhere")

    [problem] = [p for p in verify(VerifyRequest([str(path)], environment={})).problems if p.severity == "error"]

    assert "libmiddle.so is missing" in problem.what
    assert str(tmp_path / "root/nowhere") in problem.what
    assert "/usr/lib" in problem.what
    assert "LD_LIBRARY_PATH" in problem.remedy


def test_a_library_for_another_machine_is_passed_over(chain: Callable[..., Path], tmp_path: Path) -> None:
    path = chain(NEW, "$ORIGIN/../middle", "$ORIGIN/../leaf")
    leaf = tmp_path / "leaf/libleaf.so"
    data = bytearray(leaf.read_bytes())
    data[18:20] = (22).to_bytes(2, "little")
    leaf.write_bytes(data)

    assert named(missing(path)) == {"libleaf.so"}
    leaf.write_bytes(b"not a library")
    assert named(missing(path)) == {"libleaf.so"}


def test_what_a_verified_library_lacks_is_told_once(chain: Callable[..., Path], tmp_path: Path) -> None:
    chain(NEW, "$ORIGIN/../middle")

    problems = [p for p in verify(VerifyRequest([str(tmp_path)], environment={})).problems if p.severity == "error"]

    assert [Path(p.file).name for p in problems] == ["libmiddle.so"]


def test_libraries_that_need_each_other_do_not_go_round_for_ever(cc: Compile) -> None:
    first = cc("liba.so", "int a(void) { return 1; }", "-Wl,-soname,liba.so")
    second = cc(
        "libb.so", "int a(void); int b(void) { return a(); }", "-Wl,-soname,libb.so", "-Wl,-rpath,$ORIGIN", str(first)
    )
    cc("liba.so", "int b(void); int a(void) { return b(); }", "-Wl,-soname,liba.so", "-Wl,-rpath,$ORIGIN", str(second))

    assert missing(first) == []


def test_the_cache_is_read_as_ldconfig_prints_it() -> None:
    if not CACHE.exists():
        pytest.skip("this machine has no ld.so.cache")
    text = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    expected = {(name, path) for name, path in re.findall(r"^\t(\S+) \(.*\) => (\S+)$", text, re.MULTILINE)}

    found = {(name, path) for name, paths in read_cache(CACHE).items() for path in paths}

    assert found == expected
    assert found


@pytest.mark.parametrize("data", [b"", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.1" + b"\xff" * 400])
def test_a_broken_cache_is_an_empty_one(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "cache"
    path.write_bytes(data)

    assert not any(p for paths in read_cache(path).values() for p in paths)


@pytest.mark.parametrize(
    ("name", "needed", "user", "who"),
    [
        ("librocprofiler-sdk.so.1", (), "xla_rocm_plugin.so", "ROCm"),
        ("libamd_smi.so.26", (), "xla_rocm_plugin.so", "ROCm"),
        ("libcuda.so.1", (), "x.so", "the NVIDIA driver"),
        ("libc10.so", (), "_C.so", "torch"),
        ("libcudart.so.13", ("libc10.so", "libcudart.so.13"), "_C.so", "torch"),
        ("libcudart.so.13", ("libcudart.so.13",), "_C.so", ""),
        ("libcudart.so.13", ("libc10.so", "libcudart.so.13"), "libtorch_cuda.so", ""),
        ("libpython3.11.so.1.0", (), "x.so", "Python"),
        ("libfoo.so", ("libc10.so",), "_C.so", ""),
    ],
)
def test_who_brings_a_library_that_is_nowhere(name: str, needed: tuple[str, ...], user: str, who: str) -> None:
    assert provider(name, needed, user) == who


def test_search_paths_of_the_build_machine_are_found(tmp_path: Path) -> None:
    here = str(tmp_path)
    dynamic = Dynamic(rpath=("$ORIGIN/x", "/usr/lib/x", "/__w/_temp/conda/lib", here), runpath=("", "relative"))

    assert foreign_paths(dynamic, packaged=True) == ["/__w/_temp/conda/lib", here, "", "relative"]
    assert foreign_paths(dynamic, packaged=False) == ["/__w/_temp/conda/lib", "", "relative"]


def test_an_extension_of_torch_is_no_error_without_torch(cc: Compile) -> None:
    torch = cc("libc10.so", LEAF, "-Wl,-soname,libc10.so")
    path = cc("_C.so", MIDDLE, str(torch))
    torch.unlink()

    report = verify(VerifyRequest([str(path)], environment={}))

    assert report.exit_status() == 0
    assert any("torch brings it" in p.what for p in report.problems)


@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        ("librmm.so", "librmm-cu12"),
        ("libcublasLt.so.13", "nvidia-cublas"),
        ("libcudart.so.12", "nvidia-cuda-runtime-cu12"),
        ("libcudnn_ops.so.9", "nvidia-cudnn-cu13"),
        ("libnvcomp.so.6", "nvidia-libnvcomp-cu12"),
        ("libcufft.so.12", "cuda-toolkit[cublas,cufft]"),
        ("libfoo.so", ""),
    ],
)
def test_a_requirement_is_known_by_its_name_to_bring_a_library(name: str, requirement: str) -> None:
    assert bringer(name, ["numpy", requirement or "librmm-cu12"]) == requirement
