"""Visibility filter: the keys and parts of ranges that grants and running moves let see."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from resolvers.access.grants import Grants, Visibility, highest
from resolvers.access.visibility import VisibilityFilter
from store.model.keys import Index, Key, node_key
from store.model.ranges import KeyRange, children, level_range, subtree

segments = st.text(alphabet="ab#$%!~", min_size=1, max_size=2)
paths = st.lists(segments, min_size=1, max_size=4).map(lambda below: ("US", *below))
keys = paths.map(lambda path: node_key("location", path))
bounds = st.lists(keys.map(lambda key: key.sk), min_size=2, max_size=2).map(sorted)


def seen(visible: VisibilityFilter, span: KeyRange, sk: str) -> bool:
    return any(part.lo <= sk < part.hi for part in visible.visible_parts(span))


@given(bounds, st.lists(keys, max_size=4), st.none() | st.lists(paths, max_size=4), keys, st.booleans())
def test_visible_parts_contain_exactly_the_visible_keys(ends, hidden, tops, key, in_tier):
    grants = None if tops is None else Grants.of([("location", top) for top in tops], [])
    visible = VisibilityFilter(grants, tuple(hidden))
    lo, hi = ends
    span = level_range(key.pk, "CITY", 2, lo, hi) if in_tier else KeyRange(Index.TABLE, key.pk, lo, hi)
    assert seen(visible, span, key.sk) == (lo <= key.sk < hi and visible.visibility(key) is Visibility.FULL)
    parts = visible.visible_parts(span)
    assert all(part.lo < part.hi for part in parts), "none is empty"
    assert all(one.hi <= other.lo for one, other in itertools.pairwise(parts)), "in order, and none twice"


def test_children_of_one_node_are_all_granted_or_none():
    visible = VisibilityFilter(Grants.of([("location", ("US", "NE"))], []))
    assert visible.visible_parts(children("location#US", "#NE#")) == [children("location#US", "#NE#")]
    assert visible.visible_parts(children("location#US", "#NE#Omaha#")) != []
    assert visible.visible_parts(children("location#US", "#")) == []
    assert visible.visible_parts(KeyRange(Index.BY_PARENT, "location", "A", "Z")) == []
    everything = VisibilityFilter(Grants.of([("location", ())], []))
    assert everything.visible_parts(KeyRange(Index.BY_PARENT, "location", "A", "Z")) != []


def test_hidden_tops_among_children_are_counted_so_that_pages_are_full():
    visible = VisibilityFilter(
        hidden=(Key("location#US", "#NE#"), Key("location#US", "#NY#Albany#"), Key("location#CA", "#"))
    )
    assert visible.hidden_in(children("location#US", "#")) == 1
    assert visible.hidden_in(children("location#US", "#NY#")) == 1
    assert visible.hidden_in(KeyRange(Index.BY_PARENT, "location", "A", "Z")) == 1
    assert visible.hidden_in(subtree("location#US", "#")) == 0, "parts has cut there already"


def test_a_moved_node_has_a_new_key():
    visible = VisibilityFilter(moved=((Key("location#US", "#NE#"), Key("location#CA", "#X#NE#")),))
    assert visible.new_key(Key("location#US", "#NE#Omaha#")) == Key("location#CA", "#X#NE#Omaha#")
    assert visible.new_key(Key("location#US", "#NEVADA#")) is None


def test_grants_below_other_grants_are_redundant():
    assert sorted(highest([("US",), ("US", "NE"), ("CA", "ON")])) == [("CA", "ON"), ("US",)]
