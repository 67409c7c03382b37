"""Grants: the paths they cover, their syntax, and paths that only look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.access.grants import MAX_GRANTS, Grants, Visibility
from store.errors import BadInput, BadPath
from store.model.paths import parse_path

SEGMENTS = st.sampled_from(["US", "NE", "NEVADA", "N", "a/b", "a", "b", "é", "%"])
PATHS = st.lists(SEGMENTS, max_size=4).map(tuple)


FULL, REDACTED, HIDDEN = Visibility.FULL, Visibility.REDACTED, Visibility.HIDDEN


@pytest.mark.parametrize(
    ("grant", "path", "expected"),
    [
        ("read:location/US/NE", "US/NE", FULL), ("read:location/US/NE", "US/NE/Omaha", FULL),
        ("read:location/US/NE", "US", REDACTED), ("read:location/US/NE", "US/MO", HIDDEN),
        ("read:location", "FR/Paris", FULL), ("read:loc", "US", HIDDEN), ("read:category", "US", HIDDEN),
        # What only begins alike:
        ("read:location/US/NE", "US/NEVADA", HIDDEN), ("read:location/US/NEVADA", "US/NE", HIDDEN),
        ("read:location/U", "US", HIDDEN),
        # Slashes in keys, and equal texts of Unicode:
        ("read:location/US%2FNE", "US/NE", HIDDEN), ("read:location/US%2fNE", "US%2FNE/Omaha", FULL),
        ("read:location/US/NE", "US%2FNE", HIDDEN), ("read:location/FR/E\u0301vry", "FR/\u00c9vry", FULL),
    ],
)  # fmt: skip
def test_a_grant_covers_its_subtree_and_redacts_the_nodes_above(grant, path, expected):
    assert Grants.parse([grant]).visibility("location", parse_path(path)) is expected


def test_a_write_grant_includes_reading_and_not_the_reverse():
    grants = Grants.parse(["write:location/US", "read:location/FR"])
    for path, hierarchy, seen, may_write in (
        (("US", "NE"), "location", FULL, True), (("FR",), "location", FULL, False),
        (("US",), "category", HIDDEN, False), (("US",), "locations", HIDDEN, False),
    ):  # fmt: skip
        assert (grants.visibility(hierarchy, path), grants.may_write(hierarchy, path)) == (seen, may_write)


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
def test_visibility_equals_a_comparison_with_every_grant(tops, path):
    grants = Grants.of([("location", top) for top in tops], [])
    is_covered = any(path[: len(top)] == top for top in tops)
    is_above = any(top[: len(path)] == path for top in tops)
    assert grants.visibility("location", path) is (FULL if is_covered else REDACTED if is_above else HIDDEN)


@given(st.lists(PATHS, max_size=4), st.lists(PATHS, max_size=4), PATHS)
def test_grants_with_equal_digests_have_equal_visibility(some, others, path):
    one, other = (Grants.of([("location", top) for top in tops], []) for tops in (some, others))
    if one.digest == other.digest:
        assert one.visibility("location", path) is other.visibility("location", path)


def test_digests_depend_on_readable_subtrees_alone():
    one = Grants.parse(["read:location/US", "read:location/US/NE", "read:category"])
    other = Grants.parse(["write:category", "write:location/US"])
    assert one.digest == other.digest
    assert one.digest != Grants.parse(["read:location/US/NE", "read:category"]).digest
    assert Grants.parse(["read:location/a%2Fb"]).digest != Grants.parse(["read:location/a/b"]).digest
