"""Classes of jobs in YAML: the shipped ones say where their figures come from, a person's own go first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stoker.config.priors import load_priors, priors_files, shipped_priors
from stoker.decide.memory.curves import Curve, Point
from stoker.simulate.synthetic import kernels

GIB = 2**30
MIB = 2**20

SHIPPED, FAULTS = load_priors([shipped_priors()])

MINE = """\
protobuf:
  tool: cxx
  output: "*.pb.cc.o"
  spread: 0.4
  time_spread: 0.5
  points:
    0: 100 MiB cc1plus
    20: 1.5 GiB cc1plus
    25: 50MB
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "priors.yaml"
    path.write_text(text)
    return path


def faults(folder: Path, text: str) -> list[str]:
    path = write(folder, text)
    return [str(err).removeprefix(f"{path}:") for err in load_priors([path])[1]]


def test_every_tool_has_a_shipped_class() -> None:
    assert FAULTS == []
    for tool in ("cxx", "nvcc", "link", "archive", "other", "whatever"):
        prior = SHIPPED.of("some/output", tool)
        assert prior.name == (tool if tool != "whatever" else "other")
        assert 0 < prior.curve.peak < 16 * GIB


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("csrc/flash_attn/src/flash_bwd_hdim256_bf16_causal_sm80.o", "flash-bwd-hdim256"),
        ("CMakeFiles/torch_cuda.dir/x/flash_bwd_hdim128_fp16_sm80.cu.o", "flash-bwd-hdim128"),
        ("flash_bwd_hdim96_fp16_sm80.o", "flash-bwd-hdim128"),
        ("flash_bwd_hdim192_fp16_sm80.o", "flash-bwd-hdim192"),
        ("flash_bwd_hdim32_fp16_sm80.o", "flash-bwd-hdim32"),
        ("flash_bwd_hdim64_fp16_sm80.o", "flash-bwd"),
        ("flash_fwd_split_hdim256_fp16_causal_sm80.o", "flash-fwd-split"),
        ("flash_fwd_hdim192_fp16_sm80.o", "flash-fwd-hdim192"),
        ("flash_fwd_hdim96_fp16_sm80.o", "flash-fwd"),
        ("instantiations/flash_fwd_hdim128_bf16_sm90.o", "flash-attention-3"),
        ("mem_eff_attention/kernels/cutlassB_f16_aligned_k128.cu.o", "cutlass-attention"),
        ("Copy.cu.o", "nvcc"),
    ],
)
def test_kernels_are_recognised_by_their_names(output: str, name: str) -> None:
    assert SHIPPED.of(output, "nvcc").name == name
    assert SHIPPED.of(output, "cxx").name == "cxx"


TORCH = "caffe2/CMakeFiles/torch_cpu.dir/__"
PROTOBUF = "third_party/protobuf/cmake/CMakeFiles"
PYTHON_FUNCTIONS = "caffe2/torch/CMakeFiles/torch_python.dir/csrc/autograd/generated/python_torch_functions_0.cpp.o"
XNNPACK = "confu-deps/XNNPACK/CMakeFiles"


@pytest.mark.parametrize(
    ("output", "peak", "seconds"),
    [
        (f"{TORCH}/torch/csrc/autograd/generated/VariableType_0.cpp.o", 1681, 48.3),
        (f"{TORCH}/torch/csrc/autograd/generated/TraceType_1.cpp.o", 1379, 64.2),
        (f"{TORCH}/torch/csrc/autograd/generated/ADInplaceOrViewType_0.cpp.o", 1087, 38.1),
        (f"{TORCH}/torch/csrc/autograd/generated/Functions.cpp.o", 1117, 60.9),
        (f"{TORCH}/aten/src/ATen/Operators_0.cpp.o", 1349, 58.7),
        (f"{TORCH}/aten/src/ATen/RegisterCPU.cpp.o", 1652, 61.3),
        (f"{TORCH}/aten/src/ATen/RegisterMeta.cpp.o", 1316, 80.4),
        (f"{TORCH}/torch/csrc/distributed/c10d/Backend.cpp.o", 618, 14.2),
        (f"{TORCH}/torch/csrc/distributed/c10d/control_collectives/StoreCollectives.cpp.o", 478, 10.1),
        (PYTHON_FUNCTIONS, 893, 37.4),
        (f"{TORCH}/aten/src/ATen/RegisterFunctionalization_0.cpp.o", 1027, 35.1),
        (f"{TORCH}/aten/src/ATen/native/Col2Im.cpp.o", 522, 5.0),
        (f"{TORCH}/aten/src/ATen/native/AveragePool2d.cpp.o", 374, 3.8),
        (f"{TORCH}/aten/src/ATen/native/cpu/AdaptiveMaxPoolKernel.cpp.DEFAULT.cpp.o", 463, 8.3),
        (f"{TORCH}/torch/csrc/jit/passes/quantization/insert_quant_dequant.cpp.o", 738, 12.6),
        (f"{TORCH}/torch/csrc/jit/passes/frozen_linear_transpose.cpp.o", 508, 6.7),
        ("third_party/ideep/mkl-dnn/src/cpu/x64/CMakeFiles/dnnl_cpu_x64.dir/jit_sse41_1x1_convolution.cpp.o", 329, 3.0),
        (f"{PROTOBUF}/libprotoc.dir/__/src/google/protobuf/compiler/cpp/cpp_extension.cc.o", 194, 2.0),
        (f"{PROTOBUF}/libprotobuf.dir/__/src/google/protobuf/text_format.cc.o", 275, 3.6),
        (f"{XNNPACK}/microkernels-prod.dir/src/f32-vbinary/gen/f32-vrdivc-avx-u16.c.o", 93, 0.36),
        (f"{XNNPACK}/microkernels-all.dir/src/qu8-gemm/gen/qu8-gemm-1x4c2s4-minmax-fp32-sse41-ld128.c.o", 49, 0.11),
    ],
)
def test_objects_of_pytorch_are_expected_about_as_they_were_measured(output: str, peak: int, seconds: float) -> None:
    """MiB and CPU seconds: within a factor of 1.8 and of 3, and by a class of their own."""
    prior = SHIPPED.of(output, "cxx")
    assert prior.name != "cxx"
    assert 1 / 1.8 < prior.curve.peak / (peak * 2**20) < 1.8
    assert 1 / 3 < prior.curve.duration / seconds < 3


@pytest.mark.parametrize(("output", "points"), kernels(), ids=[name for name, _ in kernels()])
def test_measured_kernels_do_what_their_class_says(output: str, points: tuple[Point, ...]) -> None:
    prior, truth = SHIPPED.of(output, "nvcc"), Curve(points)
    assert prior.curve.peak == pytest.approx(truth.peak, rel=prior.spread)
    assert prior.curve.duration == pytest.approx(truth.duration, rel=1.5 * prior.time_spread)
    assert prior.curve.peak_age == pytest.approx(truth.peak_age, rel=0.25)
    tail = truth.still(truth.peak_age + 0.1 * truth.duration)
    assert prior.curve.still(prior.curve.peak_age + 0.1 * prior.curve.duration) == pytest.approx(tail, rel=0.3)


def test_lto_is_recognised_by_the_command() -> None:
    assert SHIPPED.of("libx.so", "link", "g++ -O2 -flto=auto -shared -o libx.so").name == "link-lto"
    assert SHIPPED.of("libx.so", "link", "g++ -O2 -shared -o libx.so").name == "link"


def test_every_shipped_figure_says_where_it_comes_from() -> None:
    text = shipped_priors().read_text()
    body = text[text.index("\nflash-attention-3:") :]
    for block in re.split(r"\n(?=[a-z][\w-]*:)", body)[1:]:
        assert "# " in block, f"no source in {block.splitlines()[0]}"


def test_a_persons_classes_come_first_and_replace_those_of_the_same_name(tmp_path: Path) -> None:
    path = write(tmp_path, MINE + "nvcc:\n  tool: nvcc\n  points:\n    0: 1 GiB\n    10: 2 GiB cicc\n")
    priors, errors = load_priors([path, shipped_priors()])
    assert errors == []
    assert priors.of("a.pb.cc.o", "cxx").curve.points == (
        Point(0, 100 * MIB, "cc1plus"),
        Point(20, 1.5 * GIB, "cc1plus"),
        Point(25, 50e6, ""),
    )
    assert priors.of("a.cc.o", "cxx").name == "cxx"
    assert priors.of("a.cu.o", "nvcc").curve.peak == 2 * GIB
    assert priors.of("flash_bwd_hdim256.o", "nvcc").curve.peak == 2 * GIB, "it covers every nvcc job and comes first"
    assert [c.name for c in priors.classes].count("nvcc") == 1


def test_files_that_are_not_there_are_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert priors_files()[0] == tmp_path / "stoker" / "priors.yaml"
    priors, errors = load_priors(priors_files())
    assert errors == []
    assert len(priors.classes) == len(SHIPPED.classes)
    nothing, errors = load_priors([tmp_path / "absent.yaml"])
    assert (nothing.classes, errors) == ((), [])
    assert nothing.of("a.o", "cxx").name == "unknown"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("a:\n  tol: cxx\n  points: {0: 1 GiB, 5: 1 GiB}\n", "2: unknown key 'tol'; did you mean 'tool'?"),
        ("a:\n  tool: cpp\n  points: {0: 1 GiB, 5: 1 GiB}\n", "2: 'tool' cannot be 'cpp'"),
        ("a:\n  spread: -1\n  points: {0: 1 GiB, 5: 1 GiB}\n", "2: 'spread' is a number from 0 to 3, not '-1'"),
        ("a:\n  tool: cxx\n", "1: a class needs points"),
        ("a:\n  points:\n    0: 1 GiB\n    5: much\n", "4: a point is like '30: 3.0 GiB cicc', not '5: much'"),
        ("a:\n  points:\n    0: 1 GiB\n    5: 3 parsecs\n", "4: '3 parsecs' is not a size"),
        ("a:\n  points:\n    0: 1 GiB\n    soon: 1 GiB\n", "4: could not convert string to float: 'soon'"),
        ("a:\n  points:\n    0: 1 GiB\n    nan: 1 GiB\n", "4: a point is like"),
        ("a:\n  points:\n    0: 1 GiB\n    5: 0 GiB\n", "4: a point is like"),
        ("a:\n  points:\n    0: 1 GiB\n    9: 1 GiB\n    5: 1 GiB\n", "5: '5' is not after 9"),
        ("a:\n  points:\n    3: 1 GiB\n    9: 1 GiB\n", "2: a class needs points from 0 on"),
        ("a:\n  points:\n    0: 1 GiB\n", "2: a class needs points from 0 on"),
        ("a:\n  points: [1, 2]\n", "2: 'points' is a list"),
        ("a: 5\n", "1: 'a' is a mapping"),
        ("a:\n  points:\n" + "".join(f"    {n}: 1 GiB\n" for n in range(40)), "35: more than 32 points"),
    ],
)
def test_a_fault_is_reported_with_its_line_and_costs_only_its_class(tmp_path: Path, text: str, reported: str) -> None:
    assert any(fault.startswith(reported) for fault in faults(tmp_path, text + MINE)), faults(tmp_path, text + MINE)
    priors, _ = load_priors([tmp_path / "priors.yaml", shipped_priors()])
    assert next(c.name for c in priors.classes) == "protobuf"
    assert "a" not in {c.name for c in priors.classes}


def test_a_file_that_cannot_be_read_leaves_the_shipped_ones(tmp_path: Path) -> None:
    path = write(tmp_path, "a: [\n")
    priors, errors = load_priors([path, shipped_priors()])
    assert len(priors.classes) == len(SHIPPED.classes)
    assert "not valid YAML" in str(errors[0])


def test_the_page_names_every_key_and_its_example_is_without_fault(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "prediction.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [
        "tool",
        "output",
        "command",
        "spread",
        "time_spread",
        "points",
    ]
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    priors, errors = load_priors([write(tmp_path, example)])
    assert errors == []
    assert [c.name for c in priors.classes] == ["protobuf"]
