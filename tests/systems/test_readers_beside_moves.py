"""Readers beside moves: whenever the commit comes, a response is that of before or that of after, never of both."""

import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from graph.hierarchies.locations import Location
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.model.keys import KeyRange, Path, siblings
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.model import AT, Ground, Model
from tests.move_in_progress import MOVE, FlippingStore, MoveInProgress, flip_back, plant
from tests.moving_subtree import HERE, THERE, MovingSubtree
from tests.rights.asking import Server, caller
from tests.stores import READS, Interrupted, once
from tests.systems.asking import BOUNDLESS, WIDE, Client
from tests.systems.writing import Clients

NEVER = 1_000_000
SHOWN = "moved: moves(hierarchy: GROUND) { state }"


async def ask(store: Any, query: str) -> Any:
    reply = await Client(store, Ground, limits=WIDE, budget=BOUNDLESS).ask(query)
    assert not reply.errors, query
    return reply.data


@asynccontextmanager
async def around(source: Path, target: Path | None) -> AsyncIterator[tuple[Store, Store]]:
    """Stores with the tree before a move that is one transaction, and after it."""
    async with open_store("sqlite://:memory:") as before, open_store("sqlite://:memory:") as after:
        for store in (before, after):
            await store.create()
            await SMALL.plant(store)
        ground = Ground.definition()
        edit = Delete(ground, source, Policy.CASCADE) if target is None else Move(ground, source, target)
        await Writer(after).write(edit, ReadUsage())
        yield before, after


async def check(store: Store, moving: MoveInProgress, query: str, sides: list[Any], *, shows_move: bool) -> None:
    """Ask with the move's commit before each of the reads that a response takes, and with none; `shows_move` asks for
    the move itself as well.
    """
    if shows_move:
        query = f"{query[:-1]} {SHOWN} }}"
        states = ("COPYING", "SWEEPING")
        sides = [{**side, "moved": [{"state": state}]} for side, state in zip(sides, states, strict=True)]
    for reads in range(NEVER):
        await flip_back(store, moving)
        committing = FlippingStore(store, moving, reads)
        found = await ask(committing, query)
        assert found in sides, (reads, query)
        assert reads or found == sides[1], query
        if not committing.has_committed:
            assert found == sides[0], query
            break


PATHS = "A A/w A/x A/x/1 A/x/2 A/x/2/3 A/y A/y/4 A/z B B/q B/q/5 C".split()
SMALL = Model("ground", {parse_path(path): "AREA_PART" if "q" in path else "AREA" for path in PATHS})
BACKWARDS = "(first: 2, orderBy: {field: POSITION, direction: DESC})"
WINDOWS = ["", "(first: 1)", "(first: 2)", "(last: 2)", BACKWARDS, "(first: 3, level: AREA)"]
PAGE = "{ nodes { path } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount }"
NEIGHBOURS = "{ path parent { path } ancestors { path } childCount }"


def pages(name: str) -> str:
    windows = [one for one in WINDOWS if name != "descendants" or one != BACKWARDS]
    return " ".join(f"{name}{number}: {name}{window} {PAGE}" for number, window in enumerate(windows))


def everything(moving: MoveInProgress) -> Iterator[str]:
    """All lists of all nodes and of the hierarchy, and each node by its id and by the paths of both ends."""
    yield f"{{ {pages('grounds')} }}"
    paths = sorted({format_path(one) for one in (*moving.before.nodes, *moving.after.nodes)})
    for name, values in (("id", moving.before.ids), ("path", paths)):
        nodes = (f'n{number}: ground({name}: "{value}") {NEIGHBOURS}' for number, value in enumerate(values))
        yield f"{{ {' '.join(nodes)} }}"
    wide = {path[:-1] for model in (moving.before, moving.after) for path in model.nodes if len(path) > 1}
    for path in sorted(map(format_path, wide)):
        for kind in ("children", "descendants"):
            yield f'{{ ground(path: "{path}") {{ {pages(kind)} }} }}'


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
    ends = parse_path(source), target and parse_path(target)
    moving = MoveInProgress(SMALL, *ends)
    async with open_store("sqlite://:memory:") as store, around(*ends) as clean:
        await plant(store, moving)
        for query in everything(moving):
            sides = [await ask(side, query) for side in clean]
            await check(store, moving, query, sides, shows_move=shows_move)


MOVES = """query($id: ID!) {
  move(id: $id) { id hierarchy from to state reason nodes written startedAt endedAt }
  moves(hierarchy: GROUND) { id }
}"""


@pytest.mark.parametrize(
    ("tops", "is_seen"),
    [([""], True), (["/A", "/B"], True), (["/A/x", "/B/x"], True), (["/A"], False), (["/B/x/2"], False)],
)
async def test_a_move_is_told_to_those_who_may_read_both_ends(store, tops, is_seen):
    await plant(store, MoveInProgress(SMALL, ("A", "x"), ("B", "x")))
    found = await Server(store, Ground).data(caller(*[f"read:ground{top}" for top in tops]), MOVES, id=MOVE)
    told = {
        "id": MOVE, "hierarchy": "GROUND", "from": "A/x", "to": "B/x", "state": "COPYING", "reason": None, "nodes": 1,
        "written": 1, "startedAt": AT, "endedAt": None,
    }  # fmt: skip
    expected = {"move": told, "moves": [{"id": MOVE}]} if is_seen else {"move": None, "moves": []}
    assert found == expected


class LateRoots(FlippingStore):
    """A store whose index of roots still has the counts of before."""

    before: list[Record]

    async def nodes(self, span: KeyRange, reads: ReadUsage, **how: Any) -> list[Record]:
        found: list[Record] = await self.__getattr__("nodes")(span, reads, **how)
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
            data = await ask(committing, f"{{ {' '.join([field, NODE] if is_first else [NODE, field])} }}")
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
            move = Move(CATEGORY, parse_path(HERE), parse_path(THERE))
            writing = once(read, partial(Writer(store).write, move, ReadUsage()))
            moved: Any = Interrupted(store, *READS, before=writing)
            clients = Clients(moved)
            place_in(await clients.ask(query, **variables))
            if moved.calls < read:
                assert read > 3  # it was tried before each of several reads
                return
            assert place_in(await clients.ask(query, **variables)) == THERE
