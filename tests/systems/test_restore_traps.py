"""Traps of restores, each by itself: nodes that came back alone, places that others have, ticks and indexes behind."""

from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from store.engine import ReadUsage, Store
from store.errors import CladeError, IndexBehind
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import Put, Record
from store.transfer.load import LoadResult, load
from store.writing.edit import Named
from store.writing.edit_request import EditOptions, EditResult
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position, Side
from store.writing.restore import LAG_SECONDS, Restore
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.rights.asking import Server, caller
from tests.selection import thorough
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import SOON
from tests.stores import Interrupted, once
from tests.systems.restore_model import CODED, Late
from tests.systems.test_large_restores import bare, id_of, restore
from tests.systems.test_restores import by_key
from tests.systems.writing import Clients


async def plant(store: Store, *paths: str) -> None:
    await load(store, wanted_of([(path, "CATEGORY") for path in paths], CATEGORY), LoadResult())


async def write(store: Any, edit: Any, **options: Any) -> EditResult:
    writer = Writer(store, SOON)
    try:
        return await writer.write(edit, ReadUsage(), EditOptions(**options))
    finally:
        await writer.move_worker.finished()


async def code(store: Any, edit: Any) -> tuple[str, tuple[str, ...]]:
    """The code and the field of the refusal of an edit, which has left all items as they were."""
    before = by_key(await invariants.all_items(store))
    with pytest.raises(CladeError) as caught:
        await write(store, edit)
    assert by_key(await invariants.all_items(store)) == before
    error: Any = caught.value
    return error.code, getattr(error, "field", ())


def delete(path: str) -> Delete:
    return journaled.cascade(path)


async def record(store: Store, path: str) -> Record:
    return Record.of(await journaled.there(store, node_key("category", parse_path(path))))


async def whole(store: Store, *paths: str) -> None:
    """Fail unless these are all nodes, and nothing in the table is wrong."""
    assert await journaled.paths(store) == {*paths}
    await invariants.check(store)
    assert await journaled.findings(store) == []


async def test_what_hangs_on_a_node_that_came_back_elsewhere_stays_deleted(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b", "r/a/b/c", "o")
    await write(store, delete("r/a"))
    await write(store, journaled.create("o/b", node_id=bare("r/a/b")))
    await write(store, restore("r/a"))
    await whole(store, "r", "r/a", "o", "o/b")
    await write(store, restore("r/a/b/c"))
    await whole(store, "r", "r/a", "o", "o/b", "o/b/c")


async def test_a_deletion_inside_a_later_one_comes_back_by_itself(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b", "r/a/b/c", "r/a/d")
    await write(store, delete("r/a/b"))
    await write(store, delete("r/a"))
    assert await code(store, restore("r/a/b")) == ("NOT_FOUND", ("to",))
    await write(store, restore("r/a"))
    await whole(store, "r", "r/a", "r/a/d")
    await write(store, restore("r/a/b"))
    await whole(store, "r", "r/a", "r/a/d", "r/a/b", "r/a/b/c")


async def test_two_deletions_at_one_path_come_back_each_with_its_own_nodes(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b", "r/a/c")
    await write(store, delete("r/a"))
    new = (await write(store, journaled.create("r/a"))).record.id
    await write(store, journaled.create("r/a/b"))
    await write(store, delete("r/a"))
    await write(store, restore("r/a"))
    await whole(store, "r", "r/a", "r/a/b", "r/a/c")
    assert (await record(store, "r/a")).id == id_of("r/a")
    other = Restore(CATEGORY, (), new, names=[Named("id", id=new)])
    assert await code(store, other) == ("ALREADY_EXISTS", ("key",))
    await write(store, Restore(CATEGORY, ("z",), new, names=[Named("id", id=new)]))
    await whole(store, "r", "r/a", "r/a/b", "r/a/c", "r/z", "r/z/b")


async def test_a_node_comes_back_below_its_parent_that_was_renamed(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b", "r/a/b/c")
    await write(store, delete("r/a/b"))
    await write(store, journaled.move("r/a", "r/z"))
    await write(store, restore("r/a/b"))
    await whole(store, "r", "r/z", "r/z/b", "r/z/b/c")


async def test_depths_and_levels_above_are_those_of_the_new_place(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b", "o", "o/p", "o/p/q")
    await write(store, delete("r/a"))
    await write(store, restore("r/a", "o/p/q"))
    await whole(store, "r", "o", "o/p", "o/p/q", "o/p/q/a", "o/p/q/a/b")
    assert (await record(store, "o/p/q/a/b")).above == ["CATEGORY"] * 4
    await write(store, delete("o/p"))
    root = Restore(CATEGORY, (), id_of("r/a"), to_root=True, names=[Named("id", id=id_of("r/a"))])
    await write(store, root)
    await whole(store, "r", "o", "a", "a/b")
    assert (await record(store, "a/b")).above == ["CATEGORY"]


DELETED = """query($id: ID!) {
  deletedNode(id: $id) { path descendantCount } node(id: $id) { ... on CategoryNode { path } }
}"""


async def test_a_node_that_comes_back_is_deleted_until_then_and_no_more(store: Store) -> None:
    await journaled.plant(store)
    await write(store, delete("r/a"))
    clients, told = Clients(store), list[Any]()

    async def ask() -> Any:
        found = await clients.ask(DELETED, id=id_of("r/a"))
        return [found["deletedNode"] and found["deletedNode"]["path"], found["node"] and found["node"]["path"]]

    async def look(_: int) -> None:
        told.append(await ask())

    assert await ask() == ["r/a", None]
    assert (await clients.ask(DELETED, id=id_of("r/a")))["deletedNode"]["descendantCount"] == 14
    await write(Interrupted(store, "commit", after=look), restore("r/a"))
    assert await ask() == [None, "r/a"]
    ways = [one for place, one in enumerate(told) if one not in told[:place]]
    assert ways == [["r/a", None], [None, None], [None, "r/a"]]


async def test_a_node_that_came_back_and_is_deleted_again_within_one_tick_has_no_revision_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of the target's tree does not change meanwhile, and the time of both deletions is the same."""
    await plant(store, "r", "r/a", "r/a/b", "o")
    now = store.now()
    monkeypatch.setattr(store, "now", lambda: now)
    await write(store, delete("r/a"))

    async def again() -> None:
        await write(store, restore("r/a"))
        await write(store, delete("r/a"))

    await write(Interrupted(store, "commit", before=once(1, again)), restore("r/a", "o"))
    await whole(store, "r", "o", "o/a", "o/a/b")
    assert [(await record(store, path)).revision for path in ("o/a", "o/a/b")] == [3, 3]


async def test_a_rank_by_hand_that_a_sibling_has_by_now_makes_a_node_the_next_one(store: Store) -> None:
    await plant(store, "r", "r/a", "r/b", "r/c", "r/d")
    await write(store, Move(CATEGORY, ("r", "a"), ("r", "a"), position=Position(Side.AFTER, ("r", "c"))))
    rank = (await record(store, "r/a")).rank
    await write(store, delete("r/a"))
    await write(store, restore("r/a"))
    assert (await record(store, "r/a")).rank == rank
    await write(store, delete("r/a"))
    await store.commit([Put({**await journaled.there(store, node_key("category", ("r", "b"))), "rank": rank})])
    await write(store, restore("r/a"))
    assert await order(store, "r") == ["c", "b", "a", "d"]
    await write(store, delete("r/a"))
    await write(store, restore("r/a", key="e"))
    assert (await record(store, "r/e")).rank == "CATEGORY#e#"
    await whole(store, "r", "r/b", "r/c", "r/d", "r/e")


async def order(store: Store, parent: str) -> list[str]:
    """The keys of children in the order of their ranks."""
    found = [Record.of(item) for item in (await invariants.nodes(store, "category")).values()]
    children = [one for one in found if one.path[:-1] == parse_path(parent)]
    return [one.path[-1] for one in sorted(children, key=lambda one: one.rank)]


@pytest.mark.parametrize(("most", "is_job"), [(4, False), (3, True)])
async def test_sqlite_restores_as_many_nodes_in_one_transaction_as_it_moves(
    monkeypatch: pytest.MonkeyPatch, store: Store, most: int, is_job: bool
) -> None:
    monkeypatch.setattr("store.writing.restore.MAX_NODES", most)
    monkeypatch.setattr(store, "max_commit_changes", None)
    await plant(store, "r", "r/a", "r/a/b", "r/a/c", "r/a/c/d")
    await write(store, delete("r/a"))
    assert ((await write(store, restore("r/a"))).move is not None) == is_job
    await whole(store, "r", "r/a", "r/a/b", "r/a/c", "r/a/c/d")


async def test_a_restore_after_its_deletion_in_one_group_finds_all_nodes(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b", "r/a/b/c")
    edits = [(one, EditOptions()) for one in (delete("r/a"), restore("r/a"), delete("r/a/b"), restore("r/a/b"))]
    results = await Writer(store).write_in_order(edits, ReadUsage())
    assert all(isinstance(one, EditResult) for one in results), results
    await whole(store, "r", "r/a", "r/a/b", "r/a/b/c")


async def test_the_same_request_again_has_the_result_of_the_first_one(store: Store) -> None:
    await plant(store, "r", "r/a", "r/a/b")
    await write(store, delete("r/a"))
    results = [await write(store, restore("r/a"), key="once", asked="restore") for _ in range(2)]
    assert [(one.record.path, one.is_repeated) for one in results] == [(("r", "a"), False), (("r", "a"), True)]
    await whole(store, "r", "r/a", "r/a/b")


# -- indexes behind ----------------------------------------------------------------------------------------------------


BELOW = ["r/a/n0", "r/a/n0/x", "r/a/n0/y", "r/a/n0/y/z", "r/a/n8", "r/a/n8/x/y"]


@pytest.mark.parametrize("most", [None, journaled.SMALL])
async def test_a_node_that_the_index_lacks_keeps_all_from_coming_back_until_it_has_it(
    store: Store, most: int | None
) -> None:
    await journaled.plant(store)
    before = {item["id"] for item in (await invariants.nodes(store, "category")).values()}
    await write(store, delete("r/a"))
    store.max_commit_changes = most
    for path in BELOW if thorough() else BELOW[::2]:
        items = by_key(await invariants.all_items(store))
        late: Any = Late(store, id_of(path))
        with pytest.raises(IndexBehind):
            await write(late, restore("r/a"))
        assert late.times < 99
        after = by_key(await invariants.all_items(store))
        ours = ("id#", "category", "words", "alias")
        assert {key: item for key, item in after.items() if key[0].startswith(ours) and "!" not in key[1]} == {
            key: item for key, item in items.items() if key[0].startswith(ours) and "!" not in key[1]
        }
        await invariants.check(store)
    undone: Any = Late(store, None)
    await write(undone, restore("r/a"))
    assert {item["id"] for item in (await invariants.nodes(store, "category")).values()} == before
    await invariants.check(store)
    assert await journaled.findings(store) == []


async def test_a_client_is_told_that_an_index_is_behind(store: Store) -> None:
    await journaled.plant(store)
    store.max_commit_changes = None
    await write(store, delete("r/a"))
    late: Any = Late(store, id_of("r/a/n0/y"))
    server = Server(late, CategoryNode)
    mutation = f'mutation {{ restoreCategoryNode(input: {{id: "{id_of("r/a")}"}}) {{ node {{ path }} }} }}'
    (error,) = (await server.write(caller("write:category"), mutation))["errors"]
    assert error["extensions"]["code"] == "UNAVAILABLE"
    assert error["message"].startswith("The index of the table is behind, so not all nodes below ")


async def test_an_index_that_catches_up_in_time_is_waited_for(store: Store) -> None:
    await journaled.plant(store)
    store.max_commit_changes = None
    await write(store, delete("r/a"))
    late: Any = Late(store, id_of("r/a/n0/y"), times=1)
    await write(late, restore("r/a"), settle_seconds=0.001)
    assert late.times == 0
    assert await journaled.paths(store) == {*journaled.OTHERS, *journaled.SUBTREE}


@pytest.mark.parametrize("most", [None, journaled.SMALL])
async def test_no_index_lacks_a_node_of_a_deletion_that_is_older_than_an_hour(store: Store, most: int | None) -> None:
    await journaled.plant(store)
    await write(store, delete("r/a"))
    store.max_commit_changes = most
    late: Any = Late(store, id_of("r/a/n0/y"), ahead=LAG_SECONDS + 60)
    await write(late, restore("r/a"))
    left = {*journaled.OTHERS, *journaled.SUBTREE} - {"r/a/n0/y", "r/a/n0/y/z"}
    assert await journaled.paths(store) == left
    await invariants.check(store)
    await write(store, restore("r/a/n0/y"))
    assert await journaled.paths(store) == {*journaled.OTHERS, *journaled.SUBTREE}


@pytest.mark.parametrize("how", ["an id", "a restore", "a large restore"])
@pytest.mark.parametrize("most", [None, journaled.SMALL])
async def test_a_child_that_came_back_alone_is_no_alarm(store: Store, how: str, most: int | None) -> None:
    await journaled.plant(store)
    await write(store, delete("r"))
    late: Any = Late(store, None)
    path, small = ("r/a", journaled.SMALL) if how == "a large restore" else ("r/a/n0", None)
    store.max_commit_changes = small
    await write(store, journaled.create("o/n", node_id=bare(path)) if how == "an id" else restore(path, "o", "n"))
    store.max_commit_changes = most
    result = await write(late, restore("r"))
    assert (result.move is None) == (most is None)
    await invariants.check(store)
    assert await journaled.findings(store) == []


async def test_a_child_that_comes_back_alone_meanwhile_is_no_alarm(store: Store) -> None:
    await journaled.plant(store)
    store.max_commit_changes = None
    await write(store, delete("r/a"))

    async def create() -> None:
        await write(store, journaled.create("o/n", node_id=bare("r/a/n0")))

    meanwhile: Any = Interrupted(Late(store, None), "range", before=once(1, create))
    await write(meanwhile, restore("r/a"))
    left = {path for path in journaled.SUBTREE if path.startswith("r/a/n0")}
    assert await journaled.paths(store) == {*journaled.OTHERS, *journaled.SUBTREE, "o/n"} - left
    assert await journaled.findings(store) == []
    await invariants.check(store)


async def test_a_restore_at_the_limit_of_a_transaction_is_made_either_way(store: Store) -> None:
    """With a former path of each node, a parent that is still deleted, and search items and unique values."""
    jobs = list[bool]()
    for number in range(1, 9):
        rows = [("r", {}), ("r/a", {}), *[(f"r/a/{n}", {"code": f"{number} {n}"}) for n in range(number)], ("o", {})]
        store.max_commit_changes = None
        await load(store, wanted_of([(path, "CATEGORY", more) for path, more in rows], CODED), LoadResult())
        top = (await record(store, "r/a")).id
        await write(store, Delete(CODED, ("r",), Policy.CASCADE))
        store.max_commit_changes = 40
        names = [Named("id", id=top), Named("to", path=("o",))]
        jobs.append((await write(store, Restore(CODED, (f"k{number}",), top, names=names))).move is not None)
        await invariants.check(store, {"category": CODED})
    assert jobs == sorted(jobs)
    assert {*jobs} == {False, True}
