"""Unique values in imports: which rows land, in which order, and which are rejected."""

import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from store.engine import ReadUsage, Store
from store.errors import NotIndexed
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.paths import parse_path
from store.model.records import Delete as DeleteItem
from store.model.records import Record
from store.transfer.by_id import find_nodes
from store.transfer.load import LoadResult, load, load_version, prepare
from store.transfer.moves import scratch_copy
from store.transfer.rows import ImportPlan, Part, Row
from store.transfer.unique import check_plan, components
from tests import invariants
from tests.selection import examples
from tests.store.kinds.test_unique import SHOP, SKU, edit, move, update, values
from tests.stores import Interrupted, ReadRecorder, once

pytestmark = pytest.mark.both_stores

Told = tuple[str, dict[str, Any]]

BARE = {"sku": replace(SKU, unique=False)}
NOT_UNIQUE = replace(SHOP, levels={name: replace(one, attributes=BARE) for name, one in SHOP.levels.items()})


def plan_of(told: Iterable[Told], hierarchy: Hierarchy = SHOP) -> ImportPlan:
    """A plan of paths with their values; roots are groups, below them are products and variants."""
    plan = ImportPlan(hierarchy)
    for number, (path, given) in enumerate(told, start=1):
        said, keys = dict(given), parse_path(path)
        level = ("GROUP", "PRODUCT", "VARIANT")[len(keys) - 1]
        version, node_id = said.pop("version", None), said.pop("id", path.replace("/", "-"))
        row = Row(number, keys, [Part(level, None, node_id, said)], version=version)
        plan.take(row._replace(is_deleted=True, parts=[]) if said.pop("gone", False) else row)
    return plan


async def imported(store: Store, *told: Told, prune: bool = False) -> LoadResult:
    """The outcome of an import, of which a dry run says the same before."""
    before = await invariants.all_items(store)
    tried, outcome = LoadResult(), LoadResult()
    if not any(said.get("gone") for _, said in told):
        await load(store, plan_of(told), tried, prune=prune, dry_run=True)
        assert await invariants.all_items(store) == before
    await load(store, plan_of(told), outcome, prune=prune)
    await invariants.check(store, {"shop": SHOP})
    if not any(said.get("gone") for _, said in told):
        for name in ("added", "changed", "removed", "unchanged", "parents"):
            assert getattr(tried, name) == getattr(outcome, name), name
        assert [one.number for one in tried.rejections] == [one.number for one in outcome.rejections]
    return outcome


def reasons(outcome: LoadResult) -> dict[int, str]:
    return {one.number: one.reason for one in outcome.rejections}


def products(values: dict[str, str | None]) -> list[Told]:
    """The rows of products with their values, and of their groups before them."""
    groups = dict.fromkeys(path.split("/")[0] for path in values)
    return [(group, {}) for group in groups] + [(path, {"sku": value}) for path, value in values.items()]


async def test_a_taken_value_rejects_its_row_and_those_below_and_nothing_else(store: Store) -> None:
    await imported(store, *products({"a/p": "A", "b/q": "B"}))
    outcome = await imported(
        store, ("a", {}), ("a/n", {"sku": "B"}), ("a/n/v", {"sku": "N"}), ("a/p", {"sku": "C"}), ("a/o", {"sku": "O"}),
        ("b/q", {}), ("b", {}), ("b/r", {"sku": "R"}), ("b/r/v", {"sku": "V"}),
    )  # fmt: skip
    way = "import a file first that gives that node another sku or none."
    same = "If both are one, --by sku changes it, and --moves with its id b-q moves it."
    assert reasons(outcome) == {
        2: f"sku B is that of b/q, not of a/n; {way} {same}",
        3: "The parent of a/n/v is missing, since row 2 was rejected.",
    }
    assert (outcome.added.total(), outcome.changed.total(), outcome.unchanged) == (3, 1, 3)
    assert (await values(store))["sku#B"] == "b-q"
    outcome = await imported(store, ("a", {}), ("a/p", {"sku": "B"}), ("a/o", {"sku": "A"}))
    assert reasons(outcome) == {2: f"sku B is that of b/q, not of a/p; {way}"}
    assert (await values(store))["sku#C"] == "a-p"


async def test_a_rejection_names_no_option_that_the_class_does_not_take(store: Store) -> None:
    await imported(store, *products({"a/p": "A"}))
    outcome = LoadResult()
    await load(store, plan_of([("a", {}), ("a/n", {"sku": "A"})], NOT_UNIQUE), outcome)
    assert reasons(outcome) == {
        2: "sku A is that of a/p, not of a/n; import a file first that gives that node another sku or none. "
        "If both are one, --moves with its id a-p moves it."
    }


async def test_the_second_row_with_a_value_is_rejected_before_anything_is_read(store: Store) -> None:
    told: list[Told] = [("a", {}), ("a/p", {"sku": "caf\u00e9"}), ("a/q", {"sku": "cafe\u0301", "number": 1})]
    told += [("a/p", {"sku": "caf\u00e9"}), ("a/p/v", {"sku": "caf\u00e9"})]
    plan = plan_of([*told, ("a/r", {"number": 1}), ("a/s", {"number": "01"})])
    assert [(one.number, one.reason) for one in plan.rejections] == [
        (3, "The sku café is that of another node already, in row 2."),
        (5, "The sku café is that of another node already, in row 2."),
        (7, "The number 1 is that of another node already, in row 6."),
    ]


@pytest.mark.parametrize("taker", ["a", "c"])
async def test_a_value_of_a_node_that_is_pruned_in_another_tree_is_free_in_a_dry_run_too(
    store: Store, taker: str
) -> None:
    await imported(store, *products({"b/p": "A", f"{taker}/q": "B"}))
    outcome = await imported(store, ("b", {}), *products({f"{taker}/q": "A"}), prune=True)
    assert (reasons(outcome), outcome.changed.total(), outcome.removed.total()) == ({}, 1, 1)


@pytest.mark.parametrize("size", [2, 25, 110])
async def test_a_circle_is_one_transaction_or_rejected_where_it_does_not_fit(store: Store, size: int) -> None:
    paths = [f"a/p{number:03d}" for number in range(size)]
    await imported(store, *products({path: path for path in paths}))
    rotated = products(dict(zip(paths, [*paths[1:], paths[0]], strict=True)))
    outcome = await imported(store, *rotated)
    if size == 110 and store.max_changes <= 100:
        assert outcome.written == 0
        assert len(outcome.rejections) == 110
        reason = "a circle, which is more than one transaction holds; import the file with an empty sku in one of them"
        assert all(reason in one.reason for one in outcome.rejections)
        await imported(store, *rotated[:-1], (paths[-1], {"sku": None}))
        outcome = await imported(store, *rotated)
        assert (outcome.written, outcome.rejections) == (1, [])
    else:
        assert (outcome.changed.total(), outcome.rejections) == (size, [])
    assert await values(store) == {f"sku#{said['sku']}": path.replace("/", "-") for path, said in rotated[1:]}
    assert (await imported(store, *rotated)).written == 0


async def test_a_chain_over_trees_lands_in_the_worst_order(store: Store) -> None:
    trees = ["a", "b", "c", "d", "e"]
    await imported(store, *products({f"{tree}/p": tree for tree in trees}))
    for order in (trees, trees[::-1]):
        now = {path.rpartition("-")[0]: value.partition("#")[2] for value, path in (await values(store)).items()}
        chain = {f"{one}/p": now[other] for one, other in pairwise(order)}
        outcome = await imported(store, *products({**chain, f"{order[-1]}/p": f"free{order[0]}"}))
        assert (outcome.changed.total(), outcome.unchanged, outcome.rejections) == (5, 5, [])


async def test_a_circle_over_trees_is_rejected_with_its_rows_and_those_who_wait_for_it(store: Store) -> None:
    await imported(store, *products({"a/p": "A", "b/p": "B", "c/p": "C", "a/o": "O"}))
    rows = products({"a/p": "B", "b/p": "A", "c/p": "B2", "a/o": "C"})
    outcome = await imported(store, *rows, ("c/n", {"sku": "O"}))
    assert {number: reason.partition(";")[0] for number, reason in reasons(outcome).items()} == {
        4: "sku B is that of b/p, not of a/p", 5: "sku A is that of a/p, not of b/p",
    }  # fmt: skip
    assert (outcome.changed.total(), outcome.added.total()) == (2, 1)
    assert (await imported(store, *rows, ("c/n", {"sku": "O"}))).written == 0


async def test_values_are_looked_up_in_two_reads_and_two_more_for_nodes_that_moved(store: Store) -> None:
    await imported(store, *products({f"a/p{number}": f"A{number}" for number in range(20)}))
    for moved in (False, True):
        if moved:
            await edit(store, move("a/p3", "a/q3"), update("a/p4", sku="X"))
        recorder, before = ReadRecorder(store), store.calls.made if store.calls else 0
        values = [f"A{number}" for number in range(25)]
        found = await find_nodes(recorder, SHOP, SKU, values, ReadUsage())
        assert {value: record.path[1] for value, record in found.items()} == {
            f"A{number}": f"{'q' if moved and number == 3 else 'p'}{number}"
            for number in range(20)
            if not (moved and number == 4)
        }
        if store.calls:  # the marker, the items, the nodes, and of moved nodes the id records and these
            assert store.calls.made - before == (5 if moved else 3)


async def test_what_is_removed_gives_its_values_up(store: Store) -> None:
    await imported(store, *products({"a/p": "A", "a/q": "B", "b/r": "C"}))
    outcome = await imported(store, *products({"a/p": "B", "a/n": "A", "b/n": "C"}), prune=True)
    assert (outcome.removed.total(), outcome.added.total(), outcome.changed.total()) == (2, 2, 1)
    assert outcome.rejections == []
    assert await values(store) == {"sku#B": "a-p", "sku#A": "a-n", "sku#C": "b-n"}


async def test_rows_of_deleted_nodes_give_their_values_up(store: Store) -> None:
    await imported(store, *products({"a/p": "A", "b/q": "B"}))
    rows: list[Told] = [("b", {}), ("a/p", {"gone": True}), ("b/n", {"sku": "A"}), ("b/n/v", {"sku": "V"})]
    tried, plan = LoadResult(), plan_of(rows)
    async with scratch_copy(store, plan) as copy:
        await load(copy, plan, tried, dry_run=True)
    for outcome in (tried, await imported(store, *rows)):
        assert (outcome.removed.total(), outcome.added.total(), outcome.rejections) == (1, 2, [])
    assert await values(store) == {"sku#A": "b-n", "sku#B": "b-q", "sku#V": "b-n-v"}


async def test_parents_without_a_row_are_created_once_their_child_is(store: Store) -> None:
    await imported(store, *products({"a/p": "A"}))
    for dry_run in (True, False):
        outcome, plan = LoadResult(), plan_of([("z/x/v", {"sku": "A"}), ("a/p", {"sku": "B"})])
        plan.create_parents = True
        await load(store, plan, outcome, dry_run=dry_run)
        assert (outcome.rejections, outcome.added.total(), outcome.parents.total()) == ([], 3, 2), dry_run
    await invariants.check(store, {"shop": SHOP})


@pytest.mark.parametrize("first", ["A", "N"])
async def test_a_value_that_is_taken_meanwhile_rejects_its_row(store: Store, first: str) -> None:
    await imported(store, *products({"a/p": "P", "b/q": "Q"}))
    outcome = LoadResult()

    async def take() -> None:
        await edit(store, update("b/q", sku=first))

    overtaken: Any = Interrupted(store, "commit", before=once(1, take))
    await load(overtaken, plan_of([("a", {}), ("a/p", {"sku": "A"}), ("a/n", {"sku": "N"})]), outcome)
    await invariants.check(store, {"shop": SHOP})
    assert {number: one.partition(";")[0] for number, one in reasons(outcome).items()} == {
        2 if first == "A" else 3: f"sku {first} is that of b/q, not of a/{'p' if first == 'A' else 'n'}"
    }
    assert outcome.written == 1


async def test_a_row_that_waits_and_is_as_the_table_has_it_meanwhile_is_done(store: Store) -> None:
    await imported(store, *products({"a/p": "A", "b/q": "B", "c/r": "C"}))
    outcome = LoadResult()

    async def pass_on() -> None:
        await edit(store, update("c/r", sku="D"))
        await edit(store, update("a/p", sku="C"))

    overtaken: Any = Interrupted(store, "commit", before=once(1, pass_on))
    await load(overtaken, plan_of([("a", {}), ("a/p", {"sku": "C"}), ("b/q", {"sku": "Q"})]), outcome)
    assert (outcome.rejections, outcome.changed.total()) == ([], 1)


async def test_a_former_version_with_a_taken_value_is_rejected_alone(store: Store) -> None:
    await imported(store, *products({"a/p": "A"}))
    versions = [("a/q", {"sku": sku, "version": number, "id": None}) for number, sku in enumerate("AB", start=1)]
    plan = plan_of([("a", {"id": None}), *versions, ("a/q", {"sku": "C", "id": None})])
    outcome = LoadResult()
    prepare(plan, prune=False)
    for _, version in sorted(plan.versions.items()):
        await load_version(store, version, outcome)
    await load(store, plan, outcome)
    await invariants.check(store, {"shop": SHOP})
    assert reasons(outcome) == {2: "The version of a/q is not imported, since sku A is that of a/p."}
    assert (await values(store)).keys() == {"sku#A", "sku#C"}
    assert outcome.written == 2


async def test_nothing_is_written_before_a_repair_has_made_the_items(store: Store) -> None:
    await imported(store, *products({"a/p": "A"}))
    (marker,) = [one for one in await invariants.all_items(store) if one["pk"] == "kinds/shop"]
    await store.commit([DeleteItem(Key(marker["pk"], marker["sk"]))])
    before = await invariants.all_items(store)
    await check_plan(store, plan_of(products({"a/p": "A"})))
    for rows in (products({"0/p": None, "a/p": "B"}), products({"0/p": "N"})):
        with pytest.raises(NotIndexed, match="takes clade repair"):
            await check_plan(store, plan_of(rows))
    with pytest.raises(NotIndexed):
        await load(store, plan_of(products({"a/p": "B"})), LoadResult())
    with pytest.raises(NotIndexed):
        await find_nodes(store, SHOP, SKU, ["A"], ReadUsage())
    assert await invariants.all_items(store) == before


class _Model:
    """The rows of a file by a model: what each node has, and which rows land if they come one after another as long as
    any can, and circles within a tree together.
    """

    def __init__(self, held: dict[str, str | None]) -> None:
        self.held = held

    def run(self, wanted: dict[str, str | None]) -> set[str]:
        """The paths whose rows land; the others are those that wait for one another over trees."""
        left = {path for path, value in wanted.items() if self.held.get(path) != value}
        landed: set[str] = set()
        while True:
            holder = {value: path for path, value in self.held.items() if value is not None}
            free = {path for path in left if holder.get(wanted[path]) is None}
            if not free:
                circles = [self._circle(path, wanted, holder, left) for path in left]
                free = {path for circle in circles for path in circle}
            if not free:
                return landed
            self.held |= {path: wanted[path] for path in free}
            landed |= free
            left -= free

    @staticmethod
    def _circle(start: str, wanted: dict[str, str | None], holder: dict[str | None, str], left: set[str]) -> list[str]:
        path, found = start, [start]
        while (path := holder[wanted[path]]) in left and path not in found and path[0] == start[0] and path in wanted:
            found.append(path)
        return found if path == start else []


@pytest.mark.both_stores(False)
@pytest.mark.parametrize("seed", range(examples(3, 12)))
async def test_random_permutations_over_trees_lose_and_double_no_value(store: Store, seed: int) -> None:
    made = random.Random(seed)  # noqa: S311
    paths = [f"{tree}/p{number}" for tree in "abc" for number in range(made.randint(1, 5))]
    held: dict[str, str | None] = {path: path for path in paths}
    await imported(store, *products(held))
    for _ in range(3):
        changed = made.sample(paths, made.randint(1, len(paths)))
        pool = [*[one for one in held.values() if one is not None], *made.sample(["x", "y", "z"], 2)]
        chosen = made.sample([*dict.fromkeys(pool)], min(len(changed), len(dict.fromkeys(pool))))
        wanted: dict[str, str | None] = dict(zip(changed, chosen, strict=False))
        model = _Model(dict(held))
        landed = model.run(wanted)
        rows = products(wanted)
        outcome = await imported(store, *rows)
        held = model.held
        assert {rows[one.number - 1][0] for one in outcome.rejections} == {
            path for path in wanted if held[path] != wanted[path]
        }
        assert outcome.changed.total() == len(landed)
        assert await values(store) == {
            f"sku#{value}": path.replace("/", "-") for path, value in held.items() if value is not None
        }
        again = await imported(store, *rows)
        assert (again.written, again.rejections) == (0, outcome.rejections)


@pytest.mark.parametrize(
    "stop", [pytest.param(one, marks=pytest.mark.both_stores(one == 4)) for one in range(1, 8, examples(3, 1))]
)
async def test_an_import_that_is_killed_leaves_no_value_lost_or_twice(store: Store, stop: int) -> None:
    rows = products({f"{tree}/p{number:02d}": f"{tree}{number}" for tree in "ab" for number in range(40)})
    await imported(store, *rows)
    others = {path: said["sku"] for path, said in rows[2:]}
    paths = [*others]
    rotated = products({one: others[other] for one, other in pairwise(paths)} | {paths[-1]: "new"})

    async def die() -> None:
        raise ConnectionResetError

    killed: Any = Interrupted(store, "commit", before=once(stop, die))
    with suppress(ConnectionResetError):
        await load(killed, plan_of(rotated), LoadResult())
    await invariants.check(store, {"shop": SHOP})
    outcome = await imported(store, *rotated)
    assert outcome.rejections == []
    assert await values(store) == {f"sku#{said['sku']}": path.replace("/", "-") for path, said in rotated[2:]}


def test_components_come_after_those_that_they_need() -> None:
    for seed in range(300):
        made = random.Random(seed)  # noqa: S311
        names = [str(number) for number in range(made.randint(1, 12))]
        after = {name: set(made.sample(names, made.randint(0, min(2, len(names))))) for name in names}
        found = [*components(after)]
        assert sorted(name for group in found for name in group) == sorted(names)
        reached = {name: _reached(after, name) for name in names}
        for place, group in enumerate(found):
            seen = {name for one in found[: place + 1] for name in one}
            for name in group:
                assert after[name] <= seen
                assert {other for other in reached[name] if name in reached[other]} | {name} == set(group)
    deep = {str(number): [str(number + 1)] for number in range(5_000)}
    assert next(group[0] for group in components(deep)) == "5000"


def _reached(after: dict[str, set[str]], start: str) -> set[str]:
    found, stack = set[str](), [start]
    while stack:
        for other in after[stack.pop()] - found:
            found.add(other)
            stack.append(other)
    return found


@pytest.mark.both_stores(False)
@pytest.mark.parametrize("seed", range(examples(2, 10)))
async def test_random_files_land_or_are_rejected_and_again_change_nothing(store: Store, seed: int) -> None:
    made = random.Random(seed)  # noqa: S311
    groups, pool = ["a", "b", "c"], [*"ABCDEFGH"]
    await imported(store, *[(group, {}) for group in groups])
    for _ in range(5):
        places = made.sample([f"{group}/p{number}" for group in groups for number in range(4)], made.randint(1, 9))
        rows: list[Told] = [(group, {}) for group in groups]
        skus, numbers = made.sample(pool, len(pool)), made.sample(range(6), 6)
        for place in sorted(places):
            given = {}
            if made.random() < 0.8:
                given["sku"] = skus.pop() if skus and made.random() < 0.8 else None
            if made.random() < 0.5:
                given["number"] = numbers.pop() if numbers and made.random() < 0.8 else None
            rows.append((place, given))
            if made.random() < 0.2 and skus:
                rows.append((f"{place}/v", {"sku": skus.pop()}))
        made.shuffle(rows)
        prune = made.random() < 0.5
        outcome = await imported(store, *rows, prune=prune)
        again = await imported(store, *rows, prune=prune)
        assert [one.number for one in again.rejections] == [one.number for one in outcome.rejections]
        assert again.written == 0
        stored = {f"{'/'.join(Record.of(one).path)}": one for one in (await invariants.nodes(store, "shop")).values()}
        rejected = {one.number for one in outcome.rejections}
        for number, (path, given) in enumerate(rows, start=1):
            landed = path in stored and all(stored[path].get(name) == value for name, value in given.items())
            assert landed is (number not in rejected), path
