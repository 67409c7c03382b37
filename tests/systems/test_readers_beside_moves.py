"""Readers beside moves: whenever the commit comes, a response is that of before or that of after, never of both."""

import itertools
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson
import pytest

from graph.execution.operation import Execution
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from resolvers.access.grants import Grants
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.model.keys import KeyRange, siblings
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.hierarchies import CATEGORY
from tests.model import AT, Field, GraphText, Ground, Model, Word, are_told, without_failures
from tests.move_in_progress import MOVE, FlippingStore, MoveInProgress, flip_back, plant
from tests.moving_subtree import HERE, THERE, MovingSubtree
from tests.systems.asking import BOUNDLESS, WIDE, Client
from tests.systems.test_answers_model import DEFINITIONS, SCHEMA, SCHEMA_TYPES
from tests.systems.writing import Clients

NEVER = 1_000_000
SHOWN = "moved: moves(hierarchy: GROUND) { state }"


async def ask(store: Store, fields: list[Field], *, shows_move: bool) -> Any:
    text = GraphText(fields)
    query = text.text[: text.text.rindex("}")] + f"{SHOWN} }}" if shows_move else text.text
    request = Request(store, DEFINITIONS, BOUNDLESS)
    execution = Execution(SCHEMA, SCHEMA_TYPES, lambda: Context(request), limits=WIDE)
    return orjson.loads((await answer_to(execution, query, text.variables, allow_mutations=False)).content())


def is_of(moving: MoveInProgress, body: dict[str, Any], fields: list[Field], *, committed: bool) -> bool:
    """Whether a response is that of one side of a move."""
    answer = (moving.after if committed else moving.before).answer(fields)
    data = {**body["data"]}
    shown = data.pop("moved", None) in (None, [{"state": "SWEEPING" if committed else "COPYING"}])
    return shown and data == without_failures(answer) and are_told(body.get("errors", ()), answer)


async def check(store: Store, moving: MoveInProgress, fields: list[Field], *, shows_move: bool) -> None:
    """Ask with the move's commit before each of the reads that a response takes, and with none; `shows_move` asks for
    the move itself beside.
    """
    for reads in range(NEVER):
        await flip_back(store, moving)
        committing: Any = FlippingStore(store, moving, reads)
        body = await ask(committing, fields, shows_move=shows_move)
        if not committing.has_committed:
            assert is_of(moving, body, fields, committed=False), GraphText(fields)
            break
        assert any(is_of(moving, body, fields, committed=one) for one in (False, True)), (reads, GraphText(fields))
    committing = FlippingStore(store, moving, 0)
    assert is_of(moving, await ask(committing, fields, shows_move=shows_move), fields, committed=True), GraphText(
        fields
    )


PATHS = "A A/w A/x A/x/1 A/x/2 A/x/2/3 A/y A/y/4 A/z B B/q B/q/5 C".split()
SMALL = Model("ground", {parse_path(path): "AREA_PART" if "q" in path else "AREA" for path in PATHS})
BACKWARDS = {"orderBy": [{"field": Word("POSITION"), "direction": Word("DESC")}]}
WINDOWS: list[dict[str, Any]] = [
    {}, {"first": 1}, {"first": 2}, {"last": 2}, {"first": 2, **BACKWARDS}, {"first": 3, "level": [Word("AREA")]},
]  # fmt: skip
TOLD = tuple(Field(one, one) for one in "hasNextPage hasPreviousPage startCursor endCursor".split())
PAGE = (Field("n", "nodes", {}, (Field("p", "path"),)), Field("i", "pageInfo", {}, TOLD), Field("t", "totalCount"))


def pages(name: str) -> tuple[Field, ...]:
    windows = [one for one in WINDOWS if name != "descendants" or "orderBy" not in one]
    return tuple([Field(f"{name}{number}", name, window, PAGE) for number, window in enumerate(windows)])


def everything(moving: MoveInProgress) -> Iterator[list[Field]]:
    """All lists of all nodes and of the hierarchy, and each node by its id and by the paths of both ends."""
    yield list(pages("grounds"))
    path = (Field("p", "path"),)
    above = (*path, Field("up", "parent", {}, path), Field("a", "ancestors", {}, path), Field("c", "childCount"))
    yield [Field(f"n{n}", "ground", {"id": one}, above) for n, one in enumerate(moving.before.ids)]
    paths = sorted({format_path(one) for one in (*moving.before.nodes, *moving.after.nodes)})
    yield [Field(f"n{n}", "ground", {"path": one}, above) for n, one in enumerate(paths)]
    wide = {path[:-1] for model in (moving.before, moving.after) for path in model.nodes if len(path) > 1}
    for one in sorted(map(format_path, wide)):
        for kind in ("children", "descendants"):
            yield [Field("g", "ground", {"path": one}, pages(kind))]


@pytest.mark.parametrize(
    ("source", "target", "shows_move"),
    [
        ("A/x", "B/x", False),
        pytest.param("A/x", "A/y/x", False, marks=pytest.mark.thorough),
        pytest.param("A/x", "x", False, marks=pytest.mark.thorough),
        pytest.param("B", "A/B", False, marks=pytest.mark.thorough),
        pytest.param("A/x", None, True, marks=pytest.mark.thorough),
        ("B", None, True),
    ],
)
async def test_every_list_of_a_small_tree_is_whole_on_one_side(source, target, shows_move):
    moving = MoveInProgress(SMALL, parse_path(source), None if target is None else parse_path(target))
    async with open_store("sqlite://:memory:") as store:
        await plant(store, moving)
        for fields in everything(moving):
            await check(store, moving, fields, shows_move=shows_move)


MOVES = """query($id: ID!) {
  move(id: $id) { id hierarchy from to state reason nodes written startedAt endedAt }
  moves(hierarchy: GROUND) { id }
}"""


@pytest.mark.parametrize(
    ("tops", "is_seen"), [(None, True), (["A", "B"], True), (["A/x", "B/x"], True), (["A"], False), (["B/x/2"], False)]
)
async def test_a_move_is_told_to_those_who_may_read_both_ends(store, tops, is_seen):
    await plant(store, MoveInProgress(SMALL, ("A", "x"), ("B", "x")))
    grants = None if tops is None else Grants.of([("ground", parse_path(top)) for top in tops], [])
    request = Request(store, DEFINITIONS, grants=grants)
    execution = Execution(SCHEMA, SCHEMA_TYPES, lambda: Context(request))
    answer = await answer_to(execution, MOVES, {"id": MOVE}, allow_mutations=False)
    told = {
        "id": MOVE, "hierarchy": "GROUND", "from": "A/x", "to": "B/x", "state": "COPYING", "reason": None, "nodes": 1,
        "written": 1, "startedAt": AT, "endedAt": None,
    }  # fmt: skip
    expected = {"move": told, "moves": [{"id": MOVE}]} if is_seen else {"move": None, "moves": []}
    assert orjson.loads(answer.content())["data"] == expected


def asked_of(store: Any) -> Context:
    return Context(Request(store, DEFINITIONS))


class LateRoots(FlippingStore):
    """A store whose index of roots still has the counts of before."""

    before: list[Record]

    async def nodes(self, span: KeyRange, reads: ReadUsage, **how: Any) -> list[Record]:
        found = await super().nodes(span, reads, **how)
        return self.before if span.partition == "ground" else found


NODE = 'node: ground(path: "A/x/2") { path parent { childCount } }'
MOVE_STATE = ("COPYING", "A/x/2"), ("SWEEPING", "B/x/2")
ROOT_COUNTS = ((4, 1, 0), "A/x/2"), ((3, 2, 0), "B/x/2")
EVENTS = ((), "A/x/2"), (("MOVED",), "B/x/2")
BESIDE = [
    *[
        ("log", f'log: changes(hierarchy: GROUND, tree: "{tree}") {{ changes {{ event }} }}',
         lambda log: tuple(change["event"] for change in log["changes"]), EVENTS, FlippingStore)
        for tree in "AB"
    ],
    ("move", f'move(id: "{MOVE}") {{ state }}', lambda move: move["state"], MOVE_STATE, FlippingStore),
    ("move", "move: moves(hierarchy: GROUND) { state }", lambda moves: moves[0]["state"], MOVE_STATE, FlippingStore),
    *[
        ("roots", "roots: grounds { nodes { childCount } }",
         lambda roots: tuple(root["childCount"] for root in roots["nodes"]), ROOT_COUNTS, kind)
        for kind in (FlippingStore, LateRoots)
    ],
]  # fmt: skip


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("alias", "field", "shown", "sides", "kind"), BESIDE)
async def test_what_is_told_of_moves_and_counts_is_of_the_same_side_as_what_is_beside_it(
    engine, is_first, alias, field, shown, sides, kind
):
    moving = MoveInProgress(SMALL, ("A", "x"), ("B", "x"))
    async with open_store(engine.address(f"told-{uuid.uuid4().hex}")) as store:
        await plant(store, moving)
        seen = set()
        for reads in range(NEVER):
            await flip_back(store, moving)
            committing: Any = kind(store, moving, reads)
            committing.before = await store.nodes(siblings("ground"), ReadUsage())
            execution = Execution(SCHEMA, SCHEMA_TYPES, partial(asked_of, committing), limits=WIDE)
            query = f"{{ {' '.join([field, NODE] if is_first else [NODE, field])} }}"
            data = orjson.loads((await answer_to(execution, query, {}, allow_mutations=False)).content())["data"]
            seen.add((shown(data[alias]), data["node"]["path"]))
            if not committing.has_committed:
                break
        assert seen == {*sides}


async def test_moves_come_as_a_window_says_and_only_those_of_served_hierarchies(store):
    await plant(store, MoveInProgress(SMALL, ("A", "x"), ("B", "x")))
    asked = Client(store, Ground)
    for arguments, expected in (("", 1), (", first: null", 1), (", first: 1", 1), (", first: 0", 0)):
        reply = await asked.ask(f"{{ moves(hierarchy: GROUND{arguments}) {{ id }} }}")
        assert len(reply.data["moves"]) == expected
    reply = await asked.ask("{ moves(hierarchy: GROUND, first: -1) { id } }")
    assert [error["extensions"]["code"] for error in reply.errors] == ["BAD_USER_INPUT"]
    assert (await Client(store, Location).ask(f'{{ move(id: "{MOVE}") {{ id hierarchy }} }}')).data == {"move": None}


class Moved:
    """A store in which a subtree is moved right before one of the reads."""

    def __init__(self, store: Store, read: int) -> None:
        self._store = store
        self.left = read

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("get", "range", "nodes"):
            return found

        async def read(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                await Writer(self._store).write(Move(CATEGORY, parse_path(HERE), parse_path(THERE)), ReadUsage())
            return await found(*arguments, **options)

        return read


@pytest.mark.parametrize("shows_move", [False, True])
@pytest.mark.parametrize("where", ["sqlite://:memory:", "sqlite:///{}/{}.db"])
async def test_on_sqlite_a_response_is_of_one_moment(tmp_path, where: str, shows_move: bool) -> None:
    subtree = MovingSubtree(2, 2)
    query, variables = subtree.watch()
    if shows_move:  # small ones are in the feed
        tree = THERE.partition("/")[0]
        query = query.replace("{", f'{{ feed: changes(hierarchy: CATEGORY, tree: "{tree}") {{ changes {{ to }} }}', 1)

    def place_in(data: dict[str, Any]) -> str:
        place = subtree.place_in(data)
        moves = [one["to"] for one in data["feed"]["changes"] if one["to"]] if shows_move else None
        assert moves in (None, [THERE] * (place == THERE))
        return place

    for read in itertools.count(1):
        async with open_store(where.format(tmp_path, read)) as store:
            await store.create()
            await subtree.plant(store)
            moved: Any = Moved(store, read)
            clients = Clients(moved)
            place_in(await clients.ask(query, **variables))
            if moved.left > 0:
                assert read > 3  # it was tried before each of several reads
                return
            assert place_in(await clients.ask(query, **variables)) == THERE
