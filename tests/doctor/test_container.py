"""Whether the container of a profile starts here: what engines really say, and what the doctor makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.doctor.check import Check
from stoker.doctor.facts import ContainerTrial, Surroundings
from stoker.doctor.find_container import find_container
from stoker.doctor.judge_container import judge_container
from stoker.doctor.need import Need

WORDS = ("podman", "run", "--rm", "img:1", "true")


def judged(said: str, status: int = 126, limits: tuple[int, int] = (20000, 30000)) -> Check:
    trial = ContainerTrial("podman", "/usr/bin/podman", "img:1", said, f"it ended with status {status}: {said}", limits)
    (check,) = judge_container(trial, Need(container=WORDS))
    return check


@pytest.mark.parametrize(
    ("said", "why", "remedy"),
    [
        (
            "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2",
            "crun refuses",
            'runtime = "runc"',
        ),
        (
            "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied",
            "ulimit -Hn: 20000",
            "nofile=20000:20000",
        ),
        (
            "Error: runc: runc create failed: error setting rlimit type 7: operation not permitted",
            "ulimit -Hn: 20000",
            "nproc=30000:30000",
        ),
        (
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. ",
            "does not run",
            "systemctl start docker",
        ),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "GPUs",
            "nvidia-container-toolkit",
        ),
    ],
)
def test_what_stops_containers_is_named_with_its_cure(said: str, why: str, remedy: str) -> None:
    check = judged(said)
    assert check.status == "fail"
    assert why in check.why
    assert remedy in check.remedy


@pytest.mark.parametrize(
    "said", ["Error: img:1: image not known", "docker: Error response from daemon: No such image: img:1."]
)
def test_an_image_that_is_not_here_is_fetched(said: str) -> None:
    check = judged(said, 125)
    assert (check.status, check.remedy) == ("warn", "podman pull img:1")


def test_an_unknown_complaint_is_said_as_it_is() -> None:
    assert "the moon is full" in judged("Error: the moon is full").why


def test_an_image_without_a_shell_starts() -> None:
    assert judged("crun: executable file `true` not found in $PATH: No such file or directory", 127).status == "ok"


def test_an_engine_that_is_not_there_is_to_be_installed(tmp_path: Path) -> None:
    trial = find_container(Surroundings(Need(container=WORDS), {"PATH": str(tmp_path)}, 1.0))
    (check,) = judge_container(trial, Need(container=WORDS))
    assert (check.status, check.why) == ("fail", "podman is not on PATH")


def test_the_engine_is_asked_to_fetch_nothing(tmp_path: Path) -> None:
    engine = tmp_path / "podman"
    engine.write_text('#!/bin/sh\necho "$@" >&2\nexit 125\n')
    engine.chmod(0o755)
    trial = find_container(Surroundings(Need(container=WORDS), {"PATH": f"{tmp_path}:/usr/bin:/bin"}, 1.0))
    assert trial is not None
    assert trial.said.split() == ["run", "--pull=never", "--rm", "img:1", "true"]


def test_nothing_is_said_of_a_build_in_no_container() -> None:
    assert find_container(Surroundings(Need(), {}, 1.0)) is None
    assert list(judge_container(None, Need())) == []
