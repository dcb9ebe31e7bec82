"""What builds packages as a whole, by its command line."""

from __future__ import annotations

import pytest

from stoker.sense.commands.frontends import builds_packages


@pytest.mark.parametrize(
    "line",
    [
        "pip wheel .",
        "/usr/bin/python3.11 /venv/bin/pip3.11 install x",
        "python -m pip wheel . -v",
        "python3 -P -m build --wheel",
        "uv pip install .",
        "/opt/conda/bin/python -I -m pip._internal wheel",
    ],
)
def test_package_builders(line: str) -> None:
    assert builds_packages(line.split())


@pytest.mark.parametrize(
    "line", ["", "ninja -C build", "python setup.py build", "python -c import pip", "cmake --build build", "sh -c pip"]
)
def test_what_builds_no_package(line: str) -> None:
    assert not builds_packages(line.split())
