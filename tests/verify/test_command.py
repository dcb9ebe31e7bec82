"""`stoker verify` as people and scripts meet it: text, JSON, exit status, folders, hostile names."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.cli.main import main
from stoker.verify.find_files import files_in

Compile = Callable[..., Path]
Stoker = Callable[..., tuple[int, str]]


@pytest.fixture
def stoker(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Stoker:
    """Run the command in this process: its exit status, and what it printed (on stderr where stdout is empty)."""
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)

    def call(*words: str) -> tuple[int, str]:
        status = main(["verify", *words])
        printed = capsys.readouterr()
        return status, printed.out or printed.err

    return call


@pytest.fixture
def library(nvcc: Compile) -> Path:
    return nvcc("command.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_80,code=[sm_80,compute_80]")


def test_the_text_says_the_verdict_first(stoker: Stoker, library: Path) -> None:
    status, text = stoker(str(library), "--device", "A100", "--arch-list", "8.0+PTX")

    lines = text.splitlines()
    assert status == 0
    assert lines[0] == "All of it will run."
    assert re.search(r"^A100 \(8\.0\)\s+runs\s", text, re.MULTILINE)
    assert re.search(r"^sm_80\s+yes\s", text, re.MULTILINE)
    assert re.search(r"^compute_80\s+yes\s.*PTX 9.0 from driver 580.65.06$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--driver", "570.86"), 1, "needs CUDA 13; the driver 570.86 of H100 supports CUDA up to 12.8"),
        (("--cuda", "12.8"), 1, "supports CUDA up to 12.8"),
        (("--driver", "580.65.06"), 0, "runs, slow first start"),
        (("--cuda", "13.0"), 0, "runs, slow first start"),
        (("--driver", "new"), 2, "'new' is not a driver version"),
        (("--cuda", "new"), 2, "'new' is not a CUDA version"),
    ],
)
def test_a_driver_can_be_asked_about(
    stoker: Stoker, library: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    found, text = stoker(str(library), "--device", "H100", *words)

    assert found == status
    assert said in " ".join(text.split())


def test_a_driver_that_is_older_than_the_gpu_does_not_know_it(stoker: Stoker, library: Path) -> None:
    status, text = stoker(str(library), "--device", "B200", "--driver", "525.60")
    assert status == 1
    assert "the driver 525.60 (CUDA 12.0) is older than B200 and does not support it" in " ".join(text.split())


def test_a_reason_is_said_of_those_that_have_it(stoker: Stoker, library: Path) -> None:
    _, text = stoker(str(library), "--device", "GH200", "--device", "V100")
    assert "on GH200 (9.0): is for x86_64" in " ".join(text.split())
    assert "for the others see their rows" in " ".join(text.split())


def test_a_device_without_code_is_called_before_it_fails(stoker: Stoker, library: Path) -> None:
    status, text = stoker(str(library), "--device", "V100", "--device", "H100", "--arch-list", "8.0;9.0")

    assert status == 1
    assert text.startswith("Something will not run: on V100 (7.0): no code for sm_70")
    assert re.search(r"^V100 \(7\.0\)\s+WILL NOT RUN\s", text, re.MULTILINE)
    assert re.search(r"^H100 \(9\.0\)\s+runs, slow first start\s", text, re.MULTILINE)
    assert re.search(r"^sm_90\s+yes: MISSING", text, re.MULTILINE)
    assert "TORCH_CUDA_ARCH_LIST" in text


@pytest.fixture
def uneven(nvcc: Compile) -> Path:
    """A library of two modules: both have machine code for 8.0, one of them for 9.0 too."""
    pic = ("-c", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_80,code=sm_80")
    both = nvcc("uneven-both.o", *pic, "-gencode", "arch=compute_90,code=sm_90")
    one = nvcc("uneven-one.o", *pic, sources=("m.cu",))
    return nvcc("uneven.so", "-shared", "-arch=sm_80", sources=(str(both), str(one)))


def test_what_runs_in_part_says_so_in_the_headline_the_row_the_json_and_the_strict_status(
    stoker: Stoker, uneven: Path
) -> None:
    status, text = stoker(str(uneven), "--device", "A100", "--device", "H100")
    assert status == 0
    assert text.startswith("It will run in part: on H100 (9.0): 1 of 2 modules have no code")
    assert re.search(r"^A100 \(8\.0\)\s+runs\s", text, re.MULTILINE)
    assert re.search(r"^H100 \(9\.0\)\s+RUNS IN PART\s", text, re.MULTILINE)
    assert "1 of 2 modules have no code for H100 (9.0)" in " ".join(text.split())
    assert stoker(str(uneven), "--device", "H100", "--strict")[0] == 1
    assert stoker(str(uneven), "--device", "A100", "--strict")[0] == 0
    status, text = stoker(str(uneven), "--device", "A100", "--device", "H100", "--json")
    found = json.loads(text)
    assert (status, found["ok"], found["verdict"]) == (0, True, "part")
    assert [d["verdict"] for d in found["devices"]] == ["native", "part"]


def test_where_there_is_no_device_code_there_is_nothing_to_judge(stoker: Stoker, cc: Compile) -> None:
    plain = str(cc("plain.so"))
    status, text = stoker(plain, "--device", "H100", "--strict")
    assert (status, text.splitlines()[0]) == (
        0, "Nothing to judge for NVIDIA GPUs: CPU code for x86_64 in plain.so.",
    )  # fmt: skip
    found = json.loads(stoker(plain, "--device", "H100", "--json")[1])
    assert (found["verdict"], [d["verdict"] for d in found["devices"]]) == ("none", ["none"])


def test_the_json_is_the_contract(stoker: Stoker, library: Path) -> None:
    status, text = stoker(str(library), "--device", "9.0", "--arch-list", "8.0;9.0", "--json")
    data: dict[str, Any] = json.loads(text)

    assert status == 1
    assert (data["ok"], data["verdict"]) == (False, "no")
    [file] = data["files"]
    assert file["path"] == str(library)
    assert {(a["kind"], a["arch"]) for a in file["archs"]} == {("cubin", "sm_80"), ("ptx", "compute_80")}
    assert all(isinstance(a["count"], int) and isinstance(a["bytes"], int) for a in file["archs"])
    assert {r["arch"]: r["state"] for r in data["requested"]} == {
        "sm_80": "present", "sm_90": "missing", "compute_80": "extra",
    }  # fmt: skip
    [device] = data["devices"]
    assert (device["capability"], device["verdict"]) == ("9.0", "ptx-jit")
    assert device["why"]
    assert {"severity", "file", "what", "remedy"} <= data["problems"][0].keys()
    assert data["problems"][0]["severity"] == "error"


def test_what_cannot_be_read_has_a_status_of_its_own(stoker: Stoker, library: Path, tmp_path: Path) -> None:
    (tmp_path / "junk.so").write_bytes(b"junk" * 100)

    status, text = stoker(str(tmp_path / "junk.so"), str(library), "--device", "8.0")

    assert status == 2
    assert text.startswith("Something cannot be read: junk.so: not a program, a library or device code")
    assert "command.so" in text
    assert stoker(str(tmp_path / "nothing"))[0] == 2
    assert stoker("no_such_package_anywhere")[0] == 2


def test_of_what_cannot_be_read_nobody_knows_that_it_will_not_run(
    stoker: Stoker, library: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.so"
    cut.write_bytes(library.read_bytes()[:3000])

    status, text = stoker(str(cut), "--device", "H100", "--arch-list", "9.0", "--json")

    found = json.loads(text)
    assert (status, found["devices"], found["requested"]) == (2, [], [])
    assert "cut off" in found["problems"][0]["what"]


def test_of_what_was_asked_for_nothing_is_missing_while_not_all_could_be_read(
    stoker: Stoker, library: Path, tmp_path: Path
) -> None:
    (tmp_path / "whole.so").write_bytes(library.read_bytes())
    (tmp_path / "cut.so").write_bytes(library.read_bytes()[:3000])

    status, text = stoker(str(tmp_path), "--arch-list", "8.0;9.0", "--json")

    found = json.loads(text)
    assert (status, found["verdict"]) == (2, "unread")
    assert {r["arch"]: r["state"] for r in found["requested"]}.get("sm_90") is None


def test_a_path_that_is_not_there_is_named_as_given_and_counts_as_no_binary(stoker: Stoker, tmp_path: Path) -> None:
    status, text = stoker(str(tmp_path / "build" / "nope"))

    assert status == 2
    assert f"{tmp_path}/build/nope: cannot be read" in " ".join(text.split())
    assert "device code" not in text
    assert "No code for NVIDIA's GPUs in 1 binary." in stoker("/bin/true", str(tmp_path / "nope"))[1]


def test_a_name_that_no_file_can_have_counts_as_what_cannot_be_read(stoker: Stoker) -> None:
    for name in ("x" * 300, "/tmp/" + "x" * 300):
        status, text = stoker(name, "--json")

        assert status == 2
        [problem] = json.loads(text)["problems"]
        assert problem["file"] == name


def test_where_device_code_is_a_trivial_part_the_headline_says_what_was_judged(
    stoker: Stoker, library: Path, wheel: Callable[..., Path], cc: Compile
) -> None:
    large = cc("large.so", "const char data[4 << 20] = {1};").read_bytes()
    path = wheel({"pack/small.so": library.read_bytes(), "pack/large.so": large})

    status, out = stoker(str(path), "--device", "8.0")

    headline = " ".join(out.split("\n\n")[0].split())
    assert re.search(
        r"All of it will run: \d+ modules? of device code \(.*\) in 1 of 2 binaries w\w+ judged\.", headline
    )
    assert status == 0


def test_what_is_compiled_when_it_runs_is_said_not_to_be_judged(
    stoker: Stoker, wheel: Callable[..., Path], cc: Compile
) -> None:
    nvrtc = cc("libnvrtc.so.12", "int nvrtcVersion(void) { return 12; }", "-Wl,-soname,libnvrtc.so.12")
    user = cc("user.so", "int nvrtcVersion(void); int f(void) { return nvrtcVersion(); }", str(nvrtc))

    path = wheel({"pack/user.so": user.read_bytes(), "pack/libnvrtc.so.12": nvrtc.read_bytes()})

    _, out = stoker(str(path), "--device", "8.0", "--quiet")

    assert "Nothing to judge" in out
    assert "what it compiles at run time (NVRTC) is not judged" in out


def test_a_wheel_without_any_binary_is_pure_python(stoker: Stoker, wheel: Callable[..., Path]) -> None:
    path = wheel({"pack/__init__.py": b""}, "pack-1.0-py3-none-any.whl")

    status, text = stoker(str(path), "--device", "8.0")

    assert status == 0
    assert text.startswith("Nothing to judge for NVIDIA GPUs: pure Python, without any binary.")


@pytest.mark.parametrize(
    ("head", "about"),
    [
        (
            b"KSTC\x86\x04\0\0=== NOTICE\0",
            "no binary that can be read; bundles.kstlc (2.0 MiB) is in a format that is not known",
        ),
        (b"\x93NUMPY\1\0", "pure Python, without any binary"),
        (b"# a table\n" * 200_000, "pure Python, without any binary"),
    ],
)
def test_a_large_file_in_an_unknown_format_is_not_passed_over(
    stoker: Stoker, wheel: Callable[..., Path], head: bytes, about: str
) -> None:
    """kestrel-kernels-bundle-c has its kernels in a container of its own."""
    data = head.ljust(2 << 20, head[-1:])
    path = wheel({"pack/__init__.py": b"", "pack/bundles.kstlc": data}, "pack-1.0-py3-none-any.whl")

    status, text = stoker(str(path), "--device", "8.0")

    assert status == 0
    assert " ".join(text.split()).startswith(f"Nothing to judge for NVIDIA GPUs: {about}.")
    assert "no code for NVIDIA's GPUs was found in it" in " ".join(text.split())


@pytest.mark.parametrize("words", [("--arch-list", "9.q"), ("--device", "toaster")])
def test_bad_usage_is_one_line_with_the_remedy(stoker: Stoker, library: Path, words: tuple[str, str]) -> None:
    status, text = stoker(str(library), *words)

    assert status == 2
    assert text.startswith("stoker: ")
    assert text.count("\n") == 1
    assert words[1] in text


def test_a_machine_without_gpu_is_no_failure(stoker: Stoker, library: Path) -> None:
    status, text = stoker(str(library))

    if "no GPU to judge for" not in text:
        pytest.skip("this machine has a GPU")
    assert status == 0
    assert "--device" in text


def test_names_cannot_touch_the_terminal(
    stoker: Stoker, wheel: Callable[..., Path], library: Path, tmp_path: Path
) -> None:
    evil = "a\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202eb[/red].so"
    (tmp_path / evil.replace("/", "_")).write_bytes(library.read_bytes())
    path = wheel({f"pack/{evil}": library.read_bytes()[:5000]})

    _, text = stoker(str(tmp_path), str(path))

    assert ".so" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_every_line_that_can_be_wrapped_fits_a_terminal(stoker: Stoker, cc: Compile) -> None:
    lost = cc("liblost.so", "int g(void) { return 1; }", "-Wl,-soname,liblost.so")
    path = cc("user.so", "int g(void); int f(void) { return g(); }", str(lost))
    lost.unlink()

    status, text = stoker(str(path))

    assert status == 1
    assert "liblost.so is missing" in text
    assert all(len(line) <= 80 or " " not in line.strip() for line in text.splitlines())


def test_a_long_reason_is_wrapped_below_its_heading(stoker: Stoker, nvcc: Compile) -> None:
    library = nvcc("flash_attn_2_cuda.cpython-311.o", "-c", "-arch=sm_80")

    status, text = stoker(str(library), "--device", "7.5")

    assert status == 1
    assert all(len(line) <= 80 for line in text.splitlines())
    rows = text.splitlines()
    head, first, second = rows[rows.index("") + 1 :][:3]
    assert first[head.index("Why") :].startswith("no code for sm_75:")
    assert second[: head.index("Why")].isspace()


def test_a_folder_gives_what_was_linked(nvcc: Compile, tmp_path: Path) -> None:
    made = nvcc("one.o", "-c", "-arch=sm_80")
    (tmp_path / "build/deep").mkdir(parents=True)
    for name in ("a.o", "b.o"):
        (tmp_path / "build/deep" / name).write_bytes(made.read_bytes())
    (tmp_path / "build/notes.txt").write_bytes(made.read_bytes())
    (tmp_path / "build/fake.so").write_text("INPUT(-lfoo)")

    assert [p.name for p in files_in(tmp_path)] == ["a.o", "b.o"]

    (tmp_path / "build/lib.so").write_bytes(made.read_bytes())
    assert [p.name for p in files_in(tmp_path)] == ["lib.so"]


def test_only_what_a_build_has_just_written_is_taken(tmp_path: Path, cc: Compile) -> None:
    old, new = cc("old.so"), cc("new.so")
    os.utime(old, (1_000_000, 1_000_000))

    assert files_in(tmp_path, since=time.time() - 3600) == [new]
    assert files_in(tmp_path) == [new, old]


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("stoker.verify.pipeline", ("textual", "rich", "torch", "pynvml")),
        ("stoker.cli.commands.verify", ("stoker.verify",)),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(module: str, forbidden: tuple[str, ...]) -> None:
    script = f"import sys; import {module}; print(sorted(set({forbidden!r}) & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_quiet_is_the_verdict_alone(stoker: Stoker, library: Path) -> None:
    assert stoker(str(library), "--device", "A100", "-q") == (0, "All of it will run.\n")
    status, text = stoker(str(library), "--device", "V100", "--quiet")
    assert (status, text.count("\n")) == (1, 1)
    assert text.startswith("Something will not run: on V100 (7.0): no code for sm_70")


def test_on_a_terminal_the_page_has_its_width_and_colours_and_the_verdict_again_where_it_scrolled_away(
    uneven: Path,
) -> None:
    """A terminal of 60 columns and 10 lines, on which the headline is gone when the shell's prompt is back."""
    command = [sys.executable, "-m", "stoker", "verify", str(uneven), "--device", "A100", "--device", "H100"]
    text = on_terminal(command, rows=10, columns=60)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text).replace("\r", "").splitlines()

    assert all(len(line) <= 60 or " " not in line.strip() for line in plain)
    first = next(i for i, line in enumerate(plain) if line.startswith("It will run in part: on H100"))
    assert [i for i, line in enumerate(plain) if line.startswith("It will run in part: on H100")][1:] == [
        len(plain) - (plain.index("", first) - first)
    ]
    assert "\x1b[0;1;33mIt will run in part\x1b[0m" in text
    assert re.search("\x1b\\[0;1;32mruns\x1b\\[0m", text)
    assert "\x1b[" not in on_terminal(command, rows=10, columns=60, NO_COLOR="1")


def on_terminal(command: list[str], rows: int, columns: int, **environment: str) -> str:
    """What a program writes on a terminal of this size."""
    parent, child = os.openpty()
    termios.tcsetwinsize(child, (rows, columns))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES", "CI")}
    process = subprocess.Popen(
        command, stdin=child, stdout=child, stderr=subprocess.DEVNULL, env={**clean, "TERM": "xterm", **environment}
    )
    os.close(child)
    data = b""
    with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
        while chunk := os.read(parent, 4096):
            data += chunk
    os.close(parent)
    process.wait(60)
    return data.decode()
