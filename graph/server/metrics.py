"""Metrics for Prometheus: counts of requests, and gauges of a server's state, sampled once a second.

They have a separate address, which clients of the API cannot reach. The application imports them only if
`CLADE_METRICS` is set.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from graph.observability.logs import RequestInfo
from graph.server.events import EventStreams
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import ConcurrencyLimiter
from graph.settings import host_and_port
from store.cache import cache_usage
from store.engine import Store
from store.writing.writer import Writer

SAMPLE_SECONDS = 1.0
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

REQUESTS = Counter("clade_requests", "Finished requests.", ["kind", "how", "status"])
ERRORS = Counter("clade_errors", "Requests with an error of this code.", ["code"])
SECONDS = Histogram("clade_request_seconds", "Duration of requests, in seconds.", ["kind"], buckets=BUCKETS)
READS = {
    "requests": Counter("clade_read_requests", "Read requests to the store."),
    "rounds": Counter(
        "clade_read_rounds", "Sets of read requests that were awaited together, without those of mutations."
    ),
    "items": Counter("clade_read_items", "Items read."),
    "units": Counter("clade_read_units", "DynamoDB read units."),
}

_requests, _errors, _seconds = cache(REQUESTS.labels), cache(ERRORS.labels), cache(SECONDS.labels)

CALLS = {
    "made": Counter("clade_store_calls", "Calls to DynamoDB, of one or more attempts each."),
    "retried": Counter("clade_store_retries", "Attempts after the first."),
    "throttled": Counter("clade_store_throttles", "Throttled attempts."),
    "failed": Counter("clade_store_failures", "Calls without a response."),
    "skipped": Counter("clade_store_skipped", "Calls that were not made because DynamoDB did not respond."),
}
EVENTS = Counter("clade_events", "Events of subscriptions that were sent.")
FOLLOW_UNITS = Counter("clade_follow_units", "DynamoDB read units of following the versions and changes of trees.")
GAUGES = {
    name: Gauge(f"clade_{name}", description, multiprocess_mode=mode)  # type: ignore[arg-type]  # a Literal
    for name, description, mode in (
        ("in_flight", "Running operations.", "livesum"),
        ("event_streams", "Open event streams.", "livesum"),
        ("followed_trees", "Trees that event streams follow, in each process.", "livesum"),
        ("writes_waiting", "Edits that wait for earlier edits.", "livesum"),
        ("moves_running", "Running large moves, deletions and restores.", "livesum"),
        ("draining", "Processes that are stopping.", "livesum"),
        ("store_silent", "Processes in which DynamoDB does not respond.", "livesum"),
        ("loop_lag_seconds", "Delay of the event loop at the last sample.", "livemax"),
        ("memory_bytes", "The memory of a process, in bytes.", "liveall"),
    )
}
SHED = Counter("clade_shed", "Requests that were not begun, by reason: `age`, `bytes` or `left`.", ["reason"])
CACHE_BYTES = Gauge(
    "clade_cache_bytes", "Estimated memory of each cache, in bytes.", ["cache"], multiprocess_mode="livesum"
)
CACHE_HITS = Counter("clade_cache_hits", "Entries found in each cache.", ["cache"])


def count(info: RequestInfo) -> None:
    """Count a finished request."""
    kind = info.kind or "none"
    _requests(kind, info.how or "none", str(info.status)).inc()
    _seconds(kind).observe(info.seconds)
    for code in info.codes:
        _errors(code).inc()
    reads = info.reads
    if reads and reads["requests"]:
        for name, counter in READS.items():
            counter.inc(reads.get(name, 0))


@dataclass
class GaugeSampler:
    """Samples the parts of a server."""

    store: Store
    drain: GracefulShutdown
    limiter: ConcurrencyLimiter
    writer: Writer | None
    streams: EventStreams
    _counted: dict[Counter, float] = field(default_factory=dict)

    async def watch(self) -> None:
        """Sample every second until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            GAUGES["loop_lag_seconds"].set(max(0.0, loop.time() - due))
            self.sample()

    def sample(self) -> None:
        GAUGES["in_flight"].set(self.limiter.running)
        GAUGES["draining"].set(self.drain.draining)
        GAUGES["memory_bytes"].set(memory_bytes())
        GAUGES["event_streams"].set(self.streams.open)
        GAUGES["followed_trees"].set(self.streams.follower.trees)
        self._count(EVENTS, self.streams.sent)
        self._count(FOLLOW_UNITS, self.streams.follower.reads.units)
        for reason, total in self.limiter.gate.shed.items():
            self._count(SHED.labels(reason), total)
        if self.writer is not None:
            GAUGES["writes_waiting"].set(self.writer.waiting)
            GAUGES["moves_running"].set(self.writer.move_worker.running)
        if (calls := self.store.calls) is not None:
            GAUGES["store_silent"].set(calls.is_silent)
            for name, counter in CALLS.items():
                self._count(counter, getattr(calls, name))
        for name, usage in cache_usage().items():
            CACHE_BYTES.labels(name).set(usage.bytes)
            self._count(CACHE_HITS.labels(name), usage.hits)

    def _count(self, counter: Counter, total: float) -> None:
        """Bring a counter to a total, which is less than before where caches are gone."""
        counter.inc(max(0, total - self._counted.get(counter, 0)))
        self._counted[counter] = total


def memory_bytes() -> float:
    """Resident memory of this process; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        return 0.0


def discard_gauges() -> None:
    """Remove the gauges of this process; its forks write their own metrics."""
    mark_process_dead(os.getpid())  # type: ignore[no-untyped-call]


@contextmanager
def exported(address: str, workers: int) -> Iterator[None]:
    """Serve the metrics of this process, or the sums of its workers, until the block ends.

    Workers write their metrics to files in a temporary folder, so the block must be entered before they start. Raises
    OSError if the address is not available.
    """
    host, port = host_and_port(address)
    if workers == 1:
        # These would double the number of time series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        start_http_server(port, host)
        yield
        return
    with tempfile.TemporaryDirectory(prefix="clade-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # prometheus_client reads it on import, in the workers

        class Workers(MultiProcessCollector):
            """The metrics of all workers, without gauges of ended ones."""

            def collect(self) -> Any:
                for file in Path(folder).glob("gauge_live*.db"):
                    pid = int(file.stem.rpartition("_")[2])
                    try:
                        os.kill(pid, 0)
                    except ProcessLookupError:
                        mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
                return super().collect()  # type: ignore[no-untyped-call]

        registry = CollectorRegistry()
        Workers(registry, folder)  # type: ignore[no-untyped-call]  # registers itself
        start_http_server(port, host, registry)
        yield
