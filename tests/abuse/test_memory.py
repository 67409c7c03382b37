"""Memory: caches, running requests and responses to slow readers are bounded, whatever clients send."""

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import httpx
import pytest

from graph.hosts import MAX_HOST_BYTES
from graph.operation import prepared
from graph.operation.document import parse_document
from graph.server.handler import host_rejection
from graph.server.lifecycle import GracefulShutdown
from graph.server.parsing import JSON, choose, is_json
from graph.server.sending import PIECE_BYTES, ResponseSender
from resolvers.lists.arguments import CursorKind, encode_cursor
from resolvers.session.cache import PageCache
from resolvers.session.scheduler import LARGE_READ_NODES
from resolvers.sorting.values import folded
from store.cache import cache_usage
from store.connect import open_store
from store.errors import Unavailable
from store.kinds.lineage import id_hash
from store.kinds.words import fold
from store.model.names import lookup
from store.model.paths import parse_path
from store.model.records import Record, derived_id
from tests.abuse.door import Ask, door
from tests.graph.small_app import SmallStore, small_app
from tests.model import Ground, Model
from tests.stores import ReadRecorder
from tests.systems.asking import PATIENT, WIDE

EMOJI = "\U0001f600"  # takes four bytes
TIMES = 1_200
HOSTILE: dict[str, tuple[int, Callable[[int], object]]] = {
    "paths": (1_000 * 4_500, lambda n: parse_path(f"{n}/" + "/".join([EMOJI * 5] * 30))),
    "long paths": (0, lambda n: parse_path(f"{n}" + "a" * 240)),
    "names": (TIMES * 1_000, lambda n: fold(f"{n} " + "東" * 90)),
    "sorted texts": (TIMES * 1_000, lambda n: folded(f"{n} " + "é" * 90)),
    "ids": (TIMES * 800, lambda n: id_hash(f"{n}" + EMOJI * 120)),
    "media types": (512 * 1_500, lambda n: (choose(f"a/{n}" + "x" * 900, (JSON,)), is_json(f"a/{n};" + "x" * 900))),
    "hosts": (256 * 1_000, lambda n: host_rejection((b"%d" % n).zfill(MAX_HOST_BYTES), "127.0.0.1")),
    "languages": (256 * 8_000, lambda n: lookup((), [f"de-{n:04}-{x:04}" for x in range(20)])),
    "long texts": (0, lambda n: fold(f"{n} " + "é" * 200)),
}
"""How a client fills the cache of a function, and the bytes that this leaves."""
SLOW = ("long texts", "languages")
SLACK = 250_000  # bytes, also for what other parts of the process allocate meanwhile


@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=pytest.mark.thorough if one in SLOW else []) for one in HOSTILE]
)
def test_what_hostile_values_leave_in_memory_is_bounded(kind: str) -> None:
    most, use = HOSTILE[kind]
    tracemalloc.start()
    try:
        for number in range(TIMES):
            use(number)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= most + SLACK


async def test_parsed_requests_and_documents_are_bounded_and_counted() -> None:
    drain = GracefulShutdown()
    transport = httpx.ASGITransport(app=small_app(SmallStore(), drain=drain))
    gc.collect()  # the figure is the sum of all applications, also of those of former tests
    before = used()
    with drain.started():
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for number in range(100):
                values = f'{{"x{number}": [{"[]," * 600}[]]}}'
                for query in (f'{{ hello(name: \\"{number}{"a" * 20_000}\\") }}', '{ hello(name: \\"a\\") }'):
                    body = f'{{"query": "{query}", "variables": {values}}}'
                    answer = await client.post("/graphql", content=body, headers={"content-type": JSON})
                    assert answer.status_code == 200
    requests, documents = (now - then for now, then in zip(used(), before, strict=True))
    assert 5_000_000 < requests <= 8_000_000
    assert 45_000_000 < documents <= 90_000_000


def used() -> list[int]:
    found = cache_usage()
    return [found[name].bytes if name in found else 0 for name in ("requests", "documents")]


def of_many_values(chosen: int) -> tuple[str, dict[str, object]]:
    """A long document whose plan depends on variables of directives."""
    names = "abcdefgh"
    declared = ", ".join(f"${name}: Boolean!" for name in names)
    included = " ".join(f"{name}: key @include(if: ${name})" for name in names)
    keys = " ".join(f"x{number}: key" for number in range(800))
    query = f'query({declared}) {{ area(path: "a") {{ {included} id ancestors {{ {keys} }} }} }}'
    return query, {name: bool(chosen >> place & 1) for place, name in enumerate(names)}


ROOT = derived_id("ground", ("a",))
REQUESTS: dict[str, tuple[int, Callable[[int], tuple[str, dict[str, object]]]]] = {
    "variables": (600_000, lambda n: (  # each with the bounds of its own condition
        'query($path: Path!) { area(path: "a") { descendants(where: {path: {gt: $path}}) { totalCount } } }',
        {"path": f"a/{n}", "x": "y" * 30_000},
    )),
    "plans of many values": (900_000, of_many_values),
    "cursors": (400_000, lambda n: (
        'query($after: String) { area(path: "a") { children(after: $after) { nodes { id } } } }',
        {"after": encode_cursor(CursorKind.CHILDREN, f"ground:{ROOT}", f"A{n}" + "x" * 20_000)},
    )),
}  # fmt: skip
"""The bytes that 60 requests leave, and how they are made."""


@pytest.fixture
async def two_areas() -> AsyncIterator[Ask]:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await Model("ground", {("a",): "AREA", ("a", "b"): "AREA"}).plant(store)
        async with door(store, Ground, limits=WIDE, pages=PageCache(10_000_000)) as ask:
            yield ask


@pytest.mark.parametrize("kind", REQUESTS)
async def test_what_hostile_requests_leave_in_memory_is_bounded(two_areas: Ask, kind: str) -> None:
    most, request = REQUESTS[kind]
    query, variables = request(0)
    await two_areas(query, **variables)  # which also fills what is made once
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 61):
            query, variables = request(number)
            answer = await two_areas(query, **variables)
            assert answer.status_code == 200, answer.text
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        held = tracemalloc.take_snapshot().statistics("lineno")[:15] if taken > most else []
    finally:
        tracemalloc.stop()
    assert taken <= most, "\n".join(map(str, [answer.text[:300], *held]))


# -- requests that are sent once ---------------------------------------------------------------------------------------

USED = "query($path: Path!, $is: Boolean!) { area(path: $path) { key @include(if: $is) } }"
PREPARING = {"read_json", "RequestCache._new", "PlanCache._compile"}
"""What is called for a new request, a new document, and a new plan."""
LONG = f"# {'x' * 15_000}\n"
SENT_ONCE: dict[str, tuple[int, Callable[[int], tuple[str, dict[str, object]]]]] = {
    "bodies": (120, lambda n: (USED, {"path": "a", "is": True, "more": f"{n}{LONG[:1_800]}"})),
    "documents": (30, lambda n: (f'{LONG} {{ area(path: "a") {{ k{n}: key }} }}', {})),
    "plans": (30, lambda n: (LONG + USED.replace("key", f"k{n}: key"), {"path": "a", "is": True})),
}
"""The number of requests that fill a cache, and how they are made."""


@pytest.mark.parametrize("kind", SENT_ONCE)
async def test_requests_that_are_sent_once_evict_nothing_that_is_used_again(
    two_areas: Ask, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "parse_document", parse_document)  # of which other tests keep what is valid
    number_sent, request = SENT_ONCE[kind]
    assert await prepared_for(two_areas) == PREPARING
    assert await prepared_for(two_areas) == set()
    for number in range(number_sent):
        query, variables = request(number)
        assert "errors" not in (await two_areas(query, **variables)).json()
    assert await prepared_for(two_areas) == set()


async def prepared_for(ask: Ask) -> set[str]:
    """Which of these functions are called for a request."""
    called: set[str] = set()
    sys.setprofile(lambda frame, event, argument: called.add(frame.f_code.co_qualname))
    try:
        answer = await ask(USED, path="a", **{"is": True})
    finally:
        sys.setprofile(None)
    assert answer.json() == {"data": {"area": {"key": "a"}}}
    return called & PREPARING


# -- large responses under way -----------------------------------------------------------------------------------------

NODES = LARGE_READ_NODES + 100
SMALL = '{ area(path: "a/0") { key children { nodes { key } } parent { key } } }'
LARGE_ONES = [
    '{ area(path: "a") { children { nodes { key } } } }',
    '{ area(path: "a") { descendants { nodes { key children { nodes { key } } } } } }',
    "{ grounds { nodes { children { nodes { key children { nodes { key } } } } } } }",
    "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
]
IDS = [f"ground:{derived_id('ground', ('a', str(number)))}" for number in range(NODES)]


class Crowd(ReadRecorder):
    """A store that counts how many nodes there are in memory after each read, and that may wait or fail."""

    def __init__(self, store) -> None:
        super().__init__(store)
        self.turns = asyncio.Semaphore(2)
        gc.collect()
        self._others = self._records()  # of the tests that ran before in this process
        self.most_nodes, self.fails = 0, False
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    def _records(self) -> int:
        return sum(isinstance(one, Record) for one in gc.get_objects())

    async def nodes(self, *asked, **limits):
        self.asked.set()
        await self.goes_on.wait()
        if self.fails:
            raise Unavailable("The store is away.")
        found = await super().nodes(*asked, **limits)
        await asyncio.sleep(0)
        self.most_nodes = max(self.most_nodes, self._records() - self._others)
        return found

    async def take_all(self) -> None:
        for _ in range(2):
            await self.turns.acquire()

    async def check_that_all_are_free(self) -> None:
        async with asyncio.timeout(60):
            await self.take_all()
        for _ in range(2):
            self.turns.release()


@pytest.fixture
async def crowd(tmp_path):
    """Many nodes in a store, of whose large responses two are made at a time."""
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
        await Model("ground", {("a",): "AREA"} | {("a", str(number)): "AREA" for number in range(NODES)}).plant(store)
        yield Crowd(store)


def codes(answer: httpx.Response) -> set[str]:
    return {error["extensions"]["code"] for error in answer.json().get("errors", ())}


async def test_at_most_two_large_responses_are_made_at_a_time(crowd):
    async with door(crowd, Ground, large_reads=crowd.turns) as ask:
        answers = await asyncio.gather(*[ask(query) for query in LARGE_ONES[:3] * 4])
    assert not any(map(codes, answers))
    assert NODES < crowd.most_nodes < 2 * (NODES + 10) + LARGE_READ_NODES
    await crowd.check_that_all_are_free()


@pytest.mark.parametrize("query", LARGE_ONES)
async def test_small_requests_are_answered_while_large_ones_wait(crowd, query):
    await crowd.take_all()
    async with door(crowd, Ground, large_reads=crowd.turns) as ask:
        large = asyncio.ensure_future(ask(query, ids=IDS))
        for _ in range(20):
            assert not codes(await ask(SMALL))
        assert not large.done()
        crowd.turns.release()
        assert not codes(await large)
        crowd.turns.release()
    await crowd.check_that_all_are_free()


async def test_a_turn_is_given_back_however_a_request_ends(crowd):
    large, turns = LARGE_ONES[1], crowd.turns
    async with door(crowd, Ground, large_reads=turns) as ask:
        crowd.fails = True
        assert "UNAVAILABLE" in codes(await ask(large))
        await crowd.check_that_all_are_free()
        crowd.fails = False
        crowd.asked.clear()
        crowd.goes_on.clear()
        leaving = asyncio.ensure_future(ask(large))
        await crowd.asked.wait()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        crowd.goes_on.set()
        await crowd.check_that_all_are_free()
        await crowd.take_all()
        limits = replace(PATIENT, request_seconds=0.1)
        async with door(crowd, Ground, limits=limits, large_reads=turns) as hasty:
            assert codes(await hasty(large)) == {"TIMEOUT"}
        turns.release()
        turns.release()
        await crowd.check_that_all_are_free()
        assert not codes(await ask(large))


# -- slow readers ------------------------------------------------------------------------------------------------------

BODY = bytes(3 * PIECE_BYTES)


async def test_only_the_longest_waiting_client_is_disconnected():
    """Three bodies of which two may wait: the first stays where it is, and the others come to their ends."""
    sending, taken = ResponseSender(9 * PIECE_BYTES), [asyncio.Event() for _ in range(3)]
    sent: list[list[bool]] = [[], [], []]

    def client(number: int):
        async def send(message):
            sent[number].append(message["more_body"])
            await taken[number].wait()

        return send

    bodies = [asyncio.ensure_future(sending.send(client(n), bytes(3 * PIECE_BYTES))) for n in range(3)]
    await asyncio.wait_for(bodies[0], 60)
    assert sent == [[True], [True], [True]]
    for event in taken:
        event.set()
    assert await asyncio.gather(*bodies) == [False, True, True]
    assert sent == [[True], [True, True, False], [True, True, False]]


async def test_a_client_that_reads_occasionally_is_not_disconnected_first():
    sending, sent = ResponseSender(9 * PIECE_BYTES), [0, 0, 0]
    takes = [asyncio.Semaphore(0) for _ in sent]

    def begin(number: int) -> asyncio.Future[bool]:
        async def send(message):
            sent[number] += not message["more_body"]
            await takes[number].acquire()

        return asyncio.ensure_future(sending.send(send, bytes(3 * PIECE_BYTES)))

    bodies = [begin(0), begin(1)]
    await asyncio.sleep(0)
    takes[0].release()
    await asyncio.sleep(0.01)
    bodies.append(begin(2))
    await asyncio.wait_for(bodies[1], 60)
    for _ in range(3):
        takes[0].release()
        takes[2].release()
    await asyncio.gather(*bodies)
    assert sent == [1, 0, 1]


async def test_one_response_to_many_clients_takes_its_memory_once():
    sending, may_go = ResponseSender(9 * PIECE_BYTES), asyncio.Event()

    async def send(_):
        await may_go.wait()

    bodies = [asyncio.ensure_future(sending.send(send, BODY)) for _ in range(6)]
    await asyncio.sleep(0)
    may_go.set()
    assert await asyncio.gather(*bodies) == [True] * 6


async def test_of_two_bodies_that_have_no_room_together_the_newer_is_sent():
    sending, may_go = ResponseSender(PIECE_BYTES), asyncio.Event()

    async def send(_):
        await may_go.wait()

    older, newer = [asyncio.ensure_future(sending.send(send, bytes(3 * PIECE_BYTES))) for _ in range(2)]
    await asyncio.wait_for(older, 60)
    may_go.set()
    assert (await older, await newer) == (False, True)
