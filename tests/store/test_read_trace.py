"""Read trace: ranges as key conditions, each call of both stores, and bounds of calls and keys."""

from typing import Any

import pytest

from resolvers.sorting.conditions import prefix_span
from store.engine import MAX_CALLS, MAX_KEYS, ReadTrace, ReadUsage, Store, key_condition
from store.kinds.items import index_range
from store.kinds.words import by_text, by_weight
from store.model.keys import (
    Index,
    Key,
    KeyRange,
    below,
    children,
    just_after,
    level_range,
    log_key,
    siblings,
    sort_key,
    subtree,
)
from store.model.records import Put

US = "location#US"
NE = sort_key(("US", "NE"))
BELOW = below(US, NE)
CELLS = "cells/location#0f"


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
        (by_text("words/location#", "oma"), 'pk = "words/location#o" AND begins_with(sk, "oma")'),
        (by_text("words/location#", "oma").after("omaha#02#7"),
         r'pk = "words/location#o" AND sk BETWEEN "omaha#02#7!" AND "oma\udbff\udfff"'),
        (by_weight("words/location#", "oma"), 'parent = "words/location#oma" AND rank BETWEEN "0" AND "2"'),
        (KeyRange(Index.TABLE, CELLS, "0a0", "0b7"), f'pk = "{CELLS}" AND sk BETWEEN "0a0" AND "0b7"'),
        (KeyRange(Index.TABLE, CELLS, "0a0", "0a1"), f'pk = "{CELLS}" AND begins_with(sk, "0a0")'),
        (KeyRange(Index.TABLE, US, NE, just_after(NE)), 'pk = "location#US" AND sk = "#NE#"'),
        (KeyRange(Index.TABLE, US, *prefix_span("#NE#Om")), 'pk = "location#US" AND begins_with(sk, "#NE#Om")'),
        (KeyRange(Index.TABLE, US, *prefix_span("#\ud7ff")), r'pk = "location#US" AND begins_with(sk, "#\ud7ff")'),
        (KeyRange(Index.TABLE, US, *prefix_span("#\U0010ffff")),
         r'pk = "location#US" AND begins_with(sk, "#\udbff\udfff")'),
        (index_range("location"), r'pk = "kinds/location" AND sk BETWEEN "-" AND "~\udbff\udfff"'),
    ],
)  # fmt: skip
def test_a_range_is_shown_as_a_key_condition_with_its_values(key_range, condition):
    assert key_condition(key_range) == condition
    assert condition.isprintable()


PREFIXES = ["#NE#", "#NE#Om", "oma", "0a0", "#\ud7ff", "#a\U0010ffff"]


def test_a_prefix_is_shown_for_the_ranges_that_have_its_keys_and_no_others():
    keys = [one + end for one in PREFIXES for end in ("", "!", "#", "$", "a", "z", "\ud7ff", "\ufffd")] + [
        "#",
        "zz",
        "1",
    ]
    for prefix in PREFIXES:
        for key_range in (KeyRange(Index.TABLE, US, *prefix_span(prefix)), by_text("", prefix)):
            assert "begins_with(sk, " in key_condition(key_range)
            held = [key for key in keys if key_range.lo <= key < key_range.hi]
            assert held == [key for key in keys if key.startswith(prefix)]


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
