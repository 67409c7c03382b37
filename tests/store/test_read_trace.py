"""Read trace: ranges as key conditions, each call of both stores, and bounds of calls and keys."""

from typing import Any

import pytest

from store.engine import MAX_CALLS, MAX_KEYS, ReadTrace, ReadUsage, Store, key_condition
from store.model.keys import Index, Key, KeyRange, below, children, level_range, log_key, siblings, sort_key, subtree
from store.model.records import Put

US = "location#US"
NE = sort_key(("US", "NE"))
BELOW = below(US, NE)


@pytest.mark.parametrize(
    ("key_range", "condition"),
    [
        (subtree(US, NE), 'pk = "location#US" AND begins_with(sk, "#NE#")'),
        (BELOW, 'pk = "location#US" AND begins_with(sk, "#NE#")'),
        (children(US, NE), 'parent = "location#US#NE#"'),
        (children(US, NE, "CITY"), 'parent = "location#US#NE#" AND begins_with(rank, "CITY#")'),
        (level_range(US, "CITY", 2, BELOW.lo, BELOW.hi), 'tier = "location#US@CITY@2" AND begins_with(sk, "#NE#")'),
        (BELOW.after("#NE#Omaha#"), 'pk = "location#US" AND sk BETWEEN "#NE#Omaha#!" AND "#NE$"'),
        (
            KeyRange(Index.TABLE, US, log_key(US, 7).sk, log_key(US, 9).sk),
            'pk = "location#US" AND sk BETWEEN "!000000000007" AND "!000000000009"',
        ),
        (subtree('location#Å"\\', "#"), r'pk = "location#Å\"\\" AND begins_with(sk, "#")'),
    ],
)
def test_a_range_is_shown_as_a_key_condition_with_its_values(key_range, condition):
    assert key_condition(key_range) == condition


@pytest.mark.both_stores
async def test_each_call_of_both_stores_is_listed_in_one_notation(store: Store):
    await store.commit([Put({"pk": "g", "sk": f"#{number}#", "text": "x" * 300_000}) for number in range(5)])
    reads = ReadUsage(trace=ReadTrace(lambda: 7))
    assert reads.trace is not None
    await store.get([Key("g", "#0#"), Key("g", "#x#")], reads, strong=True)
    await store.range(subtree("g", "#"), reads, limit=1, reverse=True, strong=True)
    await store.nodes(children("g", "#"), reads)
    await store.count(level_range("g", "PLOT", 1, "#!", "$"), reads)
    await store.get([], reads)
    await store.range(children("g", "#"), reads, limit=0)
    one = {"consistentRead": True, "items": 1, "index": "table"}
    expected: list[dict[str, Any]] = [
        {**one, "keys": ['pk = "g" AND sk = "#0#"', 'pk = "g" AND sk = "#x#"']},
        {**one, "keyCondition": 'pk = "g" AND begins_with(sk, "#")', "limit": 1, "scanIndexForward": False},
        {"consistentRead": False, "items": 0, "index": "by_parent", "keyCondition": 'parent = "g#"'},
        {"consistentRead": False, "items": 0, "index": "by_level", "select": "COUNT",
         "keyCondition": 'tier = "g@PLOT@1" AND begins_with(sk, "#")'},
    ]  # fmt: skip
    by_key, by_range = ("SELECT", "SELECT") if store.version() is not None else ("BatchGetItem", "Query")
    calls = reads.trace.report()["calls"]
    assert sum(call["units"] for call in calls) == reads.units
    assert all(call["units"] > 0 for call in calls)
    assert [{**call, "units": 1} for call in calls] == [
        {**call, "units": 1, "round": 7, "operation": by_key if "keys" in call else by_range} for call in expected
    ]
    pages = ReadUsage(trace=ReadTrace(lambda: 8))
    assert pages.trace is not None
    assert len(await store.range(subtree("g", "#"), pages)) == 5
    calls = pages.trace.report()["calls"]
    assert sum(call["items"] for call in calls) == 5
    after = [None] if store.version() is not None else [None, f"#{calls[0]['items'] - 1}#"]
    assert [call.get("after") for call in calls] == after


def test_calls_and_keys_beyond_their_bounds_are_counted():
    traced = ReadTrace(lambda: 1)
    for count in (MAX_KEYS, MAX_KEYS + 5):
        traced.add_keys("BatchGetItem", [Key("a", f"#{n}#") for n in range(count)], items=1, units=1.0, strong=False)
    assert [(len(call["keys"]), call.get("moreKeys")) for call in traced.report()["calls"]] == [(20, None), (20, 5)]
    for _ in range(MAX_CALLS - 2):
        traced.add_range("Query", siblings("location"), items=1, units=0.5)
    assert "moreCalls" not in traced.report()
    for more in (1, 2):
        traced.add_range("Query", siblings("location"), items=1, units=0.5)
        assert (len(traced.report()["calls"]), traced.report()["moreCalls"]) == (MAX_CALLS, more)
