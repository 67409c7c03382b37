"""Benchmark of the start: time from the command to the first response, with an existing store."""

import time
from statistics import median

from bench import processes
from bench.places import Place
from bench.queries import BREADCRUMB, body
from bench.servers import clade

TIMES = 5
POLL_SECONDS = 0.005


def first_answer_seconds(store: str, place: Place) -> float:
    """The median of some starts of `clade serve`, each until the response to a breadcrumb."""
    return median(_once(store, place) for _ in range(TIMES))


def _once(store: str, place: Place) -> float:
    process = clade("start", store).process
    began = time.perf_counter()
    process.start()
    try:
        process.wait(pause=POLL_SECONDS)
        processes.ask(process.url, body(BREADCRUMB, place, is_peer=False))
        return time.perf_counter() - began
    finally:
        process.__exit__()
