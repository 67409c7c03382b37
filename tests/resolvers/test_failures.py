"""Failed reads fail only the fields that need them; reads are counted as on the wire."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from resolvers.session.scheduler import MAX_PARALLEL_READS
from store.connect import open_store
from store.engine import REQUEST_PATIENCE, Store
from tests.model import Ground, Model
from tests.proxy import Call, Proxy, throttled
from tests.systems.asking import WIDE, Client

pytestmark = pytest.mark.both_stores

NODES = {("r",): "AREA"} | {("r", area): "AREA" for area in "ab"} | {("r", "a", f"p{n}"): "PLOT" for n in range(3)}
MODEL = Model("ground", {**NODES, ("s",): "AREA", ("s", "t"): "TREE"})


@pytest.fixture
async def behind_proxy(engine):
    """A store whose calls go through a proxy, and the proxy."""
    async with Proxy(engine.url) as proxy:
        address = f"dynamodb://failures-{uuid.uuid4().hex}?region=eu-west-1&endpoint={proxy.url}"
        async with open_store(address, patience=REQUEST_PATIENCE) as store:
            await store.create()
            await MODEL.plant(store)
            proxy.calls.clear()
            yield store, proxy


async def test_a_throttled_range_fails_only_the_lists_that_need_it(behind_proxy):
    store, proxy = behind_proxy

    async def spoil_one_index(call: Call, forward):
        return await (throttled(call, forward) if call.body.get("IndexName") == "by_parent" else forward(call.body))

    proxy.spoil("Query", *[spoil_one_index] * (2 * REQUEST_PATIENCE.attempts))
    lists = "a: children { nodes { path } } d: descendants(first: 1) { nodes { path } } childCount"
    reply = await Client(store, Ground).ask(
        f'{{ r: area(path: "r") {{ path {lists} }} leaf: tree(path: "s/t") {{ children {{ nodes {{ path }} }} }} }}'
    )
    assert reply.data["r"] == {"path": "r", "a": None, "d": {"nodes": [{"path": "r/a"}]}, "childCount": 2}
    assert reply.data["leaf"] == {"children": {"nodes": []}}
    assert [(error["path"], error["extensions"]["code"]) for error in reply.errors] == [(["r", "a"], "UNAVAILABLE")]


async def test_a_failed_read_of_an_id_fails_only_its_field(behind_proxy):
    store, proxy = behind_proxy
    node_id = MODEL.nodes["s", "t"].id

    async def spoil_ids(call: Call, forward):
        keys = next(iter(call.body["RequestItems"].values()))["Keys"]
        fault = throttled if any(key["pk"]["S"].startswith("id#") for key in keys) else None
        return await (fault(call, forward) if fault else forward(call.body))

    proxy.spoil("BatchGetItem", *[spoil_ids] * 6)
    reply = await Client(store, Ground).ask(
        f'{{ byPath: area(path: "r") {{ path }} byId: tree(id: "{node_id}") {{ path }} }}'
    )
    assert reply.data == {"byPath": {"path": "r"}, "byId": None}
    assert [(error["path"], error["extensions"]["code"]) for error in reply.errors] == [(["byId"], "UNAVAILABLE")]


async def test_extensions_reads_equals_the_requests_on_the_wire(behind_proxy):
    store, proxy = behind_proxy
    answers: list[dict[str, Any]] = []

    async def noted(call: Call, forward):
        answer = await forward(call.body)
        answers.append(json.loads(answer.body))
        return answer

    for operation in ("Query", "BatchGetItem"):
        proxy.spoil(operation, *[noted] * 50)
    reply = await Client(store, Ground).ask(
        '{ area(path: "r") { path children { nodes { path children { totalCount nodes { path parent { id } } } } } '
        'descendants(where: {path: {gte: "a"}}, first: 1) { totalCount nodes { path } } } '
        "grounds { nodes { path } totalCount } }"
    )
    assert not reply.errors
    assert reply.requests == len(proxy.calls) == len(answers)
    batches = [answer["Responses"].values() for answer in answers if "Responses" in answer]
    items = sum(len(answer.get("Items", ())) for answer in answers) + sum(len(one) for some in batches for one in some)
    assert reply.items == items
    told = [answer["ConsumedCapacity"] for answer in answers]
    units = [one["CapacityUnits"] for some in told for one in (some if isinstance(some, list) else [some])]
    assert reply.units == sum(units)


@pytest.fixture
async def client(store: Store) -> Client:
    await MODEL.plant(store)
    return Client(store, Ground)


async def test_reads_that_are_awaited_together_are_one_round(client, store):
    page = "children(first: 1) { nodes { path } }"
    one = await client.ask('{ a: area(path: "r") { path } b: area(path: "s") { path } }')
    two = await client.ask(f'{{ a: area(path: "r") {{ {page} }} b: area(path: "s") {{ {page} }} }}')
    three = await client.ask(f'{{ area(path: "r") {{ children(first: 1) {{ nodes {{ {page} }} }} }} }}')
    assert (one.requests, one.rounds) == (1, 1), "both areas and their trees' stamps come in one read"
    assert (two.requests, two.rounds) == (3, 2), "then each one's children, side by side"
    rounds = 2 if store.version() is None else 3
    assert (three.requests, three.rounds) == (3, rounds), "a page comes with its node, where rounds count"


async def test_nothing_is_read_twice_and_each_node_is_spent_each_time(client):
    page = "children { nodes { path ancestors { path } } }"
    once = await client.ask(f'{{ area(path: "r") {{ {page} }} }}')
    reply = await client.ask(f'{{ a: area(path: "r") {{ {page} x: {page} }} b: area(path: "r") {{ y: {page} }} }}')
    assert not reply.errors
    assert (reply.requests, reply.witness.repeated) == (once.requests, [])
    assert reply.nodes == 2 * 1 + 3 * (once.nodes - 1)
    assert len(reply.data["b"]["y"]["nodes"]) == 2


async def test_a_request_has_a_limited_number_of_reads_at_a_time(engine):
    """The engine answers nothing until as many reads wait as there may be."""
    areas = [("w", f"{number:02}") for number in range(MAX_PARALLEL_READS + 8)]
    nodes = {("w",): "AREA"} | dict.fromkeys(areas, "AREA") | {(*path, "p"): "PLOT" for path in areas}
    running, most, may_answer = 0, 0, asyncio.Event()

    async def held(call: Call, forward):
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == MAX_PARALLEL_READS:
            may_answer.set()
        await may_answer.wait()
        answer = await forward(call.body)
        running -= 1
        return answer

    async with Proxy(engine.url) as proxy:
        address = f"dynamodb://failures-{uuid.uuid4().hex}?region=eu-west-1&endpoint={proxy.url}"
        async with open_store(address) as store:
            await store.create()
            await Model("ground", nodes).plant(store)
            proxy.spoil("Query", *[held] * len(areas))
            asked = 'children(where: {key: {gte: "1"}}) { nodes { path } }'
            fields = " ".join(f'a{name}: area(path: "w/{name}") {{ {asked} }}' for _, name in areas)
            reply = await Client(store, Ground, limits=WIDE).ask(f"{{ {fields} }}")
    assert not reply.errors
    assert most == MAX_PARALLEL_READS < len(areas)
