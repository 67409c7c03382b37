"""Read trace: ranges as key conditions, each call of both stores, and bounds of calls and keys."""

from typing import Any

import pytest

from store.engine.protocol import Store
from store.engine.read_trace import MAX_CALLS, MAX_KEYS, ReadTrace, key_condition
from store.engine.usage import ReadUsage
from store.model.items import Put
from store.model.keys import Index, Key, log_key, sort_key
from store.model.ranges import KeyRange, below, children, level_range, siblings, subtree
from tests.model import Model

pytestmark = pytest.mark.both_stores

US = "location#US"
NE = sort_key(("US", "NE"))


@pytest.mark.parametrize(
    ("key_range", "condition"),
    [
        (subtree(US, NE), 'pk = "location#US" AND begins_with(sk, "#NE#")'),
        (below(US, NE), 'pk = "location#US" AND begins_with(sk, "#NE#")'),
        (children(US, NE), 'parent = "location#US#NE#"'),
        (siblings("location"), 'parent = "location"'),
        (children(US, NE, "CITY"), 'parent = "location#US#NE#" AND begins_with(rank, "CITY#")'),
        (
            level_range(US, "CITY", 2, below(US, NE).lo, below(US, NE).hi),
            'tier = "location#US@CITY@2" AND begins_with(sk, "#NE#")',
        ),
        (
            level_range(US, "CITY", 2, "#NE#A#", "#NE#K!"),
            'tier = "location#US@CITY@2" AND sk BETWEEN "#NE#A#" AND "#NE#K!"',
        ),
        (
            below(US, NE).after("#NE#Omaha#"),
            'pk = "location#US" AND sk BETWEEN "#NE#Omaha#!" AND "#NE$"',
        ),
        (
            KeyRange(Index.TABLE, US, log_key(US, 7).sk, log_key(US, 9).sk),
            'pk = "location#US" AND sk BETWEEN "!000000000007" AND "!000000000009"',
        ),
        (subtree("location#Å\"\\", "#"), r'pk = "location#Å\"\\" AND begins_with(sk, "#")'),
    ],
    ids=[
        "subtree", "below", "children", "roots", "children of a level", "level below a node", "level between keys",
        "after a cursor", "change log", "quotes",
    ],
)  # fmt: skip
def test_a_range_is_shown_as_a_key_condition_with_its_values(key_range, condition):
    assert key_condition(key_range) == condition


def trace() -> ReadTrace:
    return ReadTrace(lambda: 1)


async def test_each_call_of_both_stores_is_listed_in_one_notation(store: Store):
    model = Model("ground", {("r",): "AREA", ("r", "a"): "AREA", ("r", "b"): "PLOT"}, {})
    await store.commit([Put(item) for item in model.items()])
    reads = ReadUsage(trace=trace())
    by_key, by_range = ("SELECT", "SELECT") if not store.is_remote else ("BatchGetItem", "Query")
    await store.get([Key("ground#r", "#"), Key("ground#r", "!"), Key("ground#r", "#x#")], reads, strong=True)
    await store.nodes(children("ground#r", "#"), reads, limit=5)
    await store.range(subtree("ground#r", "#"), reads, reverse=True, strong=True)
    await store.count(level_range("ground#r", "PLOT", 1, "#!", "$"), reads)
    await store.get([], reads)
    await store.nodes(children("ground#r", "#"), reads, limit=0)
    calls: list[dict[str, Any]] = [dict(call) for call in reads.trace.report()["calls"]] if reads.trace else []
    assert [call.pop("round") for call in calls] == [1] * 4
    assert sum(call["units"] for call in calls) == reads.units
    assert [call.pop("units") > 0 for call in calls] == [True] * 4
    assert calls == [
        {
            "operation": by_key,
            "index": "table",
            "keys": [f'pk = "ground#r" AND sk = "{sk}"' for sk in ("#", "!", "#x#")],
            "consistentRead": True,
            "items": 2,
        },
        {
            "operation": by_range,
            "index": "by_parent",
            "keyCondition": 'parent = "ground#r#"',
            "limit": 5,
            "consistentRead": False,
            "items": 2,
        },
        {
            "operation": by_range,
            "index": "table",
            "keyCondition": 'pk = "ground#r" AND begins_with(sk, "#")',
            "scanIndexForward": False,
            "consistentRead": True,
            "items": 3,
        },
        {
            "operation": by_range,
            "index": "by_level",
            "keyCondition": 'tier = "ground#r@PLOT@1" AND begins_with(sk, "#")',
            "select": "COUNT",
            "consistentRead": False,
            "items": 0,
        },
    ]


async def test_a_further_page_of_a_query_names_the_key_behind_which_it_begins(store: Store):
    for number in range(5):
        await store.commit([Put({"pk": "large", "sk": f"#{number}#", "text": "x" * 300_000})])
    reads = ReadUsage(trace=trace())
    assert len(await store.range(subtree("large", "#"), reads)) == 5
    calls = reads.trace.report()["calls"] if reads.trace else []
    assert sum(call["items"] for call in calls) == 5
    assert {call["keyCondition"] for call in calls} == {'pk = "large" AND begins_with(sk, "#")'}
    expected = [None] if not store.is_remote else [None, f"#{calls[0]['items'] - 1}#"]
    assert [call.get("after") for call in calls] == expected


def test_calls_beyond_the_bound_are_counted():
    traced = trace()
    for _ in range(MAX_CALLS):
        traced.add_range("Query", siblings("location"), items=1, units=0.5)
    assert "moreCalls" not in traced.report()
    for _ in range(3):
        traced.add_range("Query", siblings("location"), items=1, units=0.5)
    traced.add_keys("BatchGetItem", [Key("a", "#")], items=1, units=1.0, strong=False)
    assert (len(traced.report()["calls"]), traced.report()["moreCalls"]) == (MAX_CALLS, 4)


def test_keys_beyond_the_bound_are_counted():
    traced = trace()
    for count in (MAX_KEYS, MAX_KEYS + 5):
        traced.add_keys("BatchGetItem", [Key("a", f"#{n}#") for n in range(count)], items=1, units=1.0, strong=False)
    some, more = traced.report()["calls"]
    assert (len(some["keys"]), some.get("moreKeys")) == (MAX_KEYS, None)
    assert (len(more["keys"]), more["moreKeys"]) == (MAX_KEYS, 5)
