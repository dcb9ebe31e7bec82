"""Files that are written, replaced, removed and made: somebody who watches hears of it, in crowded folders too."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.config import file_watch
from stoker.config.file_watch import CROWD, watch_files
from support.program import until


class Watcher:
    """Watches in a thread, as the engine does, and keeps how the file was when it was noticed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.looks = 0
        self.seen: list[str] = []
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.until_look(1)

    def _run(self) -> None:
        for _ in watch_files(lambda: [self.path], self.stop):
            try:
                text = self.path.read_text()
            except FileNotFoundError:
                text = "gone"
            if text and self.seen[-1:] != [text]:  # it is empty while it is being written
                self.seen.append(text)
            self.looks += 1

    def until_reported(self) -> None:
        """The watch is set up behind the first look: until then nobody reports a change."""

        def is_reported() -> bool:
            Path(os.path.realpath(self.path)).with_name("probe").touch()
            return self.looks > 1

        until(is_reported, "a word of the kernel")

    def until_look(self, count: int) -> None:
        until(lambda: self.looks >= count, "a look")

    def until_seen(self, *texts: str) -> None:
        until(lambda: self.seen == list(texts), f"{texts}, not {self.seen}")

    def close(self) -> None:
        self.stop.set()
        self._thread.join()


@pytest.fixture
def watch() -> Iterator[Callable[[Path], Watcher]]:
    made: list[Watcher] = []

    def start(path: Path) -> Watcher:
        made.append(Watcher(path))
        return made[-1]

    yield start
    for watcher in made:
        watcher.close()


@pytest.fixture
def unpolled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the kernel's word wakes a watcher."""
    monkeypatch.setattr(file_watch, "POLL_MS", 600_000)


@pytest.mark.usefixtures("unpolled")
def test_the_kernel_reports_a_file_that_is_replaced_removed_and_made_anew(
    tmp_path: Path, watch: Callable[[Path], Watcher]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("1")
    watcher = watch(path)
    watcher.until_reported()
    new = tmp_path / "new"
    new.write_text("2")
    new.replace(path)
    watcher.until_seen("1", "2")
    path.unlink()
    watcher.until_seen("1", "2", "gone")
    path.write_text("3")
    watcher.until_seen("1", "2", "gone", "3")


@pytest.mark.usefixtures("unpolled")
def test_what_a_link_points_to_is_watched_where_it_is(tmp_path: Path, watch: Callable[[Path], Watcher]) -> None:
    (tmp_path / "far").mkdir()
    target, path = tmp_path / "far" / "b.yaml", tmp_path / "near" / "b.yaml"
    path.parent.mkdir()
    target.write_text("1")
    path.symlink_to(target)
    watcher = watch(path)
    watcher.until_reported()
    target.write_text("2")
    watcher.until_seen("1", "2")


@pytest.mark.usefixtures("unpolled")
def test_a_file_in_a_folder_behind_a_link_is_watched(tmp_path: Path, watch: Callable[[Path], Watcher]) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "b.yaml").write_text("1")
    (tmp_path / "near").symlink_to(tmp_path / "far")
    watcher = watch(tmp_path / "near" / "b.yaml")
    watcher.until_reported()
    (tmp_path / "far" / "b.yaml").write_text("2")
    watcher.until_seen("1", "2")


def test_only_a_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice a second it was a twentieth of what an engine took, with files that are not even there."""
    (tmp_path / "plain.yaml").touch()
    (tmp_path / "link.yaml").symlink_to("far/b.yaml")
    (tmp_path / "far").mkdir()
    followed: list[str] = []

    def realpath(path: Path) -> str:
        followed.append(path.name)
        return str(tmp_path / "far" / "b.yaml")

    monkeypatch.setattr(os.path, "realpath", realpath)
    files = [tmp_path / "plain.yaml", tmp_path / "link.yaml", tmp_path / "later" / "a.yaml"]
    assert file_watch._folders(files).keys() == {str(tmp_path), str(tmp_path / "far")}
    assert followed == ["link.yaml"]


def test_a_folder_that_does_not_exist_yet_is_looked_for(tmp_path: Path, watch: Callable[[Path], Watcher]) -> None:
    path = tmp_path / "later" / "a.yaml"
    watcher = watch(path)
    watcher.until_look(2)
    path.parent.mkdir()
    path.write_text("1")
    watcher.until_seen("gone", "1")
    path.write_text("2")
    watcher.until_seen("gone", "1", "2")


def test_a_folder_whose_name_is_not_utf8_is_looked_at(tmp_path: Path, watch: Callable[[Path], Watcher]) -> None:
    path = tmp_path / os.fsdecode(b"odd\xff\n") / "a.yaml"
    path.parent.mkdir()
    path.write_text("1")
    watcher = watch(path)
    path.write_text("2")
    watcher.until_seen("1", "2")


def test_a_file_with_an_odd_name_beside_it_does_not_end_the_watch(
    tmp_path: Path, watch: Callable[[Path], Watcher]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("1")
    watcher = watch(path)
    watcher.until_reported()
    (tmp_path / os.fsdecode(b"odd\xff")).touch()
    path.write_text("2")
    watcher.until_seen("1", "2")
    path.write_text("3")
    watcher.until_seen("1", "2", "3")


def test_in_a_crowded_folder_changes_are_found_by_looking(tmp_path: Path, watch: Callable[[Path], Watcher]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("1")
    watcher = watch(path)
    watcher.until_reported()
    before = watcher.looks
    for n in range(4 * CROWD):
        (tmp_path / f"tmp{n}.s").touch()
    watcher.until_look(before + 2)
    path.write_text("2")
    watcher.until_seen("1", "2")
