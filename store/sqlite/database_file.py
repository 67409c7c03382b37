"""Database file: the device and inode that a connection has opened, and those of the log beside it.

An SQLite file that is replaced leaves its log (-wal, -shm) behind, which SQLite would apply to the new file. So the log
is removed together with the file that it belongs to.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl

LOGS = ("-wal", "-shm")
OWN_MODE = 0o600  # of a new file; SQLite gives its log the same


class File:
    """The file that is at `path` now, with its log.

    `is_writable`: file and log can be written. `is_fixed`: neither can, and there is no log; then it is read as
    immutable, and its time and size are compared to notice changes.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        real = os.path.realpath(path)
        self._folder = os.path.dirname(real)
        self._logs = {real + end: _identity(real + end) for end in LOGS}
        logs = any(self._logs.values())
        self.is_writable = os.access(path, os.W_OK) and (logs or os.access(self._folder, os.W_OK))
        self.is_fixed = not self.is_writable and not logs
        self._identity = self._found()

    def options(self, mode: str) -> str:
        """The options of SQLite's URI for the file: `mode` where it can be written or does not exist."""
        if self.is_writable or self._identity is None:
            return f"mode={mode}"
        return "mode=ro&immutable=1" if self.is_fixed else "mode=ro"

    @property
    def has_moved(self) -> bool:
        """Whether another file, or none, is at the path now."""
        return self._found() != self._identity

    def _found(self) -> tuple[int, ...] | None:
        if not self.is_fixed:
            return _identity(self.path)
        with contextlib.suppress(OSError):
            found = os.stat(self.path)
            return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, *map(os.path.exists, self._logs)
        return None

    def lost_log(self) -> str | None:
        """The path of a log that was replaced or removed, None where there is none; a new log is the file's own."""
        for path, identity in self._logs.items():
            found = _identity(path)
            if identity is not None and found != identity:
                return path
            self._logs[path] = found
        return None

    @property
    def is_log_removed(self) -> bool:
        """Whether a log is gone and no other is there, to which another process may have written: then the old one must
        not be written back.
        """
        found = [(identity, _identity(path)) for path, identity in self._logs.items() if identity is not None]
        return any(now is None for _, now in found) and all(now in (None, then) for then, now in found)

    def discard_log(self) -> None:
        """Remove the log from its path, unless another log is there already."""
        if not self.is_writable:
            return
        with _folder_lock(self._folder):
            for path, identity in self._logs.items():
                if identity and _identity(path) == identity:
                    os.unlink(path)


def make(path: str) -> None:
    """Make an empty file with OWN_MODE unless there is one; after a failure SQLite reports the reason."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWN_MODE))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _folder_lock(folder: str) -> Iterator[None]:
    """Keep other processes from removing logs in this folder, so that comparing and removing are one step."""
    if sys.platform == "win32":  # where a file that is open can neither be replaced nor removed
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
