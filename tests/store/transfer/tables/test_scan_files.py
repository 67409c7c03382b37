"""Files of scans: each segment goes on behind its position, and a folder is that of one scan."""

from pathlib import Path

import pytest

from store.errors import BadInput
from store.transfer.tables.scan_files import ScanFiles

KEY = {"PK": {"S": "a"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a scan in two segments, of which the first has two items and the second is complete."""
    with ScanFiles(tmp_path / "theirs.scan", "theirs", 2) as files:
        files.segments[0].append(b"1\n2\n", 2, KEY)
        files.segments[1].append(b"3\n", 1, None)
    return tmp_path / "theirs.scan"


def test_a_segment_goes_on_behind_its_position(folder: Path) -> None:
    with ScanFiles(folder, "theirs", 2) as files:
        first, second = files.segments
        assert (first.key, first.is_complete, second.is_complete, files.items) == (KEY, False, True, 3)
        first.append(b"4\n", 1, None)
        assert first.path.read_bytes() == b"1\n2\n4\n"
    with ScanFiles(folder, "theirs", 2) as files:
        assert all(segment.is_complete for segment in files.segments)
        files.remove()
    assert not folder.exists()


def test_items_behind_the_position_are_read_again(folder: Path) -> None:
    with (folder / "theirs-0.json").open("ab") as items:
        items.write(b"4\nhalf a li")
    with ScanFiles(folder, "theirs", 2) as files:
        assert files.segments[0].path.read_bytes() == b"1\n2\n"


def test_a_segment_that_lost_items_starts_over(folder: Path) -> None:
    (folder / "theirs-0.json").write_bytes(b"1\n")
    with ScanFiles(folder, "theirs", 2) as files:
        first = files.segments[0]
        assert (first.key, first.items, first.path.read_bytes()) == (None, 0, b"")


@pytest.mark.parametrize(("table", "segments"), [("ours", 2), ("theirs", 3)])
def test_another_scan_is_refused_and_nothing_is_lost(folder: Path, table: str, segments: int) -> None:
    with pytest.raises(BadInput, match="has another scan"), ScanFiles(folder, table, segments):
        pass
    with ScanFiles(folder, "theirs", 2) as files:
        assert files.items == 3


def test_a_folder_in_use_or_of_somebody_else_is_refused(folder: Path, tmp_path: Path) -> None:
    with (
        ScanFiles(folder, "theirs", 2),
        pytest.raises(BadInput, match="wait until it ends"),
        ScanFiles(folder, "theirs", 2),
    ):
        pass
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="has other files"), ScanFiles(tmp_path / "other", "theirs", 2):
        pass
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["notes.txt"]
