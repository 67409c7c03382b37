"""Database file: the device and inode that a connection has opened, and those of the log beside it.

Whoever replaces a SQLite file leaves the log of the old one (-wal, -shm) at its place, and SQLite would take it for
that of the new one. So the log goes with the file that it belongs to.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl

LOGS = ("-wal", "-shm")
OWN_MODE = 0o600  # of a file that is made; SQLite gives those beside it the same


class File:
    """The file at `path` as it is now, with its log.

    It `is_writable` where log and file may be written. Else it `is_fixed` where there is no log to be read: then it is
    read without one, and watched for changes.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        place = os.path.realpath(path)
        self._folder = os.path.dirname(place)
        self._logs = {place + end: _identity(place + end) for end in LOGS}
        logs = any(self._logs.values())
        self.is_writable = os.access(path, os.W_OK) and (logs or os.access(self._folder, os.W_OK))
        self.is_fixed = not self.is_writable and not logs
        self._identity = self._found()

    def options(self, mode: str) -> str:
        """The options of the address by which SQLite opens it: the mode, where it exists and may be written."""
        if self.is_writable or self._identity is None:
            return f"mode={mode}"
        return "mode=ro&immutable=1" if self.is_fixed else "mode=ro"

    @property
    def has_moved(self) -> bool:
        """Whether another file, or none, is at the path by now."""
        return self._found() != self._identity

    def _found(self) -> tuple[int, ...] | None:
        if not self.is_fixed:
            return _identity(self.path)
        with contextlib.suppress(OSError):
            found = os.stat(self.path)
            return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, *map(os.path.exists, self._logs)
        return None

    def lost_log(self) -> str | None:
        """The path of a log that another one, or none, has replaced. The first that comes to be there is its own."""
        for place, known in self._logs.items():
            found = _identity(place)
            if known is not None and found != known:
                return place
            self._logs[place] = found
        return None

    def discard_log(self) -> None:
        """Remove the log from its path, unless it is another file's already."""
        if not self.is_writable:
            return
        with _alone(self._folder):
            for place, known in self._logs.items():
                if known and _identity(place) == known:
                    os.unlink(place)


def make(path: str) -> None:
    """Make an empty file that only its owner may read, if there is none; where that fails, SQLite says why."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWN_MODE))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Keep other processes from removing a log in this folder: each would look, and then remove that of the next."""
    if sys.platform == "win32":  # where a file that is open can neither be replaced nor removed
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
