"""The words of podman and docker, and the label that a build's containers get."""

from __future__ import annotations

import pytest

from stoker.contract.container_words import LABEL, container_command, labelled


@pytest.mark.parametrize(
    "words",
    [
        ("podman", "run", "--rm", "image", "ninja"),
        ("/usr/bin/docker", "--context", "far", "run", "--rm", "image"),
        ("podman", "container", "run", "--rm=true", "image"),
    ],
)
def test_a_command_that_makes_a_container_gets_a_label_of_its_own(words: tuple[str, ...]) -> None:
    first, second = labelled(words), labelled(words)
    assert [word for word in first if word in words] == list(words)
    found, other = container_command(first), container_command(second)
    assert found is not None
    assert other is not None
    assert (found.engine, found.remove) == (words[0], True)
    assert found.label.startswith(f"{LABEL}=")
    assert found.label != other.label


@pytest.mark.parametrize(
    "words",
    [
        ("ninja",),
        ("podman", "exec", "run", "ninja"),
        ("podman", "build", "."),
        ("docker", "compose", "run", "x"),
        ("podman",),
        (),
    ],
)
def test_any_other_command_stays_as_it_is(words: tuple[str, ...]) -> None:
    assert labelled(words) == words
    assert container_command(words) is None


def test_a_persons_own_width_comes_behind_what_is_handed_on_and_so_counts() -> None:
    words = labelled(("docker", "run", "-e", "MAX_JOBS=3", "image"))
    assert words.index("MAX_JOBS") < words.index("MAX_JOBS=3")


def test_a_container_that_is_to_stay_is_not_removed() -> None:
    for words in (("podman", "run", "image"), ("podman", "run", "--rm=false", "image")):
        found = container_command(labelled(words))
        assert found is not None
        assert not found.remove
