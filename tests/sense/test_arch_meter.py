"""CPU time by GPU architecture: from what scans of nvcc's processes show, with the command lines of nvcc 13."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.sense.proc.arch_meter import ArchMeter, arch_of
from stoker.sense.proc.processes import CLK_TCK, Process

JOB = (50, 1)
NVCC = 60


@pytest.mark.parametrize(
    ("command", "arch"),
    [
        ("cicc --c++17 --orig_src_file_name k.cu -arch compute_90a -m64 --gen_c /tmp/k.compute_80.c", "90a"),
        ("ptxas -arch=sm_80 -m64 /tmp/tmpxft_1-8_k.compute_80.ptx -o /tmp/k.cubin", "80"),
        ("ptxas --gpu-name sm_100f -O3 k.ptx", "100f"),
        ("nvlink --arch=sm_120 a.o b.o", "120"),
        ("cicc -arch lto_75", "75"),
        ("ptxas -arch", ""),
        ("ptxas -arch=sm_80;rm", ""),
        ("ptxas k.compute_80.ptx", ""),
    ],
)
def test_the_architecture_is_what_the_options_say(command: str, arch: str) -> None:
    assert arch_of(command.split()) == arch


class Tree:
    """A job's processes as scans would show them, with the command lines below a folder in place of /proc."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.meter = ArchMeter(proc)
        self.given = 0.0
        """CPU seconds of nvcc's children that have ended."""

    def see(self, now: float, **passes: float) -> dict[str, float]:
        """`cicc_80=1.5`: that pass runs, and has used so much."""
        tree = [Process(NVCC, 50, 1, 1, "S", "nvcc", 1, 5, round(self.given * CLK_TCK), 0, 1)]
        for number, (name, seconds) in enumerate(sorted(passes.items())):
            program, _, arch = name.partition("_")
            pid = 1000 + 7 * number + int("".join(filter(str.isdigit, arch)) or 0)
            folder = self.proc / str(pid)
            folder.mkdir(exist_ok=True)
            (folder / "cmdline").write_bytes(f"{program}\0-arch\0sm_{arch}\0".encode())
            start = hash((program, arch)) % 10**6
            tree.append(Process(pid, NVCC, 1, 1, "R", program, start, round(seconds * CLK_TCK), 0, 0, 1))
        return dict(self.meter.measure(JOB, tree, now))


def test_passes_add_up_with_what_their_parent_was_given_for_them(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert tree.see(0.0, cc1plus=3.0) == {}
    assert tree.see(1.0, cicc_80=0.6) == {"80": 0.6}
    assert tree.see(2.0, cicc_80=1.6) == {"80": 1.6}
    tree.given = 2.0  # cicc has ended after 2.0 s
    assert tree.see(3.0, ptxas_80=0.5) == {"80": 2.5}
    tree.given = 3.1  # ptxas after 1.1 s
    assert tree.see(4.0, cicc_90a=0.2) == {"80": 3.1, "90a": 0.2}
    tree.given = 3.5
    assert tree.see(5.0, cc1plus=0.2) == {"80": 3.1, "90a": 0.4}
    assert tree.see(6.0) == {"80": 3.1, "90a": 0.4}


def test_no_pass_is_given_more_than_the_time_that_has_gone_by(tmp_path: Path) -> None:
    """What the parent was given is also for those that were never seen."""
    tree = Tree(tmp_path)
    tree.see(1.0, cicc_80=0.5)
    tree.given = 100.0
    assert tree.see(2.0) == {"80": 1.5}


def test_passes_at_the_same_time_share_what_is_left(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.see(1.0, cicc_80=0.5, cicc_90=0.7)
    tree.given = 2.0
    assert tree.see(3.0) == {"80": 0.9, "90": 1.1}


def test_nothing_is_kept_of_jobs_that_have_gone(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.see(1.0, cicc_80=0.5)
    tree.meter.forget_all_but(())
    assert tree.see(2.0) == {}
