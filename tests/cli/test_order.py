"""Options and other words of a command in any order; what comes after -- is left alone."""

from __future__ import annotations

from itertools import permutations

import pytest

from stoker.cli.main import build_parser


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("jobs", ("6", "--ignore-memory", "mine")),
        ("attach", ("mine", "--plain", "--theme=light")),
        ("pause", ("mine", "--now")),
        ("verify", ("a.so", "--json", "b.so")),
        ("diagnose", ("a.log", "--json")),
        ("export", ("mine", "--format=csv")),
    ],
)
def test_options_may_stand_anywhere(command: str, words: tuple[str, ...]) -> None:
    options = {word for word in words if word.startswith("-")}
    found = []
    for order in permutations(words):
        if [w for w in order if w not in options] == [w for w in words if w not in options]:
            args, unknown = build_parser(command).parse_known_args([command, *order])
            found.append((vars(args), unknown))
    assert len(found) >= len(words)
    assert all(one == found[0] for one in found)


def test_what_is_run_keeps_its_own_words() -> None:
    args, unknown = build_parser("run").parse_known_args(["run", "--plain", "--", "ninja", "-k0", "all", "--verbose"])
    assert (args.words[-4:], unknown) == (["ninja", "-k0", "all", "--verbose"], [])
