"""Request metrics: counters and histograms for Prometheus; imported only where `CLADE_METRICS` is on."""

from functools import cache

from prometheus_client import Counter, Histogram

from graph.observability.request_info import RequestInfo

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

REQUESTS = Counter("clade_requests", "Requests that have ended.", ["kind", "how", "status"])
ERRORS = Counter("clade_errors", "Requests with an error of this code.", ["code"])
SECONDS = Histogram("clade_request_seconds", "How long requests took, in seconds.", ["kind"], buckets=BUCKETS)
READS = {
    "requests": Counter("clade_read_requests", "Requests to the store for reading."),
    "rounds": Counter("clade_read_rounds", "Sets of such requests that were waited for together."),
    "items": Counter("clade_read_items", "Items that they brought."),
    "units": Counter("clade_read_units", "DynamoDB's read units that they took."),
}

_requests, _errors, _seconds = cache(REQUESTS.labels), cache(ERRORS.labels), cache(SECONDS.labels)


def count(observed: RequestInfo) -> None:
    """Count a request that is over."""
    kind = observed.kind or "none"
    _requests(kind, observed.how or "none", str(observed.status)).inc()
    _seconds(kind).observe(observed.seconds)
    for code in observed.codes:
        _errors(code).inc()
    reads = observed.reads
    if reads and reads["requests"]:
        for name, counter in READS.items():
            counter.inc(reads[name])
