"""Storage interface: every operation, on both stores."""

import asyncio
import time
from itertools import product
from typing import Any

import pytest

from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import BadInput, Conflict, NoTable
from store.model.keys import Index, Key, KeyRange, below, children, level_range, siblings, subtree
from store.model.records import ABSENT, MAX_ITEM_BYTES, Change, Check, Delete, Item, Put, Record, key_of

pytestmark = [pytest.mark.both_stores, pytest.mark.extenddb]

LEVELS = ("COUNTRY", "STATE", "CITY")


def node(*path: str, **attributes: object) -> Item:
    """The item of a node whose level is that of its depth."""
    level = LEVELS[len(path) - 1]
    record = Record.new(
        "location", path, level, path[-1], "-".join(path).replace(" ", "_"), "2026-11-20T12:00:00Z", {},
        above=list(LEVELS[: len(path) - 1]),
    )  # fmt: skip
    return {**record.item(), **attributes}  # type: ignore[dict-item]


def names(items: list[Item]) -> list[object]:
    return [item["name"] for item in items]


async def put(store: Store, *items: Item) -> None:
    for start in range(0, len(items), store.max_changes):
        await store.commit([Put(item) for item in items[start : start + store.max_changes]])


async def got(store: Store, key: Key) -> Item | None:
    return (await store.get([key], ReadUsage(), strong=True))[0]


TREE = [
    node("US"), node("US", "NE"), node("US", "NE", "Omaha"), node("US", "NE", "Lincoln"), node("US", "NEVADA"),
    node("US", "NEVADA", "Reno"), node("US", "NY"), node("US", "NY", "New York"), node("FR"), node("FR", "Paris"),
]  # fmt: skip


# -- get ---------------------------------------------------------------------------------------------------------------


async def test_items_come_in_the_order_of_the_keys_each_read_once_and_none_where_there_is_none(store: Store) -> None:
    await put(store, *TREE)
    wanted = [TREE[2], TREE[0], TREE[9]]
    keys = [key_of(wanted[0]), Key("location#US", "#ZZ#"), key_of(wanted[1]), key_of(wanted[2])]
    assert await store.get(keys, ReadUsage()) == [wanted[0], None, wanted[1], wanted[2]]
    reads = ReadUsage()
    assert await store.get([], reads) == []
    assert reads == ReadUsage()
    assert await store.get([key_of(TREE[0])] * 2, reads) == [TREE[0]] * 2
    assert (reads.requests, reads.items) == (1, 1)


async def test_more_than_a_hundred_keys_take_one_request_for_each_hundred(store: Store) -> None:
    items = [node("US", f"S{number:03}") for number in range(230)]
    await put(store, *items)
    reads = ReadUsage()
    assert await store.get([key_of(item) for item in items], reads) == items
    assert (reads.requests, reads.items) == (3, 230)


@pytest.mark.usefixtures("exact")
async def test_a_strong_read_costs_twice_as_much(store: Store) -> None:
    await put(store, *TREE)
    weak, strong = ReadUsage(), ReadUsage()
    await store.get([key_of(TREE[0])], weak)
    await store.get([key_of(TREE[0])], strong, strong=True)
    assert (weak.units, strong.units) == (0.5, 1.0)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("exact")
async def test_every_kind_of_value_comes_back_as_it_was_a_whole_float_as_an_int_and_none_not_at_all(
    store: Store,
) -> None:
    item: Item = {
        "pk": "t", "sk": "v", "text": "naïve 🌍 \x00 \u2028 日本", "empty": "",
        "int": 41, "low": -(2**63), "high": 2**63 - 1,
        "float": 0.1 + 0.2, "small": 1.5e-130, "large": 1.7e125, "beyond": 2.0**70, "yes": True, "no": False,
        "list": ["a", 1, 2.5, None, [True], {"b": []}], "none": {}, "nil": [],
        "map": {"CITY": 3, "a#b": {"c": None}, "": "e"},
    }  # fmt: skip
    await store.commit([Put({**item, "latitude": 41.0, "deep": [{"x": -0.0}], "absent": None})])
    item |= {"latitude": 41, "deep": [{"x": 0}]}
    found = await got(store, key_of(item))
    assert found == item
    assert {name: type(value) for name, value in (found or {}).items()} == {n: type(v) for n, v in item.items()}


async def test_a_value_that_cannot_be_stored_is_refused_and_nothing_is_written(store: Store) -> None:
    for value in (float("nan"), 1e126, 1e-131, 2**63, {"deep": [1e300]}, b""):
        with pytest.raises(BadInput):
            await store.commit([Put({"pk": "t", "sk": "a"}), Put({"pk": "t", "sk": "b", "n": value})])  # type: ignore[dict-item]
    assert await got(store, Key("t", "a")) is None


@pytest.mark.usefixtures("exact")
async def test_an_item_past_400_kb_is_refused_by_name_and_size(store: Store) -> None:
    bare: Item = {"pk": "t", "sk": "v", "name": "Omaha", "text": ""}
    room = MAX_ITEM_BYTES - len("pktskvnameOmahatext")
    await store.commit([Put({**bare, "text": "x" * room})])
    with pytest.raises(BadInput, match=r"Omaha.* 409601 bytes.* 409600"):
        await store.commit([Put({**bare, "text": "x" * (room + 1)})])
    with pytest.raises(BadInput, match="Omaha"):
        await store.commit([Put({**bare, "text": "é" * (room // 2 + 1)})])


# -- range and count ---------------------------------------------------------------------------------------------------

WHERE = {"level": "CITY", "rank": "CITY#Aloha#"}
RANGES = [
    (subtree("location#US", "#NE#"), ["NE", "Lincoln", "Omaha"]),
    (below("location#FR", "#"), ["Paris"]),
    (children("location#US", "#"), ["Aloha", "NE", "NEVADA", "NY", "A"]),
    (children("location#US", "#", "CITY"), ["Aloha"]),
    (siblings("location"), ["FR", "US"]),
    (level_range("location#US", "CITY", 2, "#", "$"), ["Lincoln", "Omaha", "Reno", "New York"]),
    (level_range("location#US", "CITY", 2, "#NE#", "#NEVADA$"), ["Lincoln", "Omaha", "Reno"]),
    (subtree("location#XX", "#"), []),
]


async def test_each_range_of_each_index_has_its_nodes_in_their_order_and_is_one_request(store: Store) -> None:
    await put(store, *reversed(TREE), node("US", "Aloha", **WHERE), node("US", "A", rank="STATE#Z"))
    for span, expected in RANGES:
        reads, counted = ReadUsage(), ReadUsage()
        assert names(await store.range(span, reads)) == expected
        assert await store.count(span, counted) == len(expected)
        assert (reads.requests, reads.items, counted.requests, counted.items) == (1, len(expected), 1, 0)


async def test_key_order_is_the_order_of_code_points(store: Store) -> None:
    texts = ["!", "%", "A", "a", "a b", "a#", "é", "z", "\uffff", "\U00010000", "😀", "日本"]
    await put(store, *(node("US", text) for text in texts))
    assert names(await store.range(below("location#US", "#"), ReadUsage())) == sorted(texts)
    assert names(await store.range(below("location#US", "#"), ReadUsage(), reverse=True)) == sorted(texts, reverse=True)


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_limit_takes_the_first_items_between_the_bounds_in_one_request(store: Store, reverse: bool) -> None:
    """The lower bound is included, the upper is not."""
    await put(store, *(node("US", text) for text in "abcde"))
    for span, inside in (
        (below("location#US", "#"), "abcde"),
        (KeyRange(Index.TABLE, "location#US", "#a#", "#c#"), "ab"),
    ):
        assert await store.count(span, ReadUsage()) == len(inside)
        for limit in (None, 1, 2, 3, 5, 6, 100):
            reads = ReadUsage()
            found = await store.range(span, reads, limit=limit, reverse=reverse)
            assert names(found) == list(inside[::-1] if reverse else inside)[:limit]
            assert (reads.requests, reads.items) == (1, len(found))


@pytest.mark.parametrize("reverse", [False, True])
async def test_nodes_are_the_records_of_a_ranges_items(store: Store, reverse: bool) -> None:
    await put(store, *(node("US", text, code=text, area=1.5) for text in ("a", "b", "c")), node("US", "d", of=["x", 1]))
    spans = (below("location#US", "#"), children("location#US", "#"), below("location#US", "#").after("#b#"))
    for span, limit in product(spans, (None, 0, 2, 100)):
        for _ in range(2):  # first attributes are new, then they are known
            reads, costs = ReadUsage(), ReadUsage()
            nodes = await store.nodes(span, reads, limit=limit, reverse=reverse)
            assert nodes == list(map(Record.of, await store.range(span, costs, limit=limit, reverse=reverse)))
            assert reads == costs


async def test_a_limit_of_0_and_an_empty_range_cost_nothing(store: Store) -> None:
    await put(store, *TREE)
    reads = ReadUsage()
    assert await store.range(subtree("location#US", "#"), reads, limit=0) == []
    assert await store.range(KeyRange(Index.TABLE, "location#US", "#b", "#a"), reads) == []
    assert await store.range(KeyRange(Index.TABLE, "location#US", "#a", "#a"), reads) == []
    assert await store.count(KeyRange(Index.TABLE, "location#US", "#a", "#a"), reads) == 0
    assert reads == ReadUsage()


async def test_bounds_of_ranks_are_exact_too(store: Store) -> None:
    await put(store, *(node("US", text, rank=f"STATE#{text}") for text in "abcd"))
    span = siblings("location#US#", "STATE")
    assert names(await store.range(span.before("STATE#c"), ReadUsage(), reverse=True, limit=1)) == ["b"]
    assert names(await store.range(span.after("STATE#c"), ReadUsage())) == ["d"]
    assert await store.count(span.before("STATE#c"), ReadUsage()) == 2


async def test_bounds_may_be_empty_or_longer_than_any_key(store: Store) -> None:
    longest, wide, last = "#" + "a" * 1022 + "#", "#" + "a" * 1017 + "😀#", "#b#"
    await put(store, *({"pk": "t", "sk": sk} for sk in (longest, wide, last)))
    await put(store, *({"pk": "moves", "sk": text} for text in ("a", "!", "\x01")))

    async def found(span: KeyRange, **how: Any) -> list[object]:
        return [item["sk"] for item in await store.range(span, ReadUsage(), **how)]

    rest, long = subtree("t", "#").after(longest), "#" + "a" * 1017 + "😀" * 9
    assert await found(rest, limit=1) == [wide]
    assert await found(rest, reverse=True) == [last, wide]
    assert await found(rest, reverse=True, limit=1) == [last]
    assert await found(KeyRange(Index.TABLE, "t", "#!", long + "!")) == [longest, wide]
    assert await found(KeyRange(Index.TABLE, "t", long + "#", "$")) == [last]
    assert await found(KeyRange(Index.TABLE, "moves", "", "\U0010ffff")) == ["\x01", "!", "a"]


async def test_a_strong_range_of_the_table_sees_what_was_just_written(store: Store) -> None:
    for number in range(5):
        await put(store, node("US", f"S{number}"))
        assert len(await store.range(below("location#US", "#"), ReadUsage(), strong=True)) == number + 1


async def test_an_index_has_the_items_with_its_keys_at_the_last_of_them(store: Store) -> None:
    item = node("US", "a")
    await put(store, {"pk": "location#US", "sk": "!", "n": 1}, node("US"), item, node("US", "b"))
    assert names(await store.range(siblings("location"), ReadUsage())) == ["US"]
    await put(store, {**item, "rank": "STATE#z"})
    assert names(await store.range(children("location#US", "#"), ReadUsage())) == ["b", "a"]


# -- commit ------------------------------------------------------------------------------------------------------------


async def test_puts_and_deletes_are_made_together_also_of_nothing(store: Store) -> None:
    await put(store, *TREE[:3])
    await store.commit([Delete(key_of(TREE[2])), Put({**TREE[0], "name": "America"}), Put(TREE[3])])
    await store.commit([Delete(Key("t", "v"))])
    await store.commit([])
    found = await store.range(subtree("location#US", "#"), ReadUsage(), strong=True)
    assert names(found) == ["America", "NE", "Lincoln"]


OMAHA = node("US", "NE", "Omaha", revision=3, kids={"STORE": 2}, nick="O", list=[1, "b"])
HERE = key_of(OMAHA)
ELSEWHERE = Key("location#US", "#none#")
TRUE: list[Change] = [
    Check(HERE, {"revision": 3}), Check(HERE, {"revision": 3.0, "nick": "O"}), Check(HERE, {"kids": {"STORE": 2}}),
    Check(HERE, {"list": [1, "b"]}), Check(HERE, {"gone": None}), Check(HERE, {"gone": None, "revision": 3}),
    Check(ELSEWHERE, ABSENT), Check(ELSEWHERE, {"revision": None}), Put(OMAHA, {"id": OMAHA["id"]}),
    Put({**OMAHA, "sk": "#none#"}, ABSENT), Delete(HERE, {"revision": 3}), Delete(ELSEWHERE, ABSENT),
]  # fmt: skip
FALSE: list[Change] = [
    Check(HERE, {"revision": 2}), Check(HERE, {"revision": "3"}), Check(HERE, {"revision": 3, "nick": "P"}),
    Check(HERE, {"kids": {"STORE": 3}}), Check(HERE, {"kids": {}}), Check(HERE, {"list": ["b", 1]}),
    Check(HERE, ABSENT), Check(HERE, {"nick": None}), Check(ELSEWHERE, {"revision": 3}),
    Check(ELSEWHERE, {"revision": 3, "gone": None}),
    Put(OMAHA, ABSENT), Put({**OMAHA, "sk": "#none#"}, {"revision": 1}), Delete(HERE, {"revision": 4}),
    Delete(ELSEWHERE, {"pk": "location#US"}),
]  # fmt: skip


async def test_a_commit_is_made_where_its_conditions_are_fulfilled(store: Store) -> None:
    other = Key("other", "x")
    for change in TRUE:
        await store.commit([Put(OMAHA), Delete(ELSEWHERE), Delete(other)])
        await store.commit([change, Put({"pk": other.pk, "sk": other.sk})])
        assert await got(store, other) is not None, change


async def test_a_condition_that_fails_stops_all_and_is_reported_by_its_index(store: Store) -> None:
    await put(store, OMAHA)
    for change in FALSE:
        with pytest.raises(Conflict) as caught:
            await store.commit([Put({"pk": "other", "sk": "x"}), change, Delete(Key("other", "y"))])
        assert caught.value.failed == (1,), change
    with pytest.raises(Conflict) as caught:
        await store.commit([Check(HERE, ABSENT), Check(ELSEWHERE, ABSENT), Check(Key("t", "v"), {"a": 1})])
    assert caught.value.failed == (0, 2)
    assert await got(store, Key("other", "x")) is None
    assert await got(store, HERE) == OMAHA


async def test_a_reserved_word_of_dynamodb_can_be_in_a_condition(store: Store) -> None:
    item: Item = {"pk": "t", "sk": "v", "name": "a", "size": 1, "a.b": 2, "#c0": 3, "if x = :now": 4}
    await store.commit([Put(item)])
    await store.commit([Check(key_of(item), item)])


async def test_of_many_who_write_the_same_at_once_one_wins(store: Store) -> None:
    async def raise_it(number: int) -> bool:
        try:
            await store.commit([Put({"pk": "t", "sk": "!", "n": number}, ABSENT), Put({"pk": "t", "sk": f"w{number}"})])
        except Conflict:
            return False
        return True

    won = [number for number, made in enumerate(await asyncio.gather(*map(raise_it, range(12)))) if made]
    assert len(won) == 1
    assert await got(store, Key("t", "!")) == {"pk": "t", "sk": "!", "n": won[0]}
    written = await store.range(KeyRange(Index.TABLE, "t", "w", "x"), ReadUsage(), strong=True)
    assert [item["sk"] for item in written] == [f"w{won[0]}"]


async def test_a_commit_of_as_many_changes_as_fit_is_made_and_one_more_is_refused_where_there_is_a_bound(
    store: Store,
) -> None:
    most = store.max_commit_changes or 3 * store.max_changes
    changes = [Put({"pk": "t", "sk": f"{number:04}"}, ABSENT) for number in range(most + 1)]
    if store.max_commit_changes is not None:
        with pytest.raises(BadInput, match=str(most)):
            await store.commit(changes)
    await store.commit(changes[1:])
    assert await store.count(KeyRange(Index.TABLE, "t", "0", "9"), ReadUsage()) == most


async def test_changing_one_item_twice_in_a_commit_is_an_error(store: Store) -> None:
    with pytest.raises(ValueError, match="twice"):
        await store.commit([Put({"pk": "t", "sk": "v"}), Delete(Key("t", "v"))])


# -- expiry ------------------------------------------------------------------------------------------------------------


async def test_expired_items_are_never_returned(store: Store) -> None:
    now = time.time()
    past, future = int(now) - 10, int(now) + 1000
    items = [{**node("US", text), "expires": past if text in "bd" else future} for text in "abcd"]
    await put(store, *items)  # type: ignore[arg-type]
    span = below("location#US", "#")
    assert names(await store.range(span, ReadUsage())) == ["a", "c"]
    assert names(await store.range(span, ReadUsage(), limit=2)) == ["a", "c"]
    assert names(await store.range(span, ReadUsage(), limit=1, reverse=True)) == ["c"]
    assert names(await store.range(children("location#US", "#"), ReadUsage())) == ["a", "c"]
    assert await store.count(span, ReadUsage()) == 2
    found = await store.get([key_of(item) for item in items], ReadUsage())  # type: ignore[arg-type]
    assert [item and item["name"] for item in found] == ["a", None, "c", None]


async def test_an_expired_item_is_absent_to_a_condition(store: Store) -> None:
    item: Item = {"pk": "once#location:KEY", "sk": "v0", "answer": 1, "expires": int(time.time()) - 10}
    await store.commit([Put(item)])
    with pytest.raises(Conflict):
        await store.commit([Check(key_of(item), {"answer": 1})])
    await store.commit([Put({**item, "expires": int(time.time()) + 1000}, ABSENT)])
    await store.commit([Check(key_of(item), {"answer": 1})])
    with pytest.raises(Conflict):
        await store.commit([Put(item, ABSENT)])


# -- scan --------------------------------------------------------------------------------------------------------------


async def test_a_scan_brings_every_item_once_whatever_it_is(store: Store) -> None:
    others = [Item(pk="location", sk="!", n=1), Item(pk="id#location:US", sk="v0"), Item(pk="t", sk="\0")]
    await put(store, *TREE, *others)
    reads = ReadUsage()
    found = [item async for page in store.scan(reads) for item in page]
    assert sorted(found, key=key_of) == sorted([*TREE, *others], key=key_of)
    assert (reads.requests, reads.items) == (1, len(found))


async def test_a_scan_has_pages_and_no_expired_items(store: Store) -> None:
    gone = Item(pk="t", sk="0", expires=int(time.time()) - 10)
    await put(store, gone, *[Item(pk=f"p{n % 7}", sk=f"{n:05d}", text="x" * 900) for n in range(2500)])
    reads = ReadUsage()
    pages = [page async for page in store.scan(reads)]
    assert len({key_of(item) for page in pages for item in page}) == reads.items == 2500
    assert len(pages) == reads.requests >= 2


# -- the table ---------------------------------------------------------------------------------------------------------


async def test_without_a_table_every_operation_says_how_to_create_one(store_url: str) -> None:
    async with open_store(store_url) as store:
        for verb in (
            store.health, lambda: store.get([Key("t", "v")], ReadUsage()),
            lambda: store.range(subtree("t", "#"), ReadUsage()),
            lambda: store.count(subtree("t", "#"), ReadUsage()), lambda: store.commit([Put({"pk": "t", "sk": "v"})]),
            store.describe,
        ):  # fmt: skip
            with pytest.raises(NoTable, match="clade table create"):
                await verb()  # type: ignore[operator]
        assert await store.create()
        await store.health()


async def test_a_table_is_created_once_by_concurrent_calls(store_url: str) -> None:
    async with open_store(store_url) as one, open_store(store_url) as other:
        made = await asyncio.gather(one.create(), other.create(), one.create())
        assert sorted(made) == [False, False, True]
        await one.commit([Put({"pk": "t", "sk": "v"})])
        assert not await other.create()
        assert await got(other, Key("t", "v")) is not None


async def test_a_table_is_described_by_its_name_status_indexes_and_expiry(store: Store) -> None:
    await put(store, *TREE)
    found = await store.describe()
    assert (found["status"], found["indexes"], found["ttl"]) == ("ACTIVE", ["by_level", "by_parent"], "expires")
    assert isinstance(found["items"], int)
    assert isinstance(found["bytes"], int)
    assert found["name"]
