"""Files of a scan: the items of each segment, and the key after which a scan continues that was stopped or killed.

The position of a segment is written after its items; items behind the position are cut off, since they are read again.
"""

import contextlib
import shutil
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import orjson

from store.errors import BadInput

SCAN, POSITION = "scan.json", "position-{}.json"


class SegmentFile:
    """One segment: `path` has its items, each a line; `key` is that after which the scan continues, None at the start.

    `items` are those that were read, in former runs as well.
    """

    def __init__(self, path: Path, position: Path) -> None:
        self.path = path
        self._position = position
        found = orjson.loads(position.read_bytes()) if position.exists() else {}
        if found and (not path.exists() or path.stat().st_size < found["bytes"]):
            found = {}  # lines were lost with the machine
        self.key: dict[str, Any] | None = found.get("key")
        self.items: int = found.get("items", 0)
        self.is_complete: bool = found.get("complete", False)
        self._bytes: int = found.get("bytes", 0)
        self._file = path.open("r+b" if path.exists() else "x+b")
        self._file.truncate(self._bytes)
        self._file.seek(self._bytes)

    def append(self, lines: bytes, items: int, key: dict[str, Any] | None) -> None:
        """Write the items of a page, and the key after them, None at the end of the segment."""
        self._file.write(lines)
        self._file.flush()
        self._bytes += len(lines)
        self.items += items
        self.key, self.is_complete = key, key is None
        position = {"bytes": self._bytes, "items": self.items, "key": key, "complete": self.is_complete}
        written = self._position.with_suffix(".new")
        written.write_bytes(orjson.dumps(position))
        written.replace(self._position)

    def close(self) -> None:
        self._file.close()


class ScanFiles:
    """A folder with the files of a scan, as a context manager; they stay until `remove`.

    `table` identifies the table. Raises BadInput where the folder has another scan or something else, or is in use.
    """

    def __init__(self, folder: Path, table: str, segments: int) -> None:
        self.folder = folder
        self._scan = orjson.dumps({"table": table, "segments": segments})
        self._count = segments
        self.segments: list[SegmentFile] = []

    @property
    def items(self) -> int:
        """The items that were read so far."""
        return sum(segment.items for segment in self.segments)

    def __enter__(self) -> Self:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        scan = self.folder / SCAN
        if not scan.exists() and any(self.folder.iterdir()):
            raise BadInput(f"{self.folder} is needed for the scan and has other files; move it away.")
        self._lock = scan.open("a+b")
        try:
            self._own(self._lock)
        except BaseException:
            self._lock.close()
            raise
        paths = [self.folder / f"{self.folder.stem}-{number}.json" for number in range(self._count)]
        self.segments = [SegmentFile(path, self.folder / POSITION.format(number)) for number, path in enumerate(paths)]
        return self

    def _own(self, scan: IO[bytes]) -> None:
        """Lock the folder, and write what is scanned or compare it."""
        with contextlib.suppress(ImportError):  # Windows has no such locks
            import fcntl

            try:
                fcntl.flock(scan, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadInput(f"Another import is scanning into {self.folder}; wait until it ends.") from None
        scan.seek(0)
        text = scan.read()
        if not text:
            scan.write(self._scan)
            scan.flush()
        elif text != self._scan:
            found = text.decode(errors="replace")
            raise BadInput(f"{self.folder} has another scan ({found}); continue that one, or delete the folder.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for segment in self.segments:
            segment.close()
        self._lock.close()

    def remove(self) -> None:
        """Delete the folder, when its items are imported."""
        shutil.rmtree(self.folder, ignore_errors=True)
