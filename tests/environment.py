"""Environment of the tests: what a machine, a shell or a provider has set is taken out, so that all runs are alike."""

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

PREFIXES = ("CLADE_", "AWS_", "OTEL_", "LC_")
NAMES = {
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS",
    "COLUMNS", "LINES", "LANGUAGE", "PYTHONDONTWRITEBYTECODE",
}  # fmt: skip
CREDENTIALS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
SET = {
    "NO_PROXY": "127.0.0.1,localhost",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    # A profile at home may name a region, an endpoint or a program that gives credentials.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}

MEMORY = Path("/dev/shm")  # noqa: S108  # the file system in memory of Linux
FREE_BYTES = 4_000_000_000  # several times what a run leaves there


def keep_files_in_memory() -> None:
    """Have temporary files made in memory, where there is room: SQLite waits for a disk 50 ms for each new file.

    A container may have little room there, or let nothing be executed.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free > FREE_BYTES and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # so that it is looked up again


def make_the_same_everywhere() -> None:
    """Take out what tests, and the processes that they start, would read; variables of tests stay.

    So do credentials if CLADE_TEST_DYNAMODB names an engine, which may check them, and a proxy for pip, since some
    thorough tests install packages.
    """
    if proxy := os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        os.environ.setdefault("PIP_PROXY", proxy)
    for name in list(os.environ):
        is_for_tests = name.startswith("CLADE_TEST_") or (name in CREDENTIALS and "CLADE_TEST_DYNAMODB" in os.environ)
        if not is_for_tests and (name.upper().startswith(PREFIXES) or name.upper() in NAMES):
            del os.environ[name]
    os.environ.update(SET)
    time.tzset()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
