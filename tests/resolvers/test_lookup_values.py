"""Lookups by unique values: which node is found, while others write too, and what that reads."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from resolvers.session.cache import PageCache, TreeVersionCache
from store.engine import ReadUsage, Store
from store.kinds.marker import marker_key
from store.metadata.moves import MoveState
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.paths import parse_path
from store.model.records import Delete as Remove
from store.model.records import Item, Put
from store.writing.create_update import Create, Update
from store.writing.edit_many import EditMany
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests import invariants
from tests.rights.asking import Server, caller
from tests.store.writing import journaled
from tests.stores import Interrupted, ReadRecorder, StoreProxy, once
from tests.systems.asking import Client
from tests.wares import Old, WareNode

pytestmark = pytest.mark.both_stores

SETTLE = 2.0


WARES = WareNode.definition()


def create(path: str, level: str = "WARE", **values: Any) -> Create:
    return Create(WARES, parse_path(path), level, path, values, path.replace("/", "-"))


def update(path: str, **values: Any) -> Update:
    return Update(WARES, parse_path(path), None, None, values)


def move(path: str, target: str) -> Move:
    return Move(WARES, parse_path(path), parse_path(target))


def delete(path: str) -> Delete:
    return Delete(WARES, parse_path(path), Policy.CASCADE)


async def write(store: Store, *edits: Any) -> None:
    for one in edits:
        await journaled.write(store, one)


@pytest.fixture
async def stocked(store: Store) -> Store:
    """The shelves r and o, with 40 wares on r/a, whose codes are A0 to A39, and B on o/b."""
    await write(store, create("r", "SHELF"), create("r/a", "SHELF"), create("o", "SHELF"))
    wares = [create(f"r/a/w{n}", sku=f"A{n}", serial=n) for n in range(40)]
    for some in (wares[:20], wares[20:]):
        await Writer(store).write(EditMany(WARES, some), ReadUsage())
    values = {"sku": "B", "serial": 100, "since": "2026-11-29", "in_bin": "LEFT"}
    await write(store, create("o/b", **values), create("o/b/p", "PIECE", sku="P"))
    return store


def client(store: Store) -> Client:
    return Client(store, WareNode, page_cache=PageCache(0))


def lags(store: Store) -> bool:
    return store.version() is None


async def ask(store: Store, arguments: str, field: str = "ware") -> tuple[Any, int]:
    """The path of the node that a field finds, and the requests for it."""
    reply = await client(store).ask(f"{{ found: {field}({arguments}) {{ path }} }}")
    assert reply.errors == []
    found = reply.data["found"]
    return found and found["path"], reply.requests


# -- what is found -----------------------------------------------------------------------------------------------------


FOUND = [
    ("ware", 'sku: "B"', "o/b"),
    ("ware", "serial: 100", "o/b"),
    ("ware", 'serial: "100"', "o/b"),
    ("ware", 'since: "2026-11-29"', "o/b"),
    ("ware", "inBin: LEFT", "o/b"),
    ("ware", 'sku: "B", path: null, id: null', "o/b"),
    ("wareNode", "serial: 100", "o/b"),
    ("piece", 'sku: "P"', "o/b/p"),
]


async def test_a_node_is_found_by_each_of_its_unique_values(stocked: Store) -> None:
    for field, arguments, path in FOUND:
        assert await ask(stocked, arguments, field) == (path, 2), (field, arguments)


WRONG = [
    ("ware", "", "BAD_USER_INPUT", "path, id, serial, sku, since and inBin are missing; give one of them."),
    ("ware", 'sku: "B", path: "o/b"', "BAD_USER_INPUT", "path and sku are both given; give one of them."),
    ("ware", 'id: "a", serial: 1, sku: "B"', "BAD_USER_INPUT", "id, serial and sku are all given; give one"),
    ("wareNode", "", "BAD_USER_INPUT", "path, id and serial are missing; give one of them."),
    ("ware", 'serial: "x"', "BAD_USER_INPUT", 'serial: "x" is not a whole number'),
    ("ware", 'since: "2026-02-30"', "BAD_USER_INPUT", 'since: "2026-02-30" is not a date'),
    ("piece", 'sku: "B"', "WRONG_LEVEL", "o/b has the level WARE, not PIECE."),
    ("ware", 'sku: "P"', "WRONG_LEVEL", "o/b/p has the level PIECE, not WARE."),
]


async def test_a_wrong_argument_is_an_error_of_its_field_alone(stocked: Store) -> None:
    for field, arguments, code, text in WRONG:
        given = f"({arguments})" if arguments else ""
        reply = await client(stocked).ask(f'{{ found: {field}{given} {{ path }} ware(sku: "A1") {{ path }} }}')
        assert reply.data == {"found": None, "ware": {"path": "r/a/w1"}}, (field, arguments)
        (error,) = reply.errors
        assert (error["path"], error["extensions"]["code"]) == (["found"], code), (field, arguments)
        assert text in error["message"]


async def test_a_value_that_breaks_a_rule_by_now_is_found(stocked: Store) -> None:
    plain = replace(WARES.levels["PIECE"], attributes={"sku": WARES.levels["PIECE"].attributes["sku"]})
    wares: Hierarchy = replace(WARES, levels={**WARES.levels, "WARE": replace(plain, name="WARE", under={"SHELF"})})
    values = ("no code", "a\u0308" * 2, "", "x" * 2_000)
    for number, value in enumerate(values):
        await write(stocked, Create(wares, ("o", f"n{number}"), "WARE", "n", {"sku": value}))
    for number, value in enumerate(values):
        reply = await client(stocked).ask("query ($sku: String) { ware(sku: $sku) { path } }", sku=value)
        assert reply.data == {"ware": {"path": f"o/n{number}"}}
    assert (await ask(stocked, 'sku: "\u00e4\u00e4"'))[0] == "o/n1"


async def test_a_value_passes_on_at_once_and_is_null_after_a_deletion(stocked: Store) -> None:
    clock = Clock()
    kept = Client(stocked, WareNode, page_cache=PageCache(10_000_000, TreeVersionCache(SETTLE, 0.0, clock)))

    async def found() -> list[Any]:
        reply = await kept.ask('{ a: ware(sku: "A1") { path } b: ware(sku: "B") { path } }')
        clock.now += 2 * SETTLE
        return [one and one["path"] for one in reply.data.values()]

    for _ in range(3):
        assert await found() == ["r/a/w1", "o/b"]
    await Writer(stocked).write(EditMany(WARES, [update("r/a/w1", sku="B"), update("o/b", sku="A1")]), ReadUsage())
    for _ in range(3):
        assert await found() == ["o/b", "r/a/w1"]
    await write(stocked, update("o/b", sku=None), create("o/c", sku="A1"))
    assert await found() == ["o/c", "r/a/w1"]
    await write(stocked, delete("r"))
    for _ in range(2):
        assert await found() == ["o/c", None]
    await write(stocked, create("o/d", sku="B"))
    assert await found() == ["o/c", "o/d"]


async def test_the_name_in_the_marker_counts(stocked: Store) -> None:
    """An attribute that has been renamed several times, of which the class has forgotten the first name."""
    sku = WARES.levels["PIECE"].attributes["sku"]

    def wares(name: str, *was: str) -> Hierarchy:
        own = replace(sku, name=name, was=was)
        ware, piece = (replace(WARES.levels[one], attributes={name: own}) for one in ("WARE", "PIECE"))
        return replace(WARES, name="old", levels={**WARES.levels, "WARE": ware, "PIECE": piece})

    first, second = wares("first"), wares("second", "first")
    for number, (hierarchy, values) in enumerate([(first, {"first": "A"}), (second, {"second": "B"})]):
        if not number:
            await write(stocked, Create(hierarchy, ("s",), "SHELF", "s", {}))
        await write(stocked, Create(hierarchy, ("s", f"n{number}"), "WARE", "n", values))
    await write(stocked, Update(wares("third", "second"), ("s", "n1"), "new name", None, {}))

    reply = await Client(stocked, Old, page_cache=PageCache(0)).ask('{ oldWare(third: "B") { path } }')
    assert (reply.data, reply.errors, reply.requests) == ({"oldWare": {"path": "s/n1"}}, [], 3)


# -- what is read ------------------------------------------------------------------------------------------------------


async def test_thirty_aliases_take_the_requests_of_one_and_all_kinds_of_lookups_share_them(stocked: Store) -> None:
    thirty = " ".join(f'n{n}: ware(sku: "A{n}") {{ path ancestors {{ path }} }}' for n in range(30))
    reply = await client(stocked).ask(f"{{ {thirty} }}")
    assert [one["path"] for one in reply.data.values()] == [f"r/a/w{n}" for n in range(30)]
    assert (reply.requests, reply.rounds) == (2, 2)
    assert reply.items == 30 + 1 + 30 + 3, "the values and the marker; the nodes, their ancestors and the version"
    mixed = 'a: ware(sku: "A1") { path } b: ware(path: "o/b") { path } c: wareNode(id: "ware:r-a-w2") { path }'
    reply = await client(stocked).ask(f'{{ {mixed} d: piece(sku: "P") {{ path }} e: ware(serial: 1) {{ path }} }}')
    assert [one["path"] for one in reply.data.values()] == ["r/a/w1", "o/b", "r/a/w2", "o/b/p", "r/a/w1"]
    assert (reply.requests, reply.rounds) == (2, 2)


@pytest.mark.parametrize(
    ("edit", "path", "is_large"),
    [
        (move("r/a/w3", "r/w3"), "r/w3", False),
        (move("r/a/w3", "o/w3"), "o/w3", False),
        (move("r/a", "r/new"), "r/new/w3", True),
        (move("r", "s"), "s/a/w3", True),
        # Whether a move is large makes no difference to these where it makes none to those above.
        pytest.param(move("r/a/w3", "r/w3"), "r/w3", True, marks=pytest.mark.thorough),
        pytest.param(move("r/a/w3", "o/w3"), "o/w3", True, marks=pytest.mark.thorough),
        pytest.param(move("r/a", "r/new"), "r/new/w3", False, marks=pytest.mark.thorough),
        pytest.param(move("r", "s"), "s/a/w3", False, marks=pytest.mark.thorough),
    ],
)
async def test_a_moved_node_takes_three_requests_more(stocked: Store, edit: Move, path: str, is_large: bool) -> None:
    stocked.max_commit_changes = journaled.SMALL if is_large else 10_000 if stocked.is_embedded else 100
    await write(stocked, edit)
    # SQLite has read the item of the value already.
    assert await ask(stocked, 'sku: "A3"') == (path, 5 if lags(stocked) else 4)
    await write(stocked, create("x", "SHELF"), create("x/y", sku="Y"))
    mixed = 'a: ware(sku: "A3") { path } b: ware(sku: "Y") { path } c: ware(sku: "A4") { path }'
    reply = await client(stocked).ask(f"{{ {mixed} }}")
    assert reply.data["b"] == {"path": "x/y"}
    assert reply.requests == (5 if lags(stocked) else 4)


async def test_another_node_at_the_place_of_a_moved_one_is_not_taken_for_it(stocked: Store) -> None:
    await write(stocked, move("r/a/w3", "o/w3"), create("r/a/x"), move("r/a/x", "r/a/w3"))
    assert (await ask(stocked, 'sku: "A3"'))[0] == "o/w3"


@pytest.mark.parametrize("state", [MoveState.COPYING, MoveState.SWEEPING])
async def test_a_node_is_found_by_its_value_while_a_large_move_runs(stocked: Store, state: MoveState) -> None:
    stocked.max_commit_changes = journaled.SMALL
    await journaled.halted(stocked, move("r/a", "o/a"), state)
    path = "r/a/w" if state is MoveState.COPYING else "o/a/w"
    for some in (range(20), range(20, 40)):  # some of which are copied, or swept
        aliases = " ".join(f'n{n}: ware(sku: "A{n}") {{ path }}' for n in some)
        reply = await client(stocked).ask(f"{{ {aliases} }}")
        assert [one and one["path"] for one in reply.data.values()] == [f"{path}{n}" for n in some]


async def test_a_missing_value_is_read_twice_where_reads_lag_and_is_not_cached(stocked: Store) -> None:
    assert await ask(stocked, 'sku: "NONE"') == (None, 2 if lags(stocked) else 1)
    server, hows = Server(stocked, WareNode), []
    for _ in range(3):
        how, content = await server.how(caller(reads=False), '{ ware(sku: "NONE") { path } }')
        hows.append(how)
        assert content == b'{"data":{"ware":null}}'
    assert (hows[-1] == "cached") is stocked.is_embedded, "where every write changes the version of the store"
    await write(stocked, create("o/new", sku="NONE"))
    assert b"o/new" in (await server.how(caller(reads=False), '{ ware(sku: "NONE") { path } }'))[1]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_warm_lookup_reads_the_version_of_its_tree_alone(stocked: Store) -> None:
    clock = Clock()
    kept = Client(stocked, WareNode, page_cache=PageCache(10_000_000, TreeVersionCache(SETTLE, 0.0, clock)))
    query = '{ ware(sku: "A3") { path parent { path } } }'

    async def costs() -> tuple[int, int]:
        reply = await kept.ask(query)
        assert reply.data["ware"]["path"].endswith("w3")
        clock.now += 2 * SETTLE
        return reply.requests, reply.items

    for edits in ([], [move("r/a", "r/new")], [move("r/new/w3", "o/w3")]):
        await write(stocked, *edits)
        assert (await costs())[0] >= 2
        await costs()
        assert await costs() == ((1, 1) if lags(stocked) else (0, 0))
    await write(stocked, update("r/new/w4", sku="C"))
    assert (await costs() == (1, 1)) is lags(stocked), "another tree; the version of SQLite is that of the store"


# -- callers with grants -----------------------------------------------------------------------------------------------


HIDDEN = {
    "a: ware(sku: B) { path }": ("a: ware(sku: N) { path }", 2),
    "a: piece(sku: B) { path }": ("a: piece(sku: N) { path }", 2),
    "a: ware(sku: B) { path } b: ware(serial: 100) { path }": (
        "a: ware(sku: N) { path } b: ware(serial: 7000) { path }", 2,
    ),
    "a: ware(sku: B) { path } b: wareNode(id: ID) { path }": (
        "a: ware(sku: N) { path } b: wareNode(id: ID) { path }", 3,
    ),
    "a: ware(sku: B) { path } b: ware(sku: A1) { path }": ("a: ware(sku: N) { path } b: ware(sku: A1) { path }", 3),
    "a: ware(sku: B) { path } b: wareNode(path: OLD) { path }": (
        "a: ware(sku: N) { path } b: wareNode(path: NONE) { path }", 2,
    ),
}  # fmt: skip


class Restricted:
    """Asks as somebody who may read the tree r, of a server with its caches."""

    def __init__(self, store: Store) -> None:
        self.calls: Any = Interrupted(store, "get")
        self.keys: Any = ReadRecorder(self.calls)
        self._server = Server(self.keys, WareNode)

    async def ask(self, fields: str) -> tuple[dict[str, Any], int, int]:
        """The answer, and the requests and keys that were read for it."""
        for word, text in {"ID": "ware:o-b", "OLD": "o/former", "NONE": "o/no", "B": "B", "N": "N", "A1": "A1"}.items():
            fields = fields.replace(f": {word})", f': "{text}")')
        self.calls.calls, self.keys.keys = 0, []
        answer = await self._server.ask(caller("read:ware/r"), f"{{ {fields} }}")
        return answer, self.calls.calls, len(self.keys.keys)


async def test_a_hidden_node_costs_what_a_missing_one_costs(stocked: Store) -> None:
    await write(stocked, move("o/b", "o/former"), move("o/former", "o/b"))
    for hidden, (missing, requests) in HIDDEN.items():
        asked = [Restricted(stocked) for _ in range(2)]
        for again in (False, True, True):
            costs = [await one.ask(fields) for one, fields in zip(asked, (hidden, missing), strict=True)]
            assert costs[0] == costs[1], hidden
            assert costs[0][0]["data"]["a"] is None
            # A response is cached on SQLite, where every write changes the version of the store.
            assert costs[0][1] == (0 if again and stocked.is_embedded else requests), hidden


async def test_a_node_that_a_caller_may_read_takes_three_requests_wherever_it_is(stocked: Store) -> None:
    await write(stocked, move("r/a/w2", "r/w2"))
    for value, path in {"A1": "r/a/w1", "A2": "r/w2"}.items():
        asked = Restricted(stocked)
        answer, requests, _ = await asked.ask(f'a: ware(sku: "{value}") {{ path }}')
        assert (answer, requests) == ({"data": {"a": {"path": path}}}, 3)


# -- while others write ------------------------------------------------------------------------------------------------


PASS_ON = ("swapped", "passed on", "moved", "renamed")
CALLERS = {"anyone": caller(reads=False), "restricted": caller("read:ware")}
# Items, the other node, items again, the id record, the node; without a marker no node is known at first.
HASTE = {"unique/ware.sku": 5, "unique/ware.serial": 5, "kinds/": 4}


@pytest.mark.both_stores(False)
@pytest.mark.parametrize("edit", PASS_ON)
@pytest.mark.parametrize("has_moved", [False, True])
@pytest.mark.parametrize("who", ["anyone", "restricted"])
async def test_a_value_that_some_node_has_at_all_times_is_found(
    stocked: Store, edit: str, has_moved: bool, who: str
) -> None:
    """The edit is made before each read in turn; with grants, or if its item has an old place, a value is read anew."""
    source = "r/a/x" if has_moved else "r/a/w1"
    await write(stocked, create("o/c"), *[move("r/a/w1", source)] * has_moved)
    edits: dict[str, tuple[Any, Any]] = {
        "swapped": (passed({source: "B", "o/b": "A1"}), passed({source: "A1", "o/b": "B"})),
        "passed on": (passed({source: None, "o/c": "A1"}), passed({"o/c": None, source: "A1"})),
        "moved": (move(source, "o/w1"), move("o/w1", source)),
        "renamed": (move("r/a", "r/z"), move("r/z", "r/a")),
    }
    there, back = edits[edit]
    for read in range(1, 8):
        between: Any = Interrupted(stocked, "get", before=once(read, partial(write, stocked, there)))
        answer = await Server(between, WareNode).ask(CALLERS[who], '{ ware(sku: "A1") { path sku } }')
        assert "errors" not in answer
        assert answer["data"]["ware"]["sku"] == "A1"
        assert answer["data"]["ware"]["path"] in (source, "o/b", "o/c", "o/w1", source.replace("/a/", "/z/"))
        if between.calls < read:
            assert read > 2
            return
        await write(stocked, back)


def passed(values: dict[str, str | None]) -> EditMany:
    return EditMany(WARES, [update(path, sku=value) for path, value in values.items()])


class Late(StoreProxy):
    """A store whose weak reads lack items of these partitions, as those of DynamoDB may after a write."""

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self._prefix = prefix

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        found = await self._store.get(keys, reads, strong=strong)
        is_late = [not strong and key.pk.startswith(self._prefix) for key in keys]
        return [None if late else item for late, item in zip(is_late, found, strict=True)]


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
@pytest.mark.parametrize("prefix", ["unique/ware.sku", "unique/ware.serial", "kinds/"])
async def test_items_that_weak_reads_lack_are_read_again(stocked: Store, prefix: str) -> None:
    late: Any = Late(stocked, prefix)
    reply = await client(late).ask('{ a: ware(sku: "A1") { path } b: ware(serial: 2) { path } }')
    assert (reply.data, reply.requests) == ({"a": {"path": "r/a/w1"}, "b": {"path": "r/a/w2"}}, HASTE[prefix])


# -- items that are missing or damaged ---------------------------------------------------------------------------------


async def test_without_a_node_ever_there_is_null_and_with_unknown_items_an_error_of_the_field(store: Store) -> None:
    async def told(field: str = "ware") -> tuple[Any, list[Any]]:
        reply = await client(store).ask(f'{{ found: {field} {{ path }} wareNode(path: "r") {{ path }} }}')
        return reply.data["found"], [error["extensions"]["code"] for error in reply.errors]

    assert await told('ware(sku: "A")') == (None, [])
    plain = replace(WARES, levels={name: replace(one, attributes={}) for name, one in WARES.levels.items()})
    await write(store, replace(create("r", "SHELF"), hierarchy=plain), replace(create("r/a"), hierarchy=plain))
    assert await told('ware(sku: "A")') == (None, ["NOT_INDEXED"])
    assert await told('piece(sku: "A")') == (None, ["NOT_INDEXED"]), "they share the values of sku"
    await store.commit([Remove(marker_key("ware"))])
    assert await told('ware(sku: "A")') == (None, ["NOT_INDEXED"])


async def test_a_damaged_item_is_an_error_of_its_field(stocked: Store) -> None:
    key = (await item_of(stocked, "A1"))["pk"]
    await stocked.commit([Put({"pk": key, "sk": "#", "id": 5, "at": "r"})])
    reply = await client(stocked).ask('{ a: ware(sku: "A1") { path } b: ware(sku: "A2") { path } }')
    assert reply.data == {"a": None, "b": {"path": "r/a/w2"}}
    assert [error["path"] for error in reply.errors] == [["a"]]


async def test_the_item_decides_and_not_the_node_at_its_place(stocked: Store) -> None:
    """Of two nodes that both have the value, in a damaged table."""
    found = await item_of(stocked, "A1")
    await stocked.commit([Put({"pk": found["pk"], "sk": "#", "id": "ware:o-b", "at": found["at"]})])
    assert (await ask(stocked, 'sku: "A1"'))[0] is None, "o/b does not have it"
    await stocked.commit([Put({"pk": found["pk"], "sk": "#", "id": "ware:r-a-w1", "at": "o#b#"})])
    assert (await ask(stocked, 'sku: "A1"'))[0] == "r/a/w1"


async def item_of(store: Store, value: str) -> dict[str, Any]:
    return next(one for one in await invariants.all_items(store) if str(one["pk"]).endswith(f".sku#{value}"))
