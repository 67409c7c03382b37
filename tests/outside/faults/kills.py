"""Killed servers: SIGKILL and SIGTERM in the middle of mutations, which are sent again to another server."""

import random
import signal
import threading
import time
import urllib.error
import urllib.request
from collections import Counter

from tests.outside.failures import Wrong
from tests.outside.faults.writers import Writer, prepare, settle
from tests.outside.processes import EXTREMES, Place, Server, command

STILL_ANSWERED = "Requests are still accepted and answered, each with `Connection: close`"
PROMISES = (
    ("writing.md", "With an `idempotencyKey` a mutation can safely be sent again in every case"),
    ("writing.md", "A mutation is atomic: all of it is made, or nothing."),
    ("operation.md", STILL_ANSWERED),
    ("operation.md", "At once `/readyz` returns 503."),
    ("operation.md", "`clade check` verifies parents, ids, counts, revisions, versions, logs and search items"),
)
DRAIN_SECONDS = 2.0


class Fleet:
    """Servers of one store, some of which are being ended and started again."""

    def __init__(self, place: Place, store: str, size: int, **settings: str) -> None:
        self._place, self._store, self._settings = place, store, settings
        self._servers = [self.start() for _ in range(size)]
        self._lock = threading.Lock()
        self.killed: set[str] = set()
        self.ended: dict[str, float] = {}  # when SIGTERM was sent to a server

    def start(self) -> Server:
        return self._place.server(self._store, drain_seconds=str(DRAIN_SECONDS), **self._settings)

    def servers(self) -> list[Server]:
        with self._lock:
            return list(self._servers)

    def replace(self, old: Server, number: int) -> None:
        """End one, wait until it has ended, and start another one in its place."""
        if number == signal.SIGKILL:
            self.killed.add(old.url)
            old.kill()
        else:
            self.ended[old.url] = time.monotonic()
            old.send(number)
            self._expect_not_ready(old)
            old.wait()
        new = self.start()
        with self._lock:
            self._servers[self._servers.index(old)] = new

    def _expect_not_ready(self, server: Server) -> None:
        time.sleep(0.3)
        try:
            with urllib.request.urlopen(f"{server.url}/readyz", timeout=5) as answer:
                status = answer.status
        except urllib.error.HTTPError as refused:
            with refused:
                status = refused.code
        except OSError as error:
            raise Wrong(PROMISES[3][1], ["SIGTERM", "GET /readyz after 0.3 s"], 503, error) from error
        if status != 503:
            raise Wrong(PROMISES[3][1], ["SIGTERM", "GET /readyz after 0.3 s"], 503, status)


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Writers on three servers, one of which is ended every second or two."""
    chance = random.Random(seed)
    store = place.new_store()
    fleet = Fleet(place, store, 2 if until - time.monotonic() < 60 else 3)
    names = [f"w{number}" for number in range(4)]
    prepare(fleet.servers()[0], names)
    writers = [Writer(name, chance.randrange(2**31), fleet.servers) for name in names]
    counts: Counter[str] = Counter()
    for writer in writers:
        writer.begin()
    try:
        while len(counts) < 2 or time.monotonic() < until - 15:
            time.sleep(0.3 + chance.random())
            number = _signals(chance, counts)
            fleet.replace(chance.choice(fleet.servers()), number)
            counts[f"servers ended by {number.name}"] += 1
        time.sleep(0.5)
    finally:
        for writer in writers:
            writer.end()
        for writer in writers:
            writer.join()
    _expect_answers(writers, fleet)
    counts += settle(
        writers, fleet.servers()[0], ["SIGKILL and SIGTERM of servers"], 3 if place.kind == "dynamodb" else 0
    )
    checked = command("check", store=store, status=None, hierarchies=str(EXTREMES))
    if checked.returncode:
        raise Wrong(PROMISES[4][1], ["SIGKILL and SIGTERM of servers", "clade check"], "no findings", checked.stdout)
    return counts


def _signals(chance: random.Random, counts: Counter[str]) -> signal.Signals:
    """Either signal; a short run has one of each."""
    both = [signal.SIGKILL, signal.SIGTERM]
    new = [number for number in both if f"servers ended by {number.name}" not in counts]
    return chance.choice(new or both)


def _expect_answers(writers: list[Writer], fleet: Fleet) -> None:
    """A request to a server that was not killed, sent before its port was closed, has a response."""
    for writer in writers:
        for url, sent, _ in writer.unanswered:
            ended = fleet.ended.get(url)
            if url not in fleet.killed and (ended is None or sent < ended + DRAIN_SECONDS - 0.5):
                after = "no signal" if ended is None else f"SIGTERM, {sent - ended:.2f} s before the request"
                raise Wrong(STILL_ANSWERED, [after], "a response", "none")
