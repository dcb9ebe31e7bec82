"""What a build is called if nobody gives it a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.launch.from_command import default_name


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("folder", "files", "name"),
    [
        ("build", (), "uv"),
        ("MK", ("CMakeLists.txt", "MK/CMakeCache.txt"), "uv"),
        ("x", ("meson.build", "x/meson-private"), "uv"),
        ("x", ("configure", "x/config.status"), "uv"),
        ("lib", ("CMakeLists.txt",), "lib"),
        ("lib", ("lib/CMakeCache.txt",), "lib"),
    ],
)
def test_a_build_folder_is_called_after_the_project_around_it_with_every_build_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, files: tuple[str, ...], name: str, *, inside: bool
) -> None:
    """`ninja -C BUILD` was called uv, and `make -C MK` beside it MK."""
    project = tmp_path / "uv"
    (project / folder).mkdir(parents=True)
    for file in files:
        (project / file).touch()
    monkeypatch.chdir(project / folder if inside else project)
    for tool in ("make", "ninja"):
        assert default_name([tool] if inside else [tool, "-C", folder]) == name
