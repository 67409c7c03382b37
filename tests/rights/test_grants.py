"""Grants: the paths they cover, their syntax, and paths that only look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.access.grants import MAX_GRANTS, Grants, Visibility
from store.errors import BadInput, BadPath
from store.model.paths import parse_path

SEGMENTS = st.sampled_from(["US", "NE", "NEVADA", "N", "a/b", "a", "b", "é", "%"])
PATHS = st.lists(SEGMENTS, max_size=4).map(tuple)


def visibility(grant, path):
    return Grants.parse([grant]).visibility("location", parse_path(path))


def test_a_grant_covers_its_subtree_and_redacts_the_nodes_above():
    assert visibility("read:location/US/NE", "US/NE") is Visibility.FULL
    assert visibility("read:location/US/NE", "US/NE/Omaha") is Visibility.FULL
    assert visibility("read:location/US/NE", "US") is Visibility.REDACTED
    assert visibility("read:location/US/NE", "US/MO") is Visibility.HIDDEN
    assert visibility("read:location", "FR/Paris") is Visibility.FULL


def test_a_prefix_of_a_segment_is_not_covered():
    assert visibility("read:location/US/NE", "US/NEVADA") is Visibility.HIDDEN
    assert visibility("read:location/US/NEVADA", "US/NE") is Visibility.HIDDEN
    assert visibility("read:location/U", "US") is Visibility.HIDDEN


def test_another_hierarchy_is_not_covered():
    grants = Grants.parse(["write:location"])
    assert grants.visibility("category", ("US",)) is Visibility.HIDDEN
    assert not grants.may_write("locations", ("US",))
    assert Grants.parse(["read:loc"]).visibility("location", ("US",)) is Visibility.HIDDEN


def test_an_encoded_slash_does_not_separate_segments():
    assert visibility("read:location/US%2FNE", "US/NE") is Visibility.HIDDEN
    assert visibility("read:location/US%2FNE", "US%2FNE/Omaha") is Visibility.FULL
    assert visibility("read:location/US%2fNE", "US%2FNE") is Visibility.FULL
    assert visibility("read:location/US/NE", "US%2FNE") is Visibility.HIDDEN


def test_paths_are_compared_in_normalized_unicode():
    assert visibility("read:location/FR/E\u0301vry", "FR/\u00c9vry") is Visibility.FULL


def test_a_write_grant_includes_reading_and_not_the_reverse():
    grants = Grants.parse(["write:location/US", "read:location/FR"])
    assert grants.visibility("location", ("US", "NE")) is Visibility.FULL
    assert grants.may_write("location", ("US", "NE"))
    assert grants.visibility("location", ("FR",)) is Visibility.FULL
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
def test_visibility_equals_a_comparison_with_every_grant(tops, path):
    grants = Grants.of([("location", top) for top in tops], [])
    if any(path[: len(top)] == top for top in tops):
        expected = Visibility.FULL
    elif any(top[: len(path)] == path for top in tops):
        expected = Visibility.REDACTED
    else:
        expected = Visibility.HIDDEN
    assert grants.visibility("location", path) is expected


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
