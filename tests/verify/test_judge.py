"""Verdicts: which device runs what, what was asked for, and drivers that are too old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stoker.model.report import DeviceReport, HeldArch, Problem, Report, RequestedArch
from stoker.verify.archs import Wanted, parse_arch, parse_arch_list
from stoker.verify.binary.device_code import Code, ModuleGroup, ReadFile
from stoker.verify.every_gpu import whole_on_none
from stoker.verify.gpu.devices import Device
from stoker.verify.judge import (
    JudgedFiles,
    conclude,
    judge_device,
    judge_file,
    judge_requested,
    judge_unit,
    judge_units,
)
from stoker.verify.library_builds import library

CUDA_13 = (9, 0)
MACHINE_CODE = 1, 8


def code(name: str, isa: tuple[int, int] = CUDA_13) -> Code:
    kind = "ptx" if name.startswith("compute") else "cubin"
    return Code(kind, parse_arch(name), isa if kind == "ptx" else MACHINE_CODE)


def binary(
    *modules: str,
    path: str = "lib.so",
    needed: tuple[str, ...] = (),
    isa: tuple[int, int] = CUDA_13,
    toolkit: tuple[int, int] | None = None,
) -> ReadFile:
    """A file whose modules hold the architectures named, as in "sm_80 compute_90"."""
    names = [m.split() for m in modules]
    uses = tuple(
        HeldArch("ptx" if n.startswith("c") else "cubin", n, sum(n in m for m in names), 1000, None, 0)
        for n in dict.fromkeys(n for m in names for n in m)
    )
    kept = tuple(ModuleGroup(frozenset(code(n, isa) for n in m), 1) for m in names)
    return ReadFile(path, 1000, "x86_64", uses, needed=needed, modules=len(kept), groups=kept, toolkit=toolkit)


def device(capability: str, cuda: tuple[int, int] | None = None) -> Device:
    return Device("card", parse_arch(capability), cuda=cuda, driver="570.10")


@pytest.mark.parametrize(
    ("modules", "capability", "verdict"),
    [
        (["sm_80 sm_90"], "9.0", "native"),
        (["sm_80"], "8.9", "native"),
        (["sm_80 compute_80"], "9.0", "ptx-jit"),
        (["sm_80"], "9.0", "no"),
        (["sm_90"], "8.0", "no"),
        (["sm_90a"], "9.0", "native"),
        (["sm_100f"], "10.3", "native"),
        (["sm_100f"], "12.0", "no"),
        # Most of it runs as it is, some is compiled.
        (["sm_80", "sm_80", "compute_80"], "8.0", "native"),
        (["sm_90", "compute_80", "compute_80"], "9.0", "ptx-jit"),
        # Code only for other GPUs beside code for this one is how PyTorch ships its Hopper kernels.
        (["sm_80", "sm_90a"], "8.0", "native"),
        (["sm_90a"], "8.0", "no"),
        (["sm_80", "sm_80 sm_90"], "9.0", "part"),
        ([], "8.0", "none"),
    ],
)
def test_a_device_gets_its_verdict(modules: list[str], capability: str, verdict: str) -> None:
    report, _ = judge_device([binary(*modules)], device(capability))

    assert report.verdict == verdict
    assert report.why


def test_a_file_that_cannot_run_is_named_with_what_it_holds_and_the_remedy() -> None:
    report, problems = judge_device([binary("sm_80 sm_86", path="pack/_C.so")], device("9.0"))

    assert report.verdict == "no"
    assert "sm_90" in report.why
    assert "sm_80, sm_86" in report.why
    [problem] = problems
    assert problem.severity == "error"
    assert problem.file == "pack/_C.so"
    assert "9.0" in problem.remedy


def test_a_member_of_a_wheel_and_a_gpu_without_a_name_are_told_briefly() -> None:
    nameless = Device("compute capability 9.0", parse_arch("9.0"))
    report, [problem] = judge_device([binary("sm_80", path="dist/pack-1.0-cp311.whl::pack/_C.so")], nameless)

    assert report.why == "no code for sm_90: _C.so, with sm_80"
    assert problem.what == "will not run on compute capability 9.0: it holds sm_80"


@pytest.mark.parametrize(
    ("path", "needed", "remedy"),
    [
        ("lib.so", ("libtorch_cuda.so",), "build with 9.0 in TORCH_CUDA_ARCH_LIST"),
        ("w.whl::torch/lib/libown.so", (), "build with 9.0 in TORCH_CUDA_ARCH_LIST"),
        ("lib.so", (), "build it for 9.0 too, with nvcc's -gencode, or CMAKE_CUDA_ARCHITECTURES"),
        ("bartorch/lib.so", (), "build it for 9.0 too, with nvcc's -gencode, or CMAKE_CUDA_ARCHITECTURES"),
    ],
)
def test_the_remedy_is_one_that_the_files_build_knows(path: str, needed: tuple[str, ...], remedy: str) -> None:
    _, [problem] = judge_device([binary("sm_80", path=path, needed=needed)], device("9.0"))

    assert problem.remedy == remedy


def test_what_does_not_load_and_leaves_the_rest_without_use_is_in_every_row() -> None:
    """One verdict, the same in the headline and in the rows."""
    lost = replace(binary("sm_90", path="a.so"), loads=False, refusal="libcudart.so.12 is missing")
    unit = JudgedFiles("p", (lost, binary("sm_90", path="b.so")), fatal=True)

    report, _ = judge_unit(unit, device("9.0"))

    assert (report.verdict, report.why) == ("no", "a.so cannot be loaded here: libcudart.so.12 is missing")


def test_of_several_libraries_that_do_not_load_the_largest_is_named() -> None:
    files = tuple(
        replace(binary("sm_90", path=p), size=size, loads=False, refusal=f"{p} lacks something")
        for p, size in (("small.so", 10), ("large.so", 1000))
    )

    report, _ = judge_unit(JudgedFiles("p", files, fatal=True), device("9.0"))

    assert report.why == "large.so and 1 more cannot be loaded here: large.so lacks something"


def test_ptx_that_the_driver_is_too_old_for_is_not_called_missing_code() -> None:
    file = binary("compute_80", "sm_90", isa=(8, 8))

    report, _ = judge_device([file], device("9.0", cuda=(12, 8)))

    assert report.why.startswith("1 of 2 modules have only PTX that the driver (CUDA 12.8) is too old for and fail")


@pytest.mark.parametrize(
    "path",
    ["w.whl::tensorrt_rtx_libs/libtensorrt_rtx.so.1", "pack/libtensorrt_rtx.so.1.7.1", "s/nvidia/odd/lib/libodd.so.3"],
)
def test_nvidias_own_are_known_by_name_and_by_their_folder(path: str) -> None:
    report, _ = judge_device([binary("sm_80", "sm_80 sm_90", path=path)], device("9.0"))

    assert report.verdict == "native"


def test_one_library_of_a_package_that_cannot_run_leaves_the_rest_running() -> None:
    report, [problem] = judge_device([binary("sm_90", path="a.so"), binary("sm_80", path="b.so")], device("9.0"))

    assert report.verdict == "part"
    assert report.why.startswith("b.so will not run, and what uses it fails")
    assert (problem.severity, problem.file) == ("warning", "b.so")


def test_one_package_that_cannot_run_spoils_the_verdict_on_several() -> None:
    good, bad = (JudgedFiles(p, (binary(m, path=p),)) for p, m in (("a.so", "sm_90"), ("b.so", "sm_80")))

    report, [problem] = judge_units([good, bad], device("9.0"))

    assert report.verdict == "no"
    assert "b.so" in report.why
    assert (problem.severity, problem.file) == ("error", "b.so")


def test_what_nvidias_own_libraries_hold_for_a_gpu_is_no_fault() -> None:
    """336 of 595 modules of cuBLAS and cuDNN have nothing for a B200: these choose a kernel for the GPU they find."""
    vendor = binary("sm_80", "sm_90", "sm_80 sm_90 sm_100", path="nvidia/cublas/lib/libcublas.so.12")
    own = binary("sm_100", path="torch/lib/libtorch_cuda.so")

    assert judge_device([vendor, own], device("10.0"))[0].verdict == "native"
    assert judge_device([vendor, own], device("10.0"))[1] == []
    assert judge_device([vendor], device("10.0"))[0].verdict == "native"
    assert judge_file(vendor, device("10.0")) == "native"


def test_a_package_is_not_judged_by_the_device_runtime_that_it_carries_to_link_with() -> None:
    """cumm has NVIDIA's libcudadevrt.a beside its own library."""
    runtime, own = binary("sm_90", path="cumm/lib/libcudadevrt.a"), binary("sm_80", path="cumm/core_cc.so")

    assert judge_device([runtime, own], device("9.0"))[0].verdict == "no"


def test_of_the_device_runtime_alone_nothing_is_said_in_a_package_and_all_where_it_is_named() -> None:
    """cumm compiles its kernels when it runs, and "All of it will run" rested on what nothing in it runs."""
    runtime, own = binary("sm_80", path="cumm/lib/libcudadevrt.a"), ReadFile("cumm/core_cc.so", 1000)

    assert judge_device([runtime, own], device("8.0"))[0].verdict == "none"
    assert judge_device([runtime], device("8.0"))[0].verdict == "native"


def test_nvidias_library_is_known_by_the_name_that_a_packager_gave_it() -> None:
    """torchvision has libnvjpeg.36e11081.so.13, and rebuilding that was the advice."""
    own, renamed = binary("sm_80", path="_C.so"), binary("sm_90", path="v.libs/libnvjpeg.36e11081.so.13")

    _, problems = judge_device([own, renamed], device("8.0"))

    assert [p.remedy for p in problems] == [""]


def test_a_static_library_left_in_a_package_is_no_part_that_runs() -> None:
    """fastlisaresponse: its extension has no code for a B200, and the objects that it was linked from have PTX."""
    own = binary("sm_80", path="p.whl::pack/_C.so")
    left = binary("sm_80 compute_80", path="p.whl::pack/libown.a")

    report, problems = judge_device([left, own], device("9.0"))

    assert (report.verdict, report.why) == ("no", "no code for sm_90: _C.so, with sm_80")
    assert [p.file for p in problems] == [own.path]
    assert judge_device([left], device("9.0"))[0].verdict == "ptx-jit"
    build = binary("compute_80", path="build/libown.a"), binary("sm_80", path="build/_C.so")
    assert judge_device(build, device("9.0"))[0].verdict == "part"


def test_what_is_refused_is_judged_by_its_code_too() -> None:
    """A wheel for another Python needs another GPU as well."""
    unit = JudgedFiles("pack", (binary("sm_80", path="_C.so"),), "is for cp313-cp313")

    assert judge_unit(unit, device("8.0"))[0].why == "is for cp313-cp313"
    assert judge_unit(unit, device("7.0"))[0].why == "is for cp313-cp313; no code for sm_70: _C.so, with sm_80"


def test_what_compiles_for_all_others_runs_in_part_beside_code_for_other_gpus_alone() -> None:
    """cuequivariance-ops-torch: kernels for Hopper and Blackwell, all others by NVRTC."""
    compiling = binary("sm_90a", "sm_100a", path="ops.so", needed=("libnvrtc.so.12",))

    report, problems = judge_device([compiling], device("8.0"))

    assert (report.verdict, problems) == ("part", [])
    assert "sm_90a, sm_100a" in report.why
    assert "NVRTC" in report.why
    assert judge_device([compiling], device("9.0"))[0].verdict == "native"
    assert judge_device([binary("sm_90a", path="fa3.so")], device("8.0"))[0].verdict == "no"


def test_a_cuda_build_that_does_not_load_beside_builds_for_processors_is_a_part() -> None:
    """ctransformers without its extra: lib/cuda wants libcudart.so.12, lib/avx2 loads."""
    cuda = replace(binary("sm_80", path="lib/cuda/libx.so"), loads=False, refusal="libcudart.so.12 is missing")
    plain = ReadFile("lib/avx2/libx.so", 1000)

    report, _ = judge_unit(JudgedFiles("pack", (cuda, plain)), device("8.0"))

    assert (report.verdict, "libcudart.so.12 is missing" in report.why) == ("part", True)
    assert judge_unit(JudgedFiles("pack", (cuda, replace(plain, path="y.so"))), device("8.0"))[0].verdict == "no"


def test_of_two_versions_of_nvidias_library_in_one_package_one_is_enough() -> None:
    files = [binary("sm_70", path="t/cupti/libcupti.so.12"), binary("sm_90", path="t/cupti-new/libcupti.so.13")]

    assert judge_device(files, device("9.0"))[0].verdict == "native"
    assert judge_device(files, device("9.0"))[1] == []


def test_modules_that_are_each_for_one_gpu_are_as_it_should_be() -> None:
    file = binary("sm_70", "sm_80", "sm_90", "sm_80 sm_90")

    assert judge_device([file], device("9.0"))[0].verdict == "native"
    assert judge_device([file], device("7.5"))[0].verdict == "part", "the module for several has nothing for this one"
    torch = binary("sm_80 sm_90 sm_100", "sm_90", "sm_100")
    assert [judge_device([torch], device(c))[0].verdict for c in ("8.0", "9.0", "10.0")] == ["native"] * 3


def test_modules_for_all_other_gpus_beside_those_for_this_one_are_as_it_should_be() -> None:
    """lmdeploy: modules for 7.0, for 7.5 and for 9.0a alone, and some for all that are none of these."""
    file = binary("sm_70 sm_75 sm_80 sm_90a", "sm_70", "sm_75", "sm_90a", "sm_80 sm_100a sm_120a")

    assert [judge_device([file], device(c))[0].verdict for c in ("7.5", "8.0", "9.0")] == ["native"] * 3
    assert judge_device([file], device("10.0"))[0].verdict == "part", "the first module has nothing for it"


def test_modules_that_are_chosen_by_the_gpu_are_told_from_those_that_lack_one() -> None:
    """vLLM: quantised kernels for Turing, for everything from 8.0 on, and in FP8 for Ada and its successor alone."""
    everywhere = "sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120"
    file = binary("sm_80 sm_120f compute_80", everywhere, "sm_75", "sm_89 sm_120f", "sm_75 sm_80 compute_80")

    assert {judge_device([file], device(c))[0].verdict for c in ("7.5", "8.0", "9.0", "10.0", "12.0")} <= {
        "native",
        "ptx-jit",
    }
    assert judge_device([file], device("7.0"))[0].verdict == "no"
    forgotten = binary(everywhere, everywhere, "sm_80 sm_86", "sm_80 sm_86 sm_89")
    assert judge_device([forgotten], device("9.0"))[0].verdict == "part"


def test_device_code_that_cannot_be_loaded_runs_nowhere() -> None:
    broken = replace(binary("sm_90", path="_C.so"), loads=False, refusal="libx.so is missing")

    report, _ = judge_unit(JudgedFiles("pack", (broken,), partial=True), device("9.0"))
    assert (report.verdict, judge_file(broken, device("9.0"))) == ("no", "no")
    assert report.why == "_C.so cannot be loaded here: libx.so is missing"
    beside = JudgedFiles("pack", (broken, binary("sm_90", path="_D.so")), partial=True)
    assert judge_unit(beside, device("9.0"))[0].verdict == "part"


def test_what_pip_refuses_runs_on_no_gpu() -> None:
    unit = JudgedFiles("pack", (binary("sm_90"),), refusal="is for cp39-cp39; the Python here is CPython 3.11")

    report, [problem] = judge_unit(unit, device("9.0"))

    assert (report.verdict, report.why) == ("no", unit.refusal)
    assert (problem.severity, problem.file, problem.what) == ("error", "pack", unit.refusal)


def test_a_library_that_lacks_some_modules_is_warned_of() -> None:
    report, problems = judge_device([binary("sm_75 sm_80", "sm_80", "sm_80")], device("7.5"))

    assert report.verdict == "part"
    assert "2 of 3 modules have no code" in report.why
    assert [p.severity for p in problems] == ["warning"]
    assert "2 of 3" in problems[0].what


def test_of_several_builds_of_a_library_one_is_enough() -> None:
    files = [binary("sm_80", path="p/libx_cuda118.so"), binary("sm_80 sm_120", path="p/libx_cuda130.so")]

    report, problems = judge_device(files, device("12.0"))

    assert report.verdict == "native"
    assert problems == []


def test_builds_of_a_library_are_told_from_other_libraries() -> None:
    assert library("p/libx_cuda118.so") == library("p/libx_cuda130.so") == library("p/libx_cpu.so")
    assert library("p/libtorch_cuda.so") != library("p/libtorch_cuda_linalg.so")
    assert library("p/libx_cuda118.so") != library("q/libx_cuda118.so")


def test_ptx_that_is_newer_than_the_driver_will_not_be_compiled() -> None:
    file = binary("compute_80", isa=(9, 0))

    assert judge_device([file], device("9.0", cuda=(13, 0)))[0].verdict == "ptx-jit"
    report, problems = judge_device([file], device("9.0", cuda=(12, 8)))

    assert report.verdict == "no"
    assert "driver" in report.why
    assert "no code" not in report.why
    assert "CUDA 13.0" in problems[0].what
    assert "driver" in problems[0].remedy


@pytest.mark.parametrize(
    "needed",
    [("libcudart.so.13", "libcublas.so.13"), ("libcudart-9335f6a2.so.13.0.48",), ("cudart64_13.dll",),
     ("KERNEL32.dll", "nvrtc64_130_0.dll")],
)  # fmt: skip
def test_a_driver_that_is_older_than_the_cuda_libraries_is_told(needed: tuple[str, ...]) -> None:
    """Bundled ones too, to whose names auditwheel has added a hash, and those of Windows."""
    file = binary("sm_90", needed=needed)

    assert judge_device([file], device("9.0", cuda=(13, 1)))[0].verdict == "native"
    report, problems = judge_device([file], device("9.0", cuda=(12, 8)))

    assert report.verdict == "no"
    assert "570.10" in problems[-1].what
    assert "580" in problems[-1].remedy


def test_a_build_with_cuda_13_is_told_even_if_it_is_linked_to_none_of_its_libraries() -> None:
    """nvcc and CMake link the CUDA runtime in statically unless they are told otherwise."""
    built = binary("sm_80", toolkit=(13, 0))

    report, [problem] = judge_device([built], device("8.0", cuda=(12, 8)))
    assert report.verdict == "no"
    assert "needs CUDA 13" in problem.what
    assert "580" in problem.remedy
    for fine in (device("8.0", cuda=(13, 0)), device("8.0")):
        assert judge_device([built], fine)[0].verdict == "native"


def test_a_file_that_is_mostly_for_a_sibling_of_the_gpu_is_warned_of() -> None:
    """12.0a does not run on a 12.1, and one module of four that does would look like success."""
    file = binary("sm_120a", "sm_120a", "sm_120a compute_120a", "sm_80 compute_80")

    report, [problem] = judge_device([file], device("12.1"))

    assert report.verdict == "part"
    assert problem.severity == "warning"
    assert "3 of 4" in problem.what
    assert "sm_120a" in problem.what
    assert "12.0f" in problem.remedy
    assert judge_device([file], device("12.0"))[1] == []


@pytest.mark.parametrize("modules", [["sm_90a", "sm_80"], ["sm_120a", "sm_80 compute_80", "sm_80 compute_80"]])
def test_a_few_kernels_for_other_gpus_are_as_it_should_be(modules: list[str]) -> None:
    assert judge_device([binary(*modules)], device("8.6" if "sm_90a" in modules else "12.1"))[1] == []


def test_code_that_was_never_linked_at_link_time_is_no_missing_code() -> None:
    report, _ = judge_device([ReadFile("lib.a", 1000, other={"lto": 2})], device("9.0"))

    assert report.verdict == "no"
    assert "device link" in report.why


def test_an_older_build_beside_it_satisfies_the_driver() -> None:
    files = [
        binary("sm_90", path="libx_cuda126.so", needed=("libcudart.so.12",)),
        binary("sm_90", path="libx_cuda130.so", needed=("libcudart.so.13",)),
    ]

    assert judge_device(files, device("9.0", cuda=(12, 8)))[0].verdict == "native"


def test_a_build_that_does_not_say_its_cuda_may_be_an_older_one() -> None:
    """Windows: libx_cuda118.dll says nothing, libx_cuda130.dll holds machine code that CUDA 13 wrote."""
    older, newer = binary("sm_80", path="libx_cuda118.dll"), binary("sm_80", path="libx_cuda130.dll", toolkit=(13, 0))

    report, problems = judge_device([older, newer], device("8.0", (12, 8)))

    assert (report.verdict, problems) == ("native", [])


def test_thousands_of_failing_files_are_not_listed_one_by_one() -> None:
    files = [binary("sm_80", path=f"{i}.cubin") for i in range(3000)]

    _, problems = judge_device(files, device("9.0"))

    assert len(problems) < 20
    assert "2990 more" in problems[-1].what


def test_all_files_without_code_are_counted_also_those_for_other_gpus_by_design() -> None:
    """flashinfer-cubin: of 15,970 cubins for Blackwell 60 are for no family or single chip."""
    files = [binary("sm_100f", path=f"{i}.cubin") for i in range(300)]
    files += [binary("sm_100", path=f"plain{i}.cubin") for i in range(60)]

    report, problems = judge_device(files, device("9.0"))

    assert report.why == "no code for sm_90: 360 files, with sm_100, sm_100f"
    assert problems[-1].what == "350 more files have no code for card"


def wanted(text: str) -> tuple[Wanted, ...]:
    return parse_arch_list(text)


def test_what_was_asked_for_is_present_missing_or_extra() -> None:
    found, problems = judge_requested([binary("sm_80 sm_90a sm_86")], wanted("8.0;9.0+PTX"))

    assert {r.arch: r.state for r in found} == {
        "sm_80": "present", "sm_90": "missing", "compute_90": "missing", "sm_86": "extra", "sm_90a": "extra",
    }  # fmt: skip
    assert [r.bytes for r in found if r.arch in ("sm_80", "sm_86")] == [1000, 1000]
    assert [p.severity for p in problems] == ["error", "error"]


def test_a_file_that_lacks_what_others_have_is_warned_of() -> None:
    files = [binary("sm_80 sm_90", path="a.so"), binary("sm_80", path="b.so"), binary("sm_90a", path="hopper.so")]

    found, problems = judge_requested(files, wanted("8.0;9.0"))

    assert {r.state for r in found if r.arch in ("sm_80", "sm_90")} == {"present"}
    assert [(p.severity, p.file) for p in problems] == [("warning", "b.so")]


def test_what_nvidias_own_libraries_hold_is_not_what_was_asked_for() -> None:
    vendor = binary("sm_75 sm_90 sm_100", path="pack.libs/libcublas.so.13")

    found, problems = judge_requested([vendor, binary("sm_80")], wanted("8.0;9.0"))

    assert [(r.arch, r.state) for r in found] == [("sm_80", "present"), ("sm_90", "missing")]
    assert [(p.severity, p.file, p.what) for p in problems] == [("error", "", "sm_90 was asked for and is in no file")]
    assert next((r.arch, r.state) for r in judge_requested([vendor], wanted("9.0"))[0]) == ("sm_90", "present")


def test_nobody_is_advised_to_build_nvidias_own_libraries_for_a_sibling() -> None:
    files = [binary("sm_120a", "sm_120a", "sm_120", path=f"pack.libs/{name}") for name in ("libcublasLt.so.13", "x.so")]

    assert [p.file for p in judge_device(files, device("12.1"))[1]] == ["pack.libs/x.so"]


def test_the_exit_status_follows_from_the_report() -> None:
    good, _ = judge_device([binary("sm_90")], device("9.0"))
    bad, _ = judge_device([binary("sm_80")], device("9.0"))
    half, _ = judge_device([binary("sm_80", "sm_90")], device("9.0"))
    missing, _ = judge_requested([binary("sm_80")], wanted("9.0"))
    unread = Problem("error", "x.so", "cannot be read", unreadable=True)

    assert told() == ("none", 0, 0)
    assert told(devices=(good,)) == ("runs", 0, 0)
    assert told(devices=(good, half)) == ("part", 0, 1)
    assert told(devices=(good, half, bad)) == ("no", 1, 1)
    assert told(requested=tuple(missing)) == ("no", 1, 1)
    assert told(devices=(half,), problems=(unread,)) == ("unread", 2, 2)


def told(
    *, devices: Sequence[DeviceReport] = (), requested: Sequence[RequestedArch] = (), problems: Sequence[Problem] = ()
) -> tuple[str, int, int]:
    """The verdict, the exit status, and the one with --strict."""
    verdict = conclude(problems, requested, devices)
    report = Report(ok=True, verdict=verdict)
    return verdict, report.exit_status(), report.exit_status(strict=True)


@pytest.mark.parametrize(
    ("modules", "verdict"),
    [
        (["sm_80", "sm_80 compute_80"], "native"),
        (["compute_70", "compute_70", "sm_80"], "ptx-jit"),
        (["sm_80", "sm_90"], "partly"),
        (["sm_90"], "no"),
        (["sm_90a"], "other"),
        ([], ""),
    ],
)
def test_a_file_gets_its_own_verdict_for_each_device(modules: list[str], verdict: str) -> None:
    assert judge_file(binary(*modules), device("8.0")) == verdict


@pytest.mark.parametrize(
    ("modules", "lacking"),
    [
        (["sm_80", "sm_90 compute_90"], "1 of 2 modules have no code for compute capability 9.0"),
        (["sm_80", "sm_80", "sm_90"], "1 of 3 modules have no code for compute capability 8.0"),
        (["sm_80 sm_90", "sm_90"], ""),
        (["sm_90a sm_80", "sm_100a", "sm_90a"], ""),
        (["sm_80 compute_80", "compute_90"], ""),
        (["sm_80"], ""),
        ([], ""),
    ],
    ids=str,
)
def test_a_file_of_which_no_gpu_runs_all_is_called_that_without_a_gpu_to_judge_for(
    modules: Sequence[str], lacking: str
) -> None:
    found = whole_on_none([JudgedFiles("", (binary(*modules),))])

    assert (found.what if found is not None else "") == (
        f"no GPU runs all of it: at best, {lacking} and fail when they are used" if lacking else ""
    )


def test_the_bytes_of_a_file_are_those_of_the_architectures_that_are_listed() -> None:
    """They are added up by people: nvcc's stub for sm_75 stands in no list."""
    file = binary("sm_80", "sm_90")
    stub = HeldArch("cubin", "sm_75", 1, 1520, 0, 1)
    assert replace(file, archs=(*file.archs, stub)).device_bytes == file.device_bytes == 2000
