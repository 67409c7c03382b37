"""Request metrics: counters and histograms for Prometheus; imported only where `CLADE_METRICS` is on."""

from functools import cache

from prometheus_client import Counter, Histogram

from graph.observability.request_info import RequestInfo

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

REQUESTS = Counter("clade_requests", "Finished requests.", ["kind", "how", "status"])
ERRORS = Counter("clade_errors", "Requests with an error of this code.", ["code"])
SECONDS = Histogram("clade_request_seconds", "Duration of requests, in seconds.", ["kind"], buckets=BUCKETS)
READS = {
    "requests": Counter("clade_read_requests", "Read requests to the store."),
    "rounds": Counter("clade_read_rounds", "Sets of read requests that were awaited together."),
    "items": Counter("clade_read_items", "Items read."),
    "units": Counter("clade_read_units", "DynamoDB read units."),
}

_requests, _errors, _seconds = cache(REQUESTS.labels), cache(ERRORS.labels), cache(SECONDS.labels)


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
            counter.inc(reads[name])
