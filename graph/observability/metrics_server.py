"""Where Prometheus finds the metrics of a server: an address of their own, which whoever asks for data does not see."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from graph.settings import host_and_port


@contextmanager
def exported(address: str, workers: int) -> Iterator[None]:
    """Serve the metrics of this process, or of its workers all together, until the block ends; none without an address.

    Workers write to files of a folder that is made here, since none of them can be asked for what the others counted.
    So it must be entered before they start. Raises OSError where the address cannot be listened on.
    """
    if not address:
        yield
        return
    host, port = host_and_port(address)
    if workers == 1:
        from prometheus_client import REGISTRY, disable_created_metrics, start_http_server

        # They are as many series again, of which nobody makes a graph.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        start_http_server(port, host, REGISTRY)
        yield
        return
    with tempfile.TemporaryDirectory(prefix="clade-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # the library reads it when it is imported, here and there
        from prometheus_client import CollectorRegistry, Metric, start_http_server
        from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
        from prometheus_client.registry import Collector

        class Workers(Collector):
            """The metrics of all workers; the gauges of those that have ended are left out."""

            def collect(self) -> Iterable[Metric]:
                for file in Path(folder).glob("gauge_live*.db"):
                    pid = int(file.stem.rpartition("_")[2])
                    if not _lives(pid):
                        mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
                found: Iterable[Metric] = MultiProcessCollector(None, folder).collect()  # type: ignore[no-untyped-call]
                return found

        registry = CollectorRegistry()
        registry.register(Workers())
        start_http_server(port, host, registry)
        yield


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
