"""Files of SQLite that are replaced, removed or restored under a running server, which is killed then."""

import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path

from tests.outside.failures import Wrong
from tests.outside.processes import Place, Server, command, expect_no_findings
from tests.processes import Answer, status_of
from tests.waiting import eventually

ANOTHER = "another file is there | from the new file | into the new file | 200"
NONE = "no file is there | `UNAVAILABLE` | `UNAVAILABLE` | 503"
BESIDE = "beside it a `clade.db-wal` that is not empty | `UNAVAILABLE` | `UNAVAILABLE` | 503"
SEEN = "Each read sees each write that was acknowledged before the read was sent"
PROMISES = (
    *(("backup.md", sentence) for sentence in (ANOTHER, BESIDE, NONE)),
    ("consistency.md", SEEN),
    ("backup.md", "The file has the state of the store at one moment, with all writes that were acknowledged before"),
    ("backup.md", "Servers keep running, and their next response shows the restored"),
)


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Each way to lose a file, with another number of writes before it."""
    if place.kind != "sqlite":
        return Counter()
    chance = random.Random(seed)
    ways = [_replaced, _replaced_beside_wal, _removed, _restored]
    chance.shuffle(ways)
    counts: Counter[str] = Counter()
    for way in ways:
        way(Store(place, chance))
        counts[f"files {way.__name__.strip('_').replace('_', ' ')}"] += 1
        if time.monotonic() > until - 10:
            break
    return counts


class Store:
    """A server of one file, and what it acknowledged."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self.place, self.chance = place, chance
        self.url = place.new_store()
        self.file = Path(self.url.removeprefix("sqlite:///"))
        self.server = place.server(self.url)
        self.names: list[str] = []
        self.script: list[str] = []

    def write(self, number: int) -> None:
        for _ in range(number):
            name = f"n{len(self.names)}"
            answer = self.create(name)
            if answer.errors:
                raise Wrong("a mutation is made", [*self.script, f"create {name}"], "made", answer.json)
            self.names.append(name)
        self.script.append(f"{number} roots created")

    def create(self, name: str) -> Answer:
        field = f'createThing(input: {{key: "{name}", name: "x", attributes: {{box: {{}}}}}})'
        return self.server.ask(f"mutation {{ {field} {{ node {{ id }} }} }}")

    def expect(self, promise: str, names: list[str], server: Server | None = None) -> None:
        answer = (server or self.server).ask("{ things { nodes { key } } }")
        found = answer.json.get("data") and answer.json["data"]["things"]
        got = sorted(node["key"] for node in found["nodes"]) if found else answer.json
        if got != sorted(names):
            raise Wrong(promise, self.script, sorted(names), got)

    def expect_ready(self, promise: str, status: int) -> None:
        if (got := status_of(f"{self.server.url}/readyz")) != status:
            raise Wrong(promise, [*self.script, "GET /readyz"], status, got)

    def expect_refused(self, promise: str) -> None:
        answer = self.create("refused")
        if answer.codes != ["UNAVAILABLE"]:
            raise Wrong(promise, [*self.script, "create"], "UNAVAILABLE", answer.json)

    def after_kill(self, url: str, names: list[str], promise: str) -> None:
        """Kill the server, open a file with another one, and compare what is there."""
        self.server.kill()
        self.script.append("kill -9, and another server on the file")
        other = self.place.server(url)
        self.expect(promise, names, other)
        other.stop()
        expect_no_findings(url, promise, self.script)


def _older_file(store: Store) -> tuple[Path, list[str]]:
    """A backup of before the last writes, and what is in it."""
    store.write(store.chance.randrange(1, 30))
    other = store.file.with_name("other.db")
    command("backup", str(other), store=store.url)
    at_backup = list(store.names)
    store.write(store.chance.randrange(1, 30))
    return other, at_backup


def _replaced(store: Store) -> None:
    other, at_backup = _older_file(store)
    store.server.stop()
    store.server = store.place.server(store.url)
    store.expect(SEEN, store.names)
    os.replace(other, store.file)
    store.script.append("mv a backup of before the last ones over the file, which only a server that reads has open")
    before = [{"key": name} for name in sorted(store.names)]

    def shows_others() -> bool:
        return store.server.ask("{ things { nodes { key } } }").data["things"]["nodes"] != before

    eventually(shows_others, 60, lambda: Wrong(ANOTHER, store.script, sorted(at_backup), before))
    _is_served(store, at_backup)


def _replaced_beside_wal(store: Store) -> None:
    other, at_backup = _older_file(store)
    os.replace(other, store.file)
    store.script.append("mv a backup of before the last ones over the file, which was written")
    store.expect_refused(BESIDE)
    store.expect_ready(BESIDE, 503)
    for end in ("-wal", "-shm"):
        store.file.with_name(f"{store.file.name}{end}").unlink()
    store.script.append("rm the -wal and -shm files")
    _is_served(store, at_backup)


def _is_served(store: Store, names: list[str]) -> None:
    store.expect(ANOTHER, names)
    store.expect_ready(ANOTHER, 200)
    store.names = names
    store.write(3)
    store.after_kill(store.url, store.names, ANOTHER)


def _removed(store: Store) -> None:
    store.write(store.chance.randrange(1, 30))
    aside = store.file.with_name("aside.db")
    os.rename(store.file, aside)
    store.script.append("mv the file elsewhere")
    store.expect_refused(NONE)
    store.expect_ready(NONE, 503)
    answer = store.server.ask('{ thing(path: "n0") { id } }')
    if answer.codes != ["UNAVAILABLE"]:
        raise Wrong(NONE, [*store.script, "read n0"], "UNAVAILABLE", answer.json)
    os.rename(aside, store.file)
    store.script.append("mv it back")
    store.expect(SEEN, store.names)
    store.after_kill(store.url, store.names, SEEN)


def _restored(store: Store) -> None:
    store.write(store.chance.randrange(1, 30))
    backup = store.file.with_name("backup.db")
    command("backup", str(backup), store=store.url)
    shutil.copy(backup, store.file.with_name("kept.db"))
    at_backup = list(store.names)
    store.write(store.chance.randrange(1, 30))
    command("restore", str(backup), store=store.url)
    store.script.append("clade restore of a backup of before the last ones")
    store.expect(PROMISES[-1][1], at_backup)
    store.names = at_backup
    store.write(2)
    store.after_kill(store.url, store.names, SEEN)
