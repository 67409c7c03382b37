"""Failed reads fail only the fields that need them; reads are counted as on the wire."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from resolvers.session.reads import MAX_PARALLEL_READS
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import REQUEST_PATIENCE, Store
from store.engine.usage import ReadUsage
from store.errors import Unavailable
from store.model.items import Item
from store.model.keys import Key, node_key
from tests.model import Ground, Model
from tests.proxy import Call, Proxy, throttled
from tests.recorded_reads import ReadRecorder
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
    reply = await Client(store, Ground, planned=False).ask(
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
    reply = await Client(store, Ground, planned=False).ask(
        f'{{ byPath: area(path: "r") {{ path }} byId: tree(id: "{node_id}") {{ path }} }}'
    )
    assert reply.data == {"byPath": {"path": "r"}, "byId": None}
    assert [(error["path"], error["extensions"]["code"]) for error in reply.errors] == [(["byId"], "UNAVAILABLE")]


class Failing(ReadRecorder):
    """A store that fails to read the batches with one key."""

    bad: Key

    async def get(self, keys: list[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:  # type: ignore[override]
        if self.bad in keys:
            raise Unavailable("The table is overloaded; try again.")
        return await super().get(keys, reads, strong=strong)


async def test_a_failed_batch_of_keys_fails_no_other_batch(store: Store):
    await MODEL.plant(store)
    failing = Failing(store)
    failing.bad = node_key("ground", ("s",))
    request = Request(failing, {"ground": Ground.definition()})
    keys = [node_key("ground", ("r", f"x{number}")) for number in range(200)]
    found = await request.state.nodes([node_key("ground", ("r", "a")), *keys, failing.bad])
    assert found[node_key("ground", ("r", "a"))] == MODEL.nodes["r", "a"]
    assert isinstance(found[failing.bad], Unavailable)
    with pytest.raises(Unavailable):
        await request.state.node(failing.bad)


async def test_extensions_reads_equals_the_requests_on_the_wire(behind_proxy):
    store, proxy = behind_proxy
    answers: list[dict[str, Any]] = []

    async def noted(call: Call, forward):
        answer = await forward(call.body)
        answers.append(json.loads(answer.body))
        return answer

    for operation in ("Query", "BatchGetItem"):
        proxy.spoil(operation, *[noted] * 50)
    reply = await Client(store, Ground, planned=False).ask(
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


async def test_reads_that_are_awaited_together_are_one_round(store: Store):
    await MODEL.plant(store)
    client, page = Client(store, Ground), "children(first: 1) { nodes { path } }"
    one = await client.ask('{ a: area(path: "r") { path } b: area(path: "s") { path } }')
    two = await client.ask(f'{{ a: area(path: "r") {{ {page} }} b: area(path: "s") {{ {page} }} }}')
    three = await client.ask(f'{{ area(path: "r") {{ children(first: 1) {{ nodes {{ {page} }} }} }} }}')
    assert (one.requests, one.rounds) == (1, 1), "both areas and their trees' stamps come in one read"
    assert (two.requests, two.rounds) == (3, 2), "then each one's children, side by side"
    rounds = 2 if store.is_remote else 3
    assert (three.requests, three.rounds) == (3, rounds), "a page comes with its node, where rounds count"


class Busy(ReadRecorder):
    """A store that counts how many reads run at a time."""

    running = most = 0

    async def range(self, *arguments, **options) -> list[Item]:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.001)
        try:
            return await super().range(*arguments, **options)
        finally:
            self.running -= 1


async def test_a_request_has_a_limited_number_of_reads_at_a_time(store: Store):
    areas = [("w", f"{number:02}") for number in range(40)]
    nodes = {("w",): "AREA"} | dict.fromkeys(areas, "AREA")
    nodes |= {(*path, str(plot)): "PLOT" for path in areas for plot in range(3)}
    await Model("ground", nodes).plant(store)
    busy, asked = Busy(store), 'children(where: {key: {gte: "1"}}) { nodes { path } }'
    fields = " ".join(f'a{name}: area(path: "w/{name}") {{ {asked} }}' for _, name in areas)
    reply = await Client(busy, Ground, planned=False, limits=WIDE).ask(f"{{ {fields} }}")
    assert not reply.errors
    assert busy.most == MAX_PARALLEL_READS < len(areas)
