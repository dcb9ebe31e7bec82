"""Compilations that no ninja or make runs are counted once each, however many processes they are."""

from __future__ import annotations

from stoker.sense.proc.processes import Process
from stoker.sense.proc.ungoverned_compilers import compilations


def tree(*rows: tuple[int, int, str]) -> dict[int, Process]:
    """Processes by pid, from (pid, parent, name)."""
    return {pid: Process(pid, ppid, pid, pid, "S", comm, 100 + pid, 0, 0, 0, 1) for pid, ppid, comm in rows}


def test_what_setuptools_compiles_counts_by_its_drivers() -> None:
    pip = [(1, 0, "pip"), (2, 1, "python3")]
    gcc = [(3, 2, "gcc"), (4, 3, "cc1"), (5, 3, "as")]
    nvcc = [(6, 2, "nvcc"), (7, 6, "sh"), (8, 7, "cicc"), (9, 6, "sh"), (10, 9, "ptxas")]
    assert compilations(tree(*pip)) == set()
    assert compilations(tree(*pip, *gcc)) == {(3, 103)}
    assert compilations(tree(*pip, *gcc, *nvcc)) == {(3, 103), (6, 106)}


def test_a_link_and_what_only_waits_are_no_compilations() -> None:
    link = [(1, 0, "python3"), (2, 1, "gcc"), (3, 2, "collect2"), (4, 3, "ld")]
    assert compilations(tree(*link)) == set()


def test_a_driver_of_a_cut_name_still_counts_once() -> None:
    """The kernel keeps 15 characters of x86_64-linux-gnu-gcc-13."""
    assert compilations(tree((1, 0, "x86_64-linux-gn"), (2, 1, "cc1plus"))) == {(2, 102)}


def test_two_processes_that_are_each_others_parents_end_the_search() -> None:
    assert len(compilations(tree((1, 2, "cc1"), (2, 1, "gcc")))) == 1
