"""Server gauges: what the parts of a server hold, sampled once a second; imported only where `CLADE_METRICS` is on."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from prometheus_client import Counter, Gauge

from graph.execution.operation import Execution
from graph.observability import log_handler
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.server.graceful_shutdown import GracefulShutdown
from resolvers.session.request import Writer
from store.bounded_cache import cache_usage
from store.engine.protocol import Store

SAMPLE_SECONDS = 1.0

CALLS = {
    "made": Counter("clade_store_calls", "Calls to DynamoDB, of one or more attempts each."),
    "retried": Counter("clade_store_retries", "Attempts after the first."),
    "throttled": Counter("clade_store_throttles", "Throttled attempts."),
    "failed": Counter("clade_store_failures", "Calls without a response."),
    "skipped": Counter("clade_store_skipped", "Calls that were not made because DynamoDB did not respond."),
}
LOG_DROPPED = Counter("clade_log_dropped_lines", "Log lines that were dropped because the log was not read.")
COMPILER_ERRORS = Counter("clade_compiler_errors", "Compiled queries that met an internal error.")


def _gauge(name: str, description: str, mode: str = "livesum") -> Gauge:
    return Gauge(f"clade_{name}", description, multiprocess_mode=mode)  # type: ignore[arg-type]  # a Literal


GAUGES = {
    "in_flight": _gauge("in_flight", "Running operations."),
    "writes_waiting": _gauge("writes_waiting", "Edits that wait for earlier edits."),
    "moves_running": _gauge("moves_running", "Running moves and large deletions."),
    "draining": _gauge("draining", "Processes that are stopping."),
    "store_silent": _gauge("store_silent", "Processes in which DynamoDB does not respond."),
    "loop_lag_seconds": _gauge("loop_lag_seconds", "Delay of the event loop at the last sample.", "livemax"),
    "memory_bytes": _gauge("memory_bytes", "The memory of a process, in bytes.", "liveall"),
}
CACHE_BYTES = Gauge(
    "clade_cache_bytes", "Estimated memory of each cache, in bytes.", ["cache"], multiprocess_mode="livesum"
)
CACHE_HITS = Counter("clade_cache_hits", "Entries found in each cache.", ["cache"])


def sampler_of(
    store: Store, drain: GracefulShutdown, limiter: ConcurrencyLimiter, execution: Execution, writer: Writer | None
) -> "GaugeSampler":
    """The gauges and counters of these parts of a server."""
    gauges: dict[str, Callable[[], float]] = {
        "in_flight": lambda: limiter.running,
        "draining": lambda: drain.draining,
        "memory_bytes": memory_bytes,
    }
    totals: dict[Counter, Callable[[], int]] = {
        LOG_DROPPED: log_handler.dropped,
        COMPILER_ERRORS: lambda: execution.compiler_errors,
    }
    if writer is not None:
        gauges["writes_waiting"] = lambda: writer.waiting
        gauges["moves_running"] = lambda: writer.move_worker.running
    if (calls := store.calls) is not None:
        gauges["store_silent"] = lambda: calls.is_silent
        totals |= {counter: partial(getattr, calls, name) for name, counter in CALLS.items()}
    return GaugeSampler(gauges, totals)


class GaugeSampler:
    """Samples `gauges`, by the names of GAUGES, and `totals`, by their counter."""

    def __init__(self, gauges: Mapping[str, Callable[[], float]], totals: Mapping[Counter, Callable[[], int]]) -> None:
        self._gauges = gauges
        self._totals = totals
        self._counted = dict.fromkeys(totals, 0)
        self._hits: dict[str, int] = {}

    async def watch(self) -> None:
        """Sample every second until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            GAUGES["loop_lag_seconds"].set(max(0.0, loop.time() - due))
            self.sample()

    def sample(self) -> None:
        for name, value in self._gauges.items():
            GAUGES[name].set(value())
        for counter, total in self._totals.items():
            now = total()
            counter.inc(now - self._counted[counter])
            self._counted[counter] = now
        for name, usage in cache_usage().items():
            CACHE_BYTES.labels(name).set(usage.bytes)
            CACHE_HITS.labels(name).inc(max(0, usage.hits - self._hits.get(name, 0)))  # fewer where caches are gone
            self._hits[name] = usage.hits


def memory_bytes() -> float:
    """Resident memory of this process; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        return 0.0
