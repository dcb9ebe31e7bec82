"""Addresses of containers on the command line: what is none is refused in one line, and reaches no program."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.cli.attach_inside import attach_inside
from stoker.cli.errors import CliError

HOSTILE = [
    "podman://",
    "podman://-it",
    "podman://a/--help",
    "podman://a b",
    "podman://a/b/c",
    "ssh://host",
    "docker://é",
]


def engine(folder: Path, script: str) -> str:
    (folder / "podman").write_text(f"#!/bin/sh\necho called >> {folder}/calls\n{script}\n")
    (folder / "podman").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize("address", [*HOSTILE, "podman://a\x1b[31m", "podman://" + "a" * 300])
def test_a_word_that_is_no_place_is_refused(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", engine(tmp_path, "exit 0"))
    with pytest.raises(CliError, match="is not an address; write podman://NAME") as refusal:
        attach_inside(address, [])
    assert str(refusal.value).isprintable()
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            'echo "Error: no container with name or ID a found: no such container" >&2; exit 125',
            "there is no container",
        ),
        ('echo "Error response from daemon: No such container: a" >&2; exit 1', "'podman ps' lists"),
        ('echo "exec: \\"stoker\\": executable file not found in $PATH" >&2; exit 127', "install it there"),
        ("printf 'a\\033[2Jb' >&2; exit 9", "container 'a'"),
    ],
)
def test_why_there_is_nothing_to_attach_to_is_said(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", engine(tmp_path, script))
    with pytest.raises(CliError) as refusal:
        attach_inside("podman://a", [])
    assert said in str(refusal.value)
    assert str(refusal.value).isprintable()


def test_an_engine_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CliError, match="podman: not found on PATH"):
        attach_inside("podman://a", [])
