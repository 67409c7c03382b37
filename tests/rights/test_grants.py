"""Grants: the paths they cover, their syntax, and paths that only look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.access.grants import MAX_GRANTS, Grants
from store.errors import BadInput, BadPath
from store.model.paths import parse_path

SEGMENTS = st.sampled_from(["US", "NE", "NEVADA", "N", "a/b", "a", "b", "é", "%"])
PATHS = st.lists(SEGMENTS, max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("grant", "path", "expected"),
    [
        ("read:location/US/NE", "US/NE", True), ("read:location/US/NE", "US/NE/Omaha", True),
        ("read:location/US/NE", "US", False), ("read:location/US/NE", "US/MO", False),
        ("read:location", "FR/Paris", True), ("read:loc", "US", False), ("read:category", "US", False),
        # What only begins alike:
        ("read:location/US/NE", "US/NEVADA", False), ("read:location/US/NEVADA", "US/NE", False),
        ("read:location/U", "US", False),
        # Slashes in keys, and equal texts of Unicode:
        ("read:location/US%2FNE", "US/NE", False), ("read:location/US%2fNE", "US%2FNE/Omaha", True),
        ("read:location/US/NE", "US%2FNE", False), ("read:location/FR/E\u0301vry", "FR/\u00c9vry", True),
    ],
)  # fmt: skip
def test_a_grant_covers_its_subtree_and_nothing_else(grant, path, expected):
    assert Grants.parse([grant]).may_read("location", parse_path(path)) is expected


def test_a_write_grant_includes_reading_and_not_the_reverse():
    grants = Grants.parse(["write:location/US", "read:location/FR"])
    for path, hierarchy, seen, may_write in (
        (("US", "NE"), "location", True, True), (("FR",), "location", True, False),
        (("US",), "category", False, False), (("US",), "locations", False, False),
    ):  # fmt: skip
        assert (grants.may_read(hierarchy, path), grants.may_write(hierarchy, path)) == (seen, may_write)


@pytest.mark.parametrize(
    "text",
    ["", "read", "read:", "read:/", "read:location/", "read:Location", "admin:location", "READ:location", "read:*",
     " read:location", "read:location ", "read:location/US\n", "read:location/US//NE", "read:location/100%",
     "read:location/%FF"],
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
    grants = Grants.of([("location", top) for top in tops], [])
    is_covered = any(path[: len(top)] == top for top in tops)
    highest = {top for top in tops if not any(top != other and top[: len(other)] == other for other in tops)}
    below = sorted(top for top in highest if len(top) > len(path) and top[: len(path)] == path)
    assert grants.may_read("location", path) is is_covered
    assert grants.roots_below("location", path) == below
    assert grants.may_read_part("location", path) is (is_covered or bool(below))
    assert grants.roots("location") == (None if () in tops else sorted(highest))


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
