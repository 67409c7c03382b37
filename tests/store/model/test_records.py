"""Records and the ids of nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from store.errors import BadInput, BadPath
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key, Path
from store.model.records import MAX_ID_CHARACTERS, Record, canonical_item, checked_id, derived_id

AT = "2026-11-20T12:00:00Z"


def record(*path: str, level: str = "CITY", **attributes: object) -> Record:
    above = ["COUNTRY", "STATE"][: len(path) - 1]
    return Record.new("location", path, level, "Name", "5074472", AT, attributes, above=above)  # type: ignore[arg-type]


def test_a_new_record_has_the_keys_of_the_table_and_of_both_indexes() -> None:
    item = record("US", "NE", "Omaha", population=486_051).item()
    assert item == {
        "pk": "location#US", "sk": "#NE#Omaha#", "parent": "location#US#NE#", "rank": "CITY#Omaha#",
        "tier": "location#US@CITY@2", "id": "location:5074472", "level": "CITY", "name": "Name",
        "above": ["COUNTRY", "STATE"], "kids": {}, "below": {}, "revision": 1, "updated_at": AT, "population": 486_051,
    }  # fmt: skip
    assert Record.of({**item, "of_another_time": [1]}).attributes == {"population": 486_051, "of_another_time": [1]}
    root = record("US", level="COUNTRY")
    assert (root.key, root.siblings, root.rank, root.tier) == (
        Key("location#US", "#"), "location", "COUNTRY#US#", "location#US@COUNTRY@0",
    )  # fmt: skip
    assert (root.is_root, root.depth, root.path, root.hierarchy) == (True, 0, ("US",), "location")
    assert not record("US", "NE").is_root


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@given(st.lists(names, min_size=1, max_size=5).map(tuple), st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)))
def test_a_record_comes_back_from_its_item(path: Path, attributes: dict[str, int]) -> None:
    made = Record.new("h", path, "L", "Name", "7", AT, {**attributes}, above=["L"] * (len(path) - 1))
    assert Record.of(canonical_item(made.item())) == (replace(made, below=None) if made.is_root else made)
    assert made.path == path
    assert made.depth == len(path) - 1


def test_the_counts_of_a_root_are_not_in_its_item_and_have_to_be_added() -> None:
    root = replace(record("US", level="COUNTRY"), kids={"STATE": 1}, below={"STATE": 1, "CITY": 2})
    assert "below" not in root.item()
    found = Record.of({**root.item(), "below": {"STATE": 99}})  # as a table of layout 1 has it
    assert found.below is None
    with pytest.raises(LookupError, match="tree version"):
        _ = found.descendant_counts
    version = TreeVersion("location#US", 3, {"COUNTRY@0": 1, "STATE@1": 1, "CITY@1": 1, "CITY@2": 1})
    assert version.with_counts(found) == root
    city = record("US", "NE", "Omaha")
    assert version.with_counts(city) is city


def test_the_limit_of_a_rank_is_exact_and_names_segment_level_and_size() -> None:
    room = 1024 - len("STATE##")
    record("US", "a" * room, level="STATE")
    with pytest.raises(BadPath, match=r'"a+…" and its level STATE take 1025 bytes in a key; at most 1024 fit'):
        record("US", "a" * (room + 1), level="STATE")
    with pytest.raises(BadPath, match="1025 bytes"):
        record("US", "é" * (room // 2) + "aa", level="STATE")


# -- ids ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *[(text, None) for text in ("5074472", "TV-LG-55", "é/日", "😀", "a" * MAX_ID_CHARACTERS)],
        ("", "is empty"), (None, "is null, which is not a text"), (5074472, "is 5074472"), ("a b", "a blank"),
        ("a\x00", "control character"), ("a#b", "#"), ("location:7", ":"), ("a\u3000b", "a blank"),
        ("a\ud800", "control character"), ("a" * (MAX_ID_CHARACTERS + 1), "129 characters; at most 128"),
    ],
)  # fmt: skip
def test_an_id_may_be_nearly_any_text_and_is_else_rejected_with_the_reason(text: object, sentence: str | None) -> None:
    if sentence is None:
        assert checked_id(text) == text
    else:
        with pytest.raises(BadInput, match=sentence):
            checked_id(text)


@given(st.sets(st.lists(names, min_size=1, max_size=3).map(tuple), min_size=2, max_size=20))
def test_derived_ids_are_valid_and_differ_by_path_and_by_hierarchy(paths: set[Path]) -> None:
    made = {derived_id(hierarchy, path) for path in paths for hierarchy in ("location", "category")}
    assert len(made) == 2 * len(paths)
    assert {len(checked_id(one)) for one in made} == {16}


def test_derived_ids_never_change() -> None:
    """They lie in tables and in other subgraphs: a change here would make importing again make everything anew."""
    assert derived_id("location", ("US", "NE", "St. Louis")) == "ruegq76tef4uikwo"
    assert derived_id("category", ("Élite/50%",)) == "mpnqrnhztmywamkq"
