"""Killed servers: SIGKILL and SIGTERM in the middle of mutations, which are sent again to another server."""

import random
import signal
import threading
import time
from collections import Counter

from tests.outside.failures import SETTLE_SECONDS, Wrong
from tests.outside.faults.writers import Writer, more_is_made, settle, writing
from tests.outside.processes import Place, Server, expect_no_findings
from tests.processes import status_of
from tests.waiting import eventually

STILL_ANSWERED = "Requests are still accepted and answered, each with `Connection: close`"
PROMISES = (
    ("writing.md", "With an `idempotencyKey` a mutation can safely be sent again in every case"),
    ("writing.md", "A mutation is atomic: all of it is made, or nothing."),
    ("operation.md", STILL_ANSWERED),
    ("operation.md", "At once `/readyz` returns 503."),
    ("operation.md", "`clade check` verifies parents, ids, counts, revisions, versions, logs and search items"),
)
DRAIN_SECONDS = 2.0
SIGNALS = [signal.SIGKILL, signal.SIGTERM]


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
        def problem() -> Wrong:
            return Wrong(PROMISES[3][1], ["SIGTERM", "GET /readyz for 1 s"], 503, server.said()[-500:])

        eventually(lambda: status_of(f"{server.url}/readyz") == 503, 1, problem)


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Writers on three servers, one of which is ended every second or two."""
    chance = random.Random(seed)
    store = place.new_store()
    fleet = Fleet(place, store, 2 if until - time.monotonic() < 60 else 3)
    counts: Counter[str] = Counter()
    with writing(fleet.servers, 4, chance) as writers:
        while len(counts) < 2 or time.monotonic() < until - 15:
            more_is_made(writers, chance.randrange(3, 20), "while servers are ended and started")
            new = [number for number in SIGNALS if f"servers ended by {number.name}" not in counts]
            number = chance.choice(new or SIGNALS)  # a short run has one of each
            fleet.replace(chance.choice(fleet.servers()), number)
            counts[f"servers ended by {number.name}"] += 1
        more_is_made(writers, 5, "after the last server was started")
    _expect_answers(writers, fleet)
    script = ["SIGKILL and SIGTERM of servers"]
    counts += settle(writers, fleet.servers()[0], script, SETTLE_SECONDS[place.kind])
    expect_no_findings(store, PROMISES[4][1], script)
    return counts


def _expect_answers(writers: list[Writer], fleet: Fleet) -> None:
    """A request to a server that was not killed, sent before its port was closed, has a response."""
    for writer in writers:
        for url, sent, _ in writer.unanswered:
            ended = fleet.ended.get(url)
            if url not in fleet.killed and (ended is None or sent < ended + DRAIN_SECONDS - 0.5):
                after = "no signal" if ended is None else f"SIGTERM, {sent - ended:.2f} s before the request"
                raise Wrong(STILL_ANSWERED, [after], "a response", "none")
