"""Circuit breaker: it opens after failures without a response, and closes soon after the engine is back."""

import pytest

from store.connect import open_store
from store.dynamodb.circuit_breaker import FAILURES, CircuitBreaker
from store.engine.usage import ReadUsage
from store.errors import Unavailable
from store.model.keys import Key
from tests.ports import closed_port
from tests.proxy import Proxy, dropped, throttled


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def circuit(clock):
    return CircuitBreaker(clock)


def fail(circuit, times):
    for _ in range(times):
        circuit.record_timeout()


def test_fewer_failures_in_a_row_than_its_number_change_nothing(circuit):
    fail(circuit, FAILURES - 1)
    circuit.record_response()
    fail(circuit, FAILURES - 1)
    assert circuit.allows_call()
    assert not circuit.is_open


def test_open_it_lets_one_call_through_in_each_rest(circuit, clock):
    fail(circuit, FAILURES)
    assert not circuit.allows_call()
    clock.now = 1.0
    assert [circuit.allows_call() for _ in range(3)] == [True, False, False]
    fail(circuit, 1)
    assert not circuit.allows_call()
    clock.now = 2.0
    assert [circuit.allows_call() for _ in range(2)] == [True, False]


def test_an_answer_closes_it(circuit, clock):
    fail(circuit, FAILURES)
    clock.now = 1.0
    assert circuit.allows_call()
    circuit.record_response()
    assert [circuit.allows_call() for _ in range(3)] == [True] * 3


async def health_of(store):
    try:
        await store.health()
    except Unavailable as error:
        return str(error)
    return "well"


async def test_an_engine_that_is_down_is_not_asked_again_by_every_request():
    endpoint = f"http://127.0.0.1:{closed_port()}"
    async with open_store(f"dynamodb://clade?region=eu-west-1&endpoint={endpoint}") as store:
        told = [await health_of(store) for _ in range(20)]
    silent = f"DynamoDB does not respond at {endpoint} (EndpointConnectionError); try again."
    assert told == [silent] * 5 + ["DynamoDB has not responded for a while; try again."] * 15
    assert (store.calls.made, store.calls.failed, store.calls.skipped, store.calls.retried) == (5, 5, 15, 20)


async def test_lost_connections_and_throttles_are_tried_again_and_counted(engine):
    async with (
        Proxy(engine.url) as proxy,
        open_store(f"dynamodb://clade-calls?region=eu-west-1&endpoint={proxy.url}") as store,
    ):
        await store.create()
        made = store.calls.made
        proxy.spoil("BatchGetItem", dropped, throttled, throttled)
        assert await store.get([Key("a", "b")], ReadUsage()) == [None]
    assert (store.calls.made - made, store.calls.retried, store.calls.throttled, store.calls.failed) == (1, 3, 2, 0)
