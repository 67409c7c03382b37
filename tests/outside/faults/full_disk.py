"""Full disks: the file of a store cannot grow for a while, by a limit of the process or on a small file system."""

import contextlib
import os
import random
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.outside.failures import Wrong
from tests.outside.faults.writers import Writer, more_is_made, settle, writing
from tests.outside.processes import Place, Server, command, expect_no_findings
from tests.waiting import eventually

LATER = "The store does not respond, the server is stopping"
PROMISES = (
    ("reference/errors.md", LATER),
    ("consistency.md", "Each read sees each write that was acknowledged before the read was sent"),
)
MEGABYTE = 1_000_000
BACK_SECONDS = 20.0


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Writers meet a full disk, are told to try later, and go on when there is room again."""
    if place.kind != "sqlite":
        return Counter()
    chance = random.Random(seed)
    with _disk(place, own=chance.random() < 0.5) as disk:
        file = (disk or place.folder) / "full.db"
        store = f"sqlite:///{file}"
        command("table", "create", store=store)
        server = place.server(store)
        counts: Counter[str] = Counter()
        with writing(lambda: [server], 2, chance) as writers:
            while not counts or time.monotonic() < until - 10:
                more_is_made(writers, 20, LATER)
                counts += _filled(server, file, disk, writers)
        counts += settle(writers, server, ["the disk was full for a while"])
        server.kill()
        expect_no_findings(store, PROMISES[1][1], ["a full disk", "kill -9"])
        return counts


@contextlib.contextmanager
def _disk(place: Place, *, own: bool) -> Iterator[Path | None]:
    """A file system of 256 MB, where one may be mounted: more than the writers fill in their time."""
    folder = place.folder / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "clade-outside", str(folder)]
    if not own or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _filled(server: Server, file: Path, disk: Path | None, writers: list[Writer]) -> Counter[str]:
    """Fill the disk until a writer was refused, read meanwhile, make room, and wait until a writer was answered."""
    before = _refused(writers)
    with _no_room(server, file, disk):
        with contextlib.suppress(AssertionError):
            eventually(lambda: _refused(writers) >= before + 3, BACK_SECONDS)
        counts = Counter({"times without room": 1, "mutations refused for want of room": _refused(writers) - before})
        answer = server.ask('{ thing(path: "W") { childCount } }')
        if answer.json.get("data") != {"thing": {"childCount": len(writers)}}:
            raise Wrong("a full disk stops no reads", ["a full disk", "read W"], len(writers), answer.json)
    more_is_made(writers, 1, LATER)
    return counts


@contextlib.contextmanager
def _no_room(server: Server, file: Path, disk: Path | None) -> Iterator[None]:
    if disk is None:
        longest = max(path.stat().st_size for path in file.parent.glob(f"{file.name}*"))
        free = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (longest + 10_000, free[1]))
        try:
            yield
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, free)
        return
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as full, contextlib.suppress(OSError):
        while True:
            full.write(b"\0" * 4096)
    try:
        yield
    finally:
        filler.unlink()


def _refused(writers: list[Writer]) -> int:
    return sum(count for writer in writers for said, count in [*writer.counts.items()] if "UNAVAILABLE" in said)
