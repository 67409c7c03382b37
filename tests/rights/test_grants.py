"""Grants: the paths they cover, their syntax, and paths that only look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.access.grants import MAX_GRANTS, Grants, grant_root_of, is_grant_root
from store.errors import BadInput, BadPath
from store.model.keys import node_key
from store.model.paths import parse_path

SEGMENTS = st.sampled_from(["US", "NE", "NEVADA", "N", "a/b", "a", "b", "é", "%"])
PATHS = st.lists(SEGMENTS, max_size=4).map(tuple)


def may_read(grant, path):
    return Grants.parse([grant]).may_read("location", parse_path(path))


def test_a_grant_covers_its_subtree_and_nothing_above_or_beside_it():
    assert may_read("read:location/US/NE", "US/NE")
    assert may_read("read:location/US/NE", "US/NE/Omaha")
    assert not may_read("read:location/US/NE", "US")
    assert not may_read("read:location/US/NE", "US/MO")
    assert may_read("read:location", "FR/Paris")


def test_a_prefix_of_a_segment_is_not_covered():
    assert not may_read("read:location/US/NE", "US/NEVADA")
    assert not may_read("read:location/US/NEVADA", "US/NE")
    assert not may_read("read:location/U", "US")


def test_another_hierarchy_is_not_covered():
    grants = Grants.parse(["write:location"])
    assert not grants.may_read("category", ("US",))
    assert not grants.may_write("locations", ("US",))
    assert not Grants.parse(["read:loc"]).may_read("location", ("US",))


def test_an_encoded_slash_does_not_separate_segments():
    assert not may_read("read:location/US%2FNE", "US/NE")
    assert may_read("read:location/US%2FNE", "US%2FNE/Omaha")
    assert may_read("read:location/US%2fNE", "US%2FNE")
    assert not may_read("read:location/US/NE", "US%2FNE")


def test_paths_are_compared_in_normalized_unicode():
    assert may_read("read:location/FR/E\u0301vry", "FR/\u00c9vry")


def test_a_write_grant_includes_reading_and_not_the_reverse():
    grants = Grants.parse(["write:location/US", "read:location/FR"])
    assert grants.may_read("location", ("US", "NE"))
    assert grants.may_write("location", ("US", "NE"))
    assert grants.may_read("location", ("FR",))
    assert not grants.may_write("location", ("FR",))


@pytest.mark.parametrize(
    "text",
    ["", "read", "read:", "read:/", "read:location/", "read:Location", "admin:location", "READ:location", "read:*",
     " read:location", "read:location ", "read:location/US\n", "read:location/US//NE", "read:location/100%"],
)  # fmt: skip
def test_an_invalid_grant_is_rejected(text):
    with pytest.raises((BadInput, BadPath)):
        Grants.parse([text])


def test_the_number_of_grants_of_one_caller_is_limited():
    Grants.parse([f"read:location/{n}" for n in range(MAX_GRANTS)])
    with pytest.raises(BadInput):
        Grants.parse([f"read:location/{n}" for n in range(MAX_GRANTS + 1)])


@given(st.lists(PATHS, max_size=5), PATHS)
def test_what_may_be_read_equals_a_comparison_with_every_grant(tops, path):
    grants, key = Grants.of([("location", top) for top in tops], []), node_key("location", path or ("US",))
    above = [path[:length] for length in range(len(path) + 1) if path[:length] in tops]
    assert grants.may_read("location", path) is bool(above)
    assert grants.leads_to_part("location", path) is (bool(above) or any(top[: len(path)] == path for top in tops))
    if above and path:
        assert grant_root_of(grants, key) == above[0]
        assert is_grant_root(grants, key) is (above == [path])


@given(st.lists(PATHS, max_size=5))
def test_the_highest_grants_are_roots(tops):
    roots = Grants.of([("location", top) for top in tops], []).roots("location")
    if () in tops:
        assert roots is None
    else:
        assert roots == sorted({top for top in tops if not any(top[:length] in tops for length in range(len(top)))})
    assert Grants.of([("location", top) for top in tops], []).roots("category") == []


@given(st.lists(PATHS, max_size=4), st.lists(PATHS, max_size=4), PATHS)
def test_grants_with_equal_digests_let_read_the_same(some, others, path):
    one, other = (Grants.of([("location", top) for top in tops], []) for tops in (some, others))
    if one.digest == other.digest:
        assert one.may_read("location", path) is other.may_read("location", path)


def test_digests_depend_on_readable_subtrees_alone():
    one = Grants.parse(["read:location/US", "read:location/US/NE", "read:category"])
    other = Grants.parse(["write:category", "write:location/US"])
    assert one.digest == other.digest
    assert one.digest != Grants.parse(["read:location/US/NE", "read:category"]).digest
    assert Grants.parse(["read:location/a%2Fb"]).digest != Grants.parse(["read:location/a/b"]).digest
