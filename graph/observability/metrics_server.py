"""Metrics server: Prometheus metrics at a separate address, which clients of the API cannot reach."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from graph.settings import host_and_port


@contextmanager
def exported(address: str, workers: int) -> Iterator[None]:
    """Serve the metrics of this process, or the sums of its workers, until the block ends; nothing without an address.

    Workers write their metrics to files in a temporary folder, so the block must be entered before they start. Raises
    OSError if the address is not available.
    """
    if not address:
        yield
        return
    host, port = host_and_port(address)
    if workers == 1:
        from prometheus_client import REGISTRY, disable_created_metrics, start_http_server

        # These would double the number of time series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        start_http_server(port, host, REGISTRY)
        yield
        return
    with tempfile.TemporaryDirectory(prefix="clade-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # prometheus_client reads it on import, here and in the workers
        from prometheus_client import CollectorRegistry, Metric, start_http_server
        from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

        class Workers(MultiProcessCollector):
            """The metrics of all workers, without gauges of ended ones."""

            def collect(self) -> Iterable[Metric]:
                for file in Path(folder).glob("gauge_live*.db"):
                    pid = int(file.stem.rpartition("_")[2])
                    try:
                        os.kill(pid, 0)
                    except ProcessLookupError:
                        mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
                found: Iterable[Metric] = super().collect()  # type: ignore[no-untyped-call]
                return found

        registry = CollectorRegistry()
        Workers(registry, folder)  # type: ignore[no-untyped-call]  # registers itself
        start_http_server(port, host, registry)
        yield
