"""Server gauges: what the parts of a server hold, sampled once a second; imported only where `CLADE_METRICS` is on."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from prometheus_client import Counter, Gauge

from graph.observability import log_handler
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.server.graceful_shutdown import GracefulShutdown
from resolvers.session.request import Writer
from store.bounded_cache import cache_usage
from store.engine.protocol import Store

SAMPLE_SECONDS = 1.0

CALLS = {
    "made": Counter("clade_store_calls", "Calls to DynamoDB, each of one attempt or more."),
    "retried": Counter("clade_store_retries", "Attempts at them after the first."),
    "throttled": Counter("clade_store_throttles", "Answers of DynamoDB that asked for less."),
    "failed": Counter("clade_store_failures", "Calls that got no answer."),
    "spared": Counter("clade_store_spared", "Calls that were not made, since DynamoDB had been silent for a while."),
}
LOG_DROPPED = Counter("clade_log_dropped_lines", "Lines that were not logged, since nobody read the log.")


def _gauge(name: str, what: str, mode: str = "livesum") -> Gauge:
    return Gauge(f"clade_{name}", what, multiprocess_mode=mode)  # type: ignore[arg-type]  # one of its words


GAUGES = {
    "in_flight": _gauge("in_flight", "Operations that run now."),
    "writes_waiting": _gauge("writes_waiting", "Edits that wait for those before them."),
    "moves_running": _gauge("moves_running", "Moves and large deletions under way."),
    "draining": _gauge("draining", "Processes that were told to stop."),
    "store_silent": _gauge("store_silent", "Processes whose calls to DynamoDB got no answer lately."),
    "loop_lag_seconds": _gauge("loop_lag_seconds", "How late the event loop was at the last look.", "livemax"),
    "memory_bytes": _gauge("memory_bytes", "The memory of a process, in bytes.", "liveall"),
}
CACHE_BYTES = Gauge(
    "clade_cache_bytes", "Estimated memory of each cache, in bytes.", ["cache"], multiprocess_mode="livesum"
)
CACHE_HITS = Counter("clade_cache_hits", "Entries found in each cache.", ["cache"])


def vitals_of(store: Store, drain: GracefulShutdown, gate: ConcurrencyLimiter, writer: Writer | None) -> "Vitals":
    """What to look at in these parts of a server."""
    gauges: dict[str, Callable[[], float]] = {
        "in_flight": lambda: gate.inside,
        "draining": lambda: drain.draining,
        "memory_bytes": memory_bytes,
    }
    totals: dict[Counter, Callable[[], int]] = {LOG_DROPPED: log_handler.dropped}
    if writer is not None:
        gauges["writes_waiting"] = lambda: writer.waiting
        gauges["moves_running"] = lambda: writer.mover.running
    if (calls := store.calls) is not None:
        gauges["store_silent"] = lambda: calls.is_silent
        totals |= {counter: partial(getattr, calls, name) for name, counter in CALLS.items()}
    return Vitals(gauges, totals)


class Vitals:
    """Looks at a server's parts: `gauges` by the names of GAUGES, and `totals` by counter, which only ever grow."""

    def __init__(self, gauges: Mapping[str, Callable[[], float]], totals: Mapping[Counter, Callable[[], int]]) -> None:
        self._gauges = gauges
        self._totals = totals
        self._seen = dict.fromkeys(totals, 0)
        self._hits: dict[str, int] = {}

    async def watch(self) -> None:
        """Look again and again, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            GAUGES["loop_lag_seconds"].set(max(0.0, loop.time() - due))
            self.look()

    def look(self) -> None:
        for name, value in self._gauges.items():
            GAUGES[name].set(value())
        for counter, total in self._totals.items():
            now = total()
            counter.inc(now - self._seen[counter])
            self._seen[counter] = now
        for name, usage in cache_usage().items():
            CACHE_BYTES.labels(name).set(usage.bytes)
            CACHE_HITS.labels(name).inc(max(0, usage.hits - self._hits.get(name, 0)))  # fewer where caches are gone
            self._hits[name] = usage.hits


def memory_bytes() -> float:
    """What this process has in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        return 0.0
