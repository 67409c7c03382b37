"""Prometheus metrics: exact counts of known requests, of one process or of several together."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.ports import closed_port, free_port
from tests.servers import served
from tests.waiting import eventually

CITY = '{ city(path: "US/NE/Omaha") { name } }'
SECONDS = 20


def scraped(address):
    """The samples by name and labels; of gauges by process those alone of some process."""
    text = httpx.get(f"http://{address}/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        (one.name, *sorted(value for name, value in one.labels.items() if name != "pid")): one.value for one in samples
    }


def until(address, is_there, *name):
    """The samples as soon as one of them is as it should be: what is not a request is looked at once a second."""
    return eventually(lambda: is_there((found := scraped(address)).get(name, 0.0)) and found, SECONDS)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_requests_errors_and_reads_are_counted_exactly(tmp_path, demo_store, workers):
    address = f"127.0.0.1:{free_port()}"
    settings = {"CLADE_METRICS": address, "CLADE_CACHE_MB": "0", "CLADE_WRITES": "on"}
    with served(tmp_path, demo_store, "--workers", str(workers), **settings) as (url, _):
        cost = {"requests": 0, "rounds": 0, "items": 0, "units": 0.0}
        for _ in range(7):  # each over a connection of its own, so that all workers get some
            told = httpx.post(f"{url}/graphql", json={"query": CITY}, headers={"clade-reads": "1"}).json()
            cost = {name: cost[name] + told["extensions"]["reads"][name] for name in cost}
        for query in ("{ nothing }", "{ city", "{ __schema { queryType { name } } }", '{ city(path: "US") { name } }'):
            httpx.post(f"{url}/graphql", json={"query": query})
        told = httpx.post(
            f"{url}/graphql", json={"query": '{ city(path: "US") { name } }'}, headers={"clade-reads": "1"}
        )
        cost = {name: cost[name] + 2 * told.json()["extensions"]["reads"][name] for name in cost}
        wrong = 'mutation { updateLocation(input: {node: {path: "US/none"}, name: ""}) { userErrors { code } } }'
        told = httpx.post(f"{url}/graphql", json={"query": wrong}, headers={"clade-reads": "1"}).json()
        reads = {"rounds": 0, **told["extensions"]["reads"]}  # which are not counted in mutations
        cost = {name: cost[name] + reads[name] for name in cost}
        httpx.get(f"{url}/nothing")
        httpx.get(f"{url}/readyz")
        found = until(address, (1.0).__eq__, "clade_requests_total", "404", "none", "none")
        assert {key[1:]: value for key, value in found.items() if key[0] == "clade_requests_total"} == {
            ("200", "compiled", "query"): 9, ("200", "executed", "query"): 1, ("200", "executed", "mutation"): 1,
            ("200", "none", "none"): 2, ("404", "none", "none"): 1,
        }  # fmt: skip
        assert {key[1]: value for key, value in found.items() if key[0] == "clade_errors_total"} == {
            "GRAPHQL_VALIDATION_FAILED": 1, "GRAPHQL_PARSE_FAILED": 1, "WRONG_LEVEL": 2,
            "BAD_USER_INPUT": 1, "NOT_FOUND": 1,
        }  # fmt: skip
        assert {name: found[f"clade_read_{name}_total",] for name in cost} == cost
        assert found["clade_request_seconds_count", "query"] == 10
        assert not [key for key in found if key[0].endswith("_created")]
        until(address, (1e7).__lt__, "clade_memory_bytes")
        until(address, (0.0).__eq__, "clade_in_flight")
        until(address, (0.0).__eq__, "clade_shed_total", "left")


@pytest.mark.thorough
def test_calls_to_dynamodb_and_missing_responses_are_counted(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    store = f"dynamodb://clade?region=eu-west-1&endpoint=http://127.0.0.1:{closed_port()}"
    with served(tmp_path, store, CLADE_METRICS=address) as (url, _):
        for _ in range(6):
            assert httpx.get(f"{url}/readyz").status_code == 503
        until(address, lambda skipped: skipped or not httpx.get(f"{url}/readyz"), "clade_store_skipped_total")
        found = until(address, (1.0).__eq__, "clade_store_silent")
    failed = found["clade_store_failures_total",]
    assert found["clade_store_calls_total",] == failed >= 5
    assert found["clade_store_retries_total",] == 4 * failed
