"""Visibility filter: the keys and parts of ranges that grants and running moves let see."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from resolvers.access.grants import Grants, VisibilityFilter
from store.model.keys import Index, Key, KeyRange, children, level_range, node_key, subtree

segments = st.text(alphabet="ab#$%!~", min_size=1, max_size=2)
paths = st.lists(segments, min_size=1, max_size=4).map(lambda below: ("US", *below))
keys = paths.map(lambda path: node_key("location", path))
bounds = st.lists(keys.map(lambda key: key.sk), min_size=2, max_size=2).map(sorted)
ROOTS = KeyRange(Index.BY_PARENT, "location", "A", "Z")


@given(bounds, st.lists(keys, max_size=4), st.none() | st.lists(paths, max_size=4), keys, st.booleans())
def test_visible_parts_contain_exactly_the_visible_keys(ends, hidden, tops, key, of_a_level):
    grants = None if tops is None else Grants.of([("location", top) for top in tops], [])
    visible = VisibilityFilter(grants, tuple(hidden))
    lo, hi = ends
    span = level_range(key.pk, "CITY", 2, lo, hi) if of_a_level else KeyRange(Index.TABLE, key.pk, lo, hi)
    parts = visible.visible_parts(span)
    is_seen = any(part.lo <= key.sk < part.hi for part in parts)
    assert is_seen == (lo <= key.sk < hi and visible.shows(key))
    assert all(part.lo < part.hi for part in parts), "none is empty"
    assert all(one.hi <= other.lo for one, other in itertools.pairwise(parts)), "in order, and none twice"


def test_children_of_one_node_are_all_granted_or_none():
    visible = VisibilityFilter(Grants.of([("location", ("US", "NE"))], []))
    for sk, is_granted in (("#NE#", True), ("#NE#Omaha#", True), ("#", False)):
        span = children("location#US", sk)
        assert visible.visible_parts(span) == [span] * is_granted
    assert visible.visible_parts(ROOTS) == []
    assert VisibilityFilter(Grants.of([("location", ())], [])).visible_parts(ROOTS) == [ROOTS]


def test_hidden_tops_among_children_are_counted_so_that_pages_are_full():
    hidden = (Key("location#US", "#NE#"), Key("location#US", "#NY#Albany#"), Key("location#CA", "#"))
    visible = VisibilityFilter(hidden=hidden)
    spans = [children("location#US", "#"), children("location#US", "#NY#"), ROOTS, subtree("location#US", "#")]
    assert [visible.hidden_in(span) for span in spans] == [1, 1, 1, 0], "of a subtree the parts are left out"


def test_a_moved_node_has_a_new_key():
    visible = VisibilityFilter(moved=((Key("location#US", "#NE#"), Key("location#CA", "#X#NE#")),))
    assert visible.new_key(Key("location#US", "#NE#Omaha#")) == Key("location#CA", "#X#NE#Omaha#")
    assert visible.new_key(Key("location#US", "#NEVADA#")) is None
