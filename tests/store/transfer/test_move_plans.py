"""Imports that move nodes in every way at once, compared with the best that any choice of rows could give."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import pytest

from store.engine import ReadUsage, Store
from store.metadata.history import ASIDE
from store.model.keys import Key, node_key
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.transfer.load import LoadResult, load
from store.transfer.moves import ImportMoves
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.selection import examples
from tests.store.transfer.test_load import Told, imported, wanted_of
from tests.store.writing import journaled

pytestmark = pytest.mark.extenddb

Places = dict[str, str]  # paths by ids
LETTERS = "abcdefgh"


class World(NamedTuple):
    """Where nodes are stored, and where a file has them; `new` are the paths of rows with ids that no node has, and
    `bare` those of rows without ids.
    """

    stored: Places
    wanted: Places
    new: Places
    bare: list[str]


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


def with_those_above(paths: Iterable[str]) -> list[str]:
    return sorted({"/".join(path.split("/")[: n + 1]) for path in paths for n in range(path.count("/") + 1)})


def some_tree(chance: Random, ids: list[str], letters: str) -> Places:
    """Nodes at random places, some of them below others, all of them below one root."""
    found: Places = {}
    for node_id in ids:
        parent = chance.choice(["r", "r", *found.values()])
        keys = [key for key in letters if f"{parent}/{key}" not in found.values()]
        found[node_id] = f"{parent}/{chance.choice(keys)}"
    return found


def some_world(chance: Random) -> World:
    letters = "".join(chance.sample(LETTERS, len(LETTERS)))  # so that all orders of keys are tried
    ids = [f"{n}" for n in range(chance.randint(2, 7))]
    stored = some_tree(chance, ids, letters)
    kind = chance.randrange(4)
    wanted = dict(stored)
    if kind == 0:
        wanted = some_tree(chance, ids, letters)
    else:  # circles, of which some are opened to chains with a free end
        circle = chance.sample(ids, chance.randint(2, min(6, len(ids))))
        for one, other in zip(circle, (*circle[1:], circle[0]), strict=True):
            wanted[one] = stored[other]
        if kind == 2:
            wanted[circle[0]] = f"r/{chance.choice('xyz')}"
        if kind == 3 and len(ids) > len(circle):
            wanted[chance.choice(ids)] = f"{chance.choice(list(wanted.values()))}/{chance.choice(letters)}"
    for node_id in chance.sample(ids, chance.choice((0, 0, 1, 1, 2))):
        del wanted[node_id]  # the file lacks it
    taken: set[str] = set()
    for node_id in list(wanted):
        if wanted[node_id] in taken:
            del wanted[node_id]
        else:
            taken.add(wanted[node_id])
    missing = [path for path in with_those_above(wanted.values()) if path not in taken]
    new: Places = {}
    bare = []
    for path in missing:
        if path == "r" or chance.random() < 0.6:
            bare.append(path)
        elif chance.random() < 0.5:
            new[f"n{len(new)}"] = path
    return World(stored, wanted, new, bare)


# -- what is right -----------------------------------------------------------------------------------------------------


def final(world: World, chosen: set[str]) -> Places:
    """Where all nodes are when the chosen rows are followed, and all other nodes stay with their parents."""
    at = {path: node_id for node_id, path in world.stored.items()}

    def place(node_id: str) -> str:
        if node_id in chosen:
            return world.wanted[node_id]
        own = world.stored[node_id]
        above = parent_of(own)
        return f"{place(at[above]) if above in at else above}/{own.rpartition('/')[2]}"

    return {node_id: place(node_id) for node_id in world.stored}


def outcome(world: World, chosen: set[str], *, prune: bool) -> tuple[Places, set[str]] | None:
    """Where all nodes are, and which are removed; None where the chosen rows cannot all be followed."""
    places = final(world, chosen)
    removed: set[str] = set()
    at = {path: node_id for node_id, path in world.stored.items()}

    def is_below(node_id: str, top: str) -> bool:
        """Whether a node stays below another one."""
        while node_id != top:
            above = at.get(parent_of(world.stored[node_id]))
            if node_id in chosen or above is None:
                return False
            node_id = above
        return True

    for node_id in chosen:
        for other in places:
            if other != node_id and places[other] == places[node_id]:
                rows = {*world.wanted.values(), *world.new.values(), *world.bare}
                gone = {one for one in places if is_below(one, other)}
                above = with_those_above([places[node_id]])[:-1]
                if not prune or gone & world.wanted.keys() or rows.isdisjoint(above):
                    return None
                removed |= gone
    left = {node_id: path for node_id, path in places.items() if node_id not in removed}
    if len(set(left.values())) < len(left):
        return None
    there = {path: node_id for node_id, path in left.items()}
    rows_at = {path: node_id for node_id, path in (world.wanted | world.new).items()}
    for node_id in chosen:
        if node_id not in left:
            return None
        for path in with_those_above([left[node_id]])[:-1]:
            row, found = rows_at.get(path), there.get(path)
            if found is None and row is None and path not in world.bare and path != "r":
                return None  # no parent
            if row is not None and found != row and not (found is None and row in world.new):
                return None  # its row is not followed
            if found in world.wanted and found not in chosen and world.wanted[found] != path:
                return None  # nothing below it is known
    return left, removed


def best(world: World, *, prune: bool) -> tuple[Places, set[str]]:
    """Where all nodes are when as many rows as possible are followed, and which are removed."""
    rows = sorted(world.wanted)
    for number in range(len(rows), -1, -1):
        for chosen in combinations(rows, number):
            if (found := outcome(world, {*chosen}, prune=prune)) is not None:
                return found
    raise AssertionError


# -- what is there -----------------------------------------------------------------------------------------------------


async def stored_places(store: Store) -> Places:
    records = [Record.of(item) for item in (await invariants.nodes(store, "category")).values()]
    return {one.id.partition(":")[2]: format_path(one.path) for one in records}


async def redirects(store: Store) -> Places:
    """The ids to which former paths lead."""
    items = [item for item in await invariants.all_items(store) if item["pk"].startswith("alias#")]
    return {item["pk"].removeprefix("alias#") + item["sk"]: item["id"].partition(":")[2] for item in items}


async def entries(store: Store) -> list[Any]:
    logs = [item for item in await invariants.all_items(store) if item["sk"].startswith("!0") and "changes" in item]
    return [entry for item in sorted(logs, key=lambda one: (one["pk"], one["sk"])) for entry in item["changes"]]


def told(world: World) -> list[Told]:
    rows: list[Told] = [(path, "CATEGORY") for path in world.bare]
    return rows + [(path, "CATEGORY", {"id": one}) for one, path in (world.wanted | world.new).items()]


def moving(world: World) -> set[Key]:
    """The places of nodes that have another parent or key, or are below one that has, as a tree by parents says."""
    at = {path: node_id for node_id, path in (world.wanted | world.new).items()}
    above = {one: at.get(parent_of(path)) for one, path in world.wanted.items()}
    parents = {one: "r" if parent_of(world.wanted[one]) == "r" else world.stored.get(str(above[one])) for one in above}
    left = {
        world.stored[one]
        for one, path in world.wanted.items()
        if world.stored[one] != (f"{parents[one]}/{path.rpartition('/')[2]}")
    }
    found = [one for one in world.wanted if not left.isdisjoint(with_those_above([world.stored[one]]))]
    return {node_key("category", parse_path(world.wanted[one])) for one in found}


async def planted(store: Store, chance: Random) -> World:
    """A world that is stored, with some former paths."""
    world = some_world(chance)
    rows: list[Told] = [("r", "CATEGORY", {"id": "r"})]
    await imported(store, [*rows, *[(p, "CATEGORY", {"id": one}) for one, p in world.stored.items()]], CATEGORY)
    writer = Writer(store)
    for node_id in chance.sample(sorted(world.stored), chance.randint(0, 2)):  # away and back: both paths lead on
        path = parse_path((await stored_places(store))[node_id])
        other = chance.choice([*world.wanted.values(), f"{parent_of(format_path(path))}/{chance.choice(LETTERS)}"])
        if other in (await stored_places(store)).values() or other.startswith(format_path(path)):
            continue
        if parent_of(other) in {"r", *(await stored_places(store)).values()}:
            await writer.write(Move(CATEGORY, path, parse_path(other)), ReadUsage())
    stored = await stored_places(store)
    del stored["r"]
    return world._replace(stored=stored)


def sources(world: World, node_id: str) -> Iterator[str]:
    """Where a node may be before it moves: at its place, or where it came along with one above it."""
    own = world.stored[node_id]
    yield own
    for other, path in world.stored.items():
        if own.startswith(f"{path}/") and other in world.wanted:
            yield world.wanted[other] + own.removeprefix(path)


@pytest.mark.parametrize("seed", range(examples(5, 400)))
async def test_all_rows_that_can_be_followed_are_and_nothing_in_between_is_seen_later(store: Store, seed: int) -> None:
    chance = Random(seed)  # noqa: S311
    world, prune = await planted(store, chance), chance.random() < 0.5
    led, logged = await redirects(store), len(await entries(store))
    if chance.random() < 0.3:
        store.max_commit_changes = journaled.SMALL
    expected, removed = best(world, prune=prune)
    places = moving(world) if chance.random() < 0.5 else None
    plan, result = wanted_of(told(world), CATEGORY), LoadResult()
    await ImportMoves(store, Writer(store, journaled.SOON), plan, result, places, prune=prune).run()
    await invariants.check(store)
    found = await stored_places(store)
    assert {one: path for one, path in found.items() if one in world.stored} == expected
    assert result.removed.total() == len(removed)
    refused = {one for one in world.wanted if world.wanted[one] != found.get(one)}
    assert refused == {one for one in world.wanted if world.wanted[one] != expected.get(one)}
    assert refused <= plan.unmoved.keys()
    at = {key.pk + key.sk: one for one, p in world.stored.items() for key in [node_key("category", parse_path(p))]}
    now = await redirects(store)
    for key in led.keys() | now.keys():
        owner = at.get(key)
        has_left = owner is not None and expected.get(owner) != world.stored[owner] and owner not in removed
        allowed = {owner} if has_left else {owner, led.get(key)}
        assert now.get(key) in allowed, key
    for key, owner in at.items():
        assert owner in removed or expected[owner] == world.stored[owner] or now[key] == owner
    for event, _, node_id, *more in (await entries(store))[logged:]:
        assert ASIDE not in str(more)
        if event == "MOVED":
            one = node_id.partition(":")[2]
            _, _, source, target, *_ = more
            assert target == world.wanted[one]
            assert source in sources(world, one)
    await load(store, plan, result, prune=prune)
    await invariants.check(store)
    if not result.rejections:
        again, second = wanted_of(told(world), CATEGORY), LoadResult()
        await ImportMoves(store, Writer(store, journaled.SOON), again, second, prune=prune).run()
        await load(store, again, second, prune=prune)
        assert second.written == 0
        assert {one: path for one, path in (await stored_places(store)).items() if one in world.wanted} == world.wanted
