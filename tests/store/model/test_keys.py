"""Keys, by properties: for any tree, byte order is path order, and ranges hold exactly their nodes."""

import unicodedata
from collections.abc import Callable, Iterable
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.sorting.conditions import (
    EVERYTHING,
    Span,
    Spans,
    clipped,
    complement,
    contains,
    intersection,
    prefix_span,
    union,
)
from store.errors import BadPath, shorten
from store.model.hierarchy import MAX_NAME_CHARACTERS
from store.model.keys import (
    MAX_PARTITION_KEY_BYTES,
    MAX_ROOT_BYTES,
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    KeyRange,
    Path,
    below,
    children,
    decode_segment,
    depth_of,
    encode_segment,
    first_rank,
    hierarchy_of,
    id_key,
    just_after,
    last_segment,
    level_partition,
    level_range,
    log_key,
    node_key,
    parent_partition,
    parent_sort_key,
    path_of,
    prefix_end,
    revision_key,
    siblings,
    sort_key,
    subtree,
    tree_key,
    tree_version_key,
)
from store.model.paths import check_new_key, checked_path, format_path, parse_path

# Segments as they can come in, where they can: nothing that NFC changes, no control characters, no lone surrogates. The
# characters about which the order of keys turns come up often.
CRITICAL = " !\"#$%&'/0A_a~é日\uffff\U00010000😀"
characters = st.sampled_from(CRITICAL) | st.characters(exclude_categories=["Cs", "Cc"])
segments = (
    st.text(characters, min_size=1, max_size=6)
    .map(lambda text: unicodedata.normalize("NFC", text))
    .filter(lambda text: all(unicodedata.category(c) != "Cc" for c in text))
)
paths = st.lists(segments, min_size=1, max_size=5).map(tuple)
any_text = st.text(st.characters(exclude_categories=["Cs"]))


# Segments of which many are equal and many begin alike.
alike = st.sampled_from(["a", "a!", "a#", "a$", "a%", "a b", "ab", "b", "#", "$", "%", "é", "😀"]) | segments


def trees(size: int = 12) -> st.SearchStrategy[list[Path]]:
    """Paths below one root, which often share their beginnings, and all that lie above each."""
    below_root = st.lists(alike, max_size=4).map(lambda rest: ("R", *rest))
    return st.lists(below_root, min_size=1, max_size=size).map(
        lambda found: sorted({path[:end] for path in found for end in range(1, len(path) + 1)})
    )


def within(span: KeyRange, found: Iterable[Path]) -> set[Path]:
    """Which of these paths have their sort keys in a span."""
    return {path for path in found if span.lo.encode() <= sort_key(path).encode() < span.hi.encode()}


def attempt(make: Callable[[Any], Path], given: object) -> tuple[Path | None, str]:
    """The path, or none and the reason; any other error than BadPath comes out."""
    try:
        return make(given), ""
    except BadPath as error:
        return None, str(error)


# -- segments and keys -------------------------------------------------------------------------------------------------


@given(any_text)
def test_encoding_loses_nothing_of_any_segment(text: str) -> None:
    encoded = encode_segment(text)
    assert decode_segment(encoded) == text
    assert not set(encoded) & set('#$!"') or not text
    assert all(c > "%" or c == "%" for c in encoded)


@given(paths)
def test_a_path_comes_back_from_its_key(path: Path) -> None:
    key = node_key("location", path)
    assert path_of(key.pk, key.sk) == path
    assert hierarchy_of(key.pk) == "location"
    assert depth_of(key.sk) == len(path) - 1
    assert decode_segment(last_segment(key.pk, key.sk)) == path[-1]
    assert key.pk == tree_key("location", path)


@given(paths.filter(lambda path: len(path) > 1))
def test_a_parents_key_is_the_key_of_the_path_without_its_end(path: Path) -> None:
    key, parent = node_key("h", path), node_key("h", path[:-1])
    assert parent_sort_key(key.sk) == parent.sk
    assert parent_partition(key.pk, key.sk) == parent.pk + parent.sk


def test_keys_are_those_that_the_design_shows() -> None:
    assert node_key("location", ("US",)) == ("location#US", "#")
    assert node_key("location", ("US", "NE", "Omaha")) == ("location#US", "#NE#Omaha#")
    assert node_key("drive", ("a#1", "St. Louis", "50%")) == ("drive#a%231", "#St.%20Louis#50%25#")
    assert parent_partition("location#US", "#NE#Omaha#") == "location#US#NE#"
    assert first_rank("CITY", "Omaha") == "CITY#Omaha#"
    assert level_partition("location#US", "CITY", 2) == "location#US@CITY@2"
    assert id_key("location:5074472") == ("id#location:5074472", "v0")
    assert revision_key("location:5074472", 3) == ("id#location:5074472", "v0000000003")
    assert tree_version_key("location#US") == ("location#US", "!")
    assert log_key("location#US", 17) == ("location#US", "!000000000017")


# -- order -------------------------------------------------------------------------------------------------------------


@given(trees())
def test_key_order_is_tree_order_depth_first_and_siblings_by_code_points(tree: list[Path]) -> None:
    by_key = sorted(tree, key=lambda path: sort_key(path).encode())
    depth_first = sorted(tree)  # tuples of texts: a prefix first, then by the first segment that differs
    assert by_key == depth_first


@given(paths)
def test_the_keys_of_nodes_are_apart_from_those_of_the_version_and_the_log(path: Path) -> None:
    span = subtree("h", sort_key(path))
    assert not span.lo <= "!" < span.hi
    assert not span.lo <= log_key("h", 999_999_999_999).sk < span.hi


# -- spans -------------------------------------------------------------------------------------------------------------


@given(trees(), st.data())
def test_the_range_of_a_subtree_holds_its_nodes_and_no_other(tree: list[Path], data: st.DataObject) -> None:
    root = data.draw(st.sampled_from(tree))
    inside = {path for path in tree if path[: len(root)] == root}
    assert within(subtree("h#R", sort_key(root)), tree) == inside
    assert within(below("h#R", sort_key(root)), tree) == inside - {root}


@given(trees(), st.data())
def test_after_and_before_split_a_range_at_any_key(tree: list[Path], data: st.DataObject) -> None:
    root, place = data.draw(st.sampled_from(tree)), data.draw(st.sampled_from(tree))
    span, key = subtree("h#R", sort_key(root)), sort_key(place)
    inside = within(span, tree)
    assert within(span.before(key), tree) == {path for path in inside if path < place}
    assert within(span.after(key), tree) == {path for path in inside if path > place}


@given(trees(), st.data())
def test_just_after_a_key_comes_what_follows_it(tree: list[Path], data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(tree))
    bound = just_after(sort_key(place)).encode()
    assert {path for path in tree if sort_key(path).encode() >= bound} == {path for path in tree if path > place}
    assert bound not in {sort_key(path).encode() for path in tree}


@given(trees(), st.data())
def test_a_level_range_holds_the_descendants_of_its_first_sibling_to_its_last(
    tree: list[Path], data: st.DataObject
) -> None:
    parents = sorted(path for path in tree if len(path) == 2)
    if not parents:
        return
    first, last = sorted(data.draw(st.tuples(st.sampled_from(parents), st.sampled_from(parents))))
    for depth in range(1, 5):
        nodes = [path for path in tree if len(path) == depth + 1]
        span = level_range("h#R", "CITY", depth, sort_key(first), sort_key(last)[:-1] + "$")
        assert within(span, nodes) == {path for path in nodes if len(path) >= 2 and first <= path[:2] <= last}
        assert within(level_range("h#R", "CITY", depth, sort_key(first), prefix_end(sort_key(first))), nodes) == {
            path for path in nodes if path[:2] == first
        }


@given(segments, st.sampled_from(["A", "CITY", "CITY_2", "CITYHALL", "POSTAL_CODE", "Z", "ZZ_9"]))
def test_the_range_of_children_of_a_level_holds_no_other_levels(segment: str, level: str) -> None:
    def holds(span: KeyRange, rank: str) -> bool:
        return span.lo.encode() <= rank.encode() < span.hi.encode()

    rank = first_rank(level, encode_segment(segment))
    assert holds(siblings("p"), rank)
    assert holds(children("h#R", "#"), rank)
    for other in ("A", "CITY", "CITY_2", "CITYHALL", "POSTAL_CODE", "Z", "ZZ_9"):
        assert holds(siblings("p", other), rank) == (other == level)


# -- paths as clients write them ---------------------------------------------------------------------------------------


@given(paths)
def test_a_path_is_parsed_as_it_was_written(path: Path) -> None:
    assert parse_path(format_path(path)) == path


@given(any_text)
def test_any_text_is_a_path_or_a_bad_path_and_never_another_error(text: str) -> None:
    path, refusal = attempt(parse_path, text)
    if path is None:
        assert len(refusal) < 300
        assert refusal.isprintable()
    else:
        assert parse_path(format_path(path)) == path


@given(st.lists(st.text() | st.integers() | st.none(), max_size=40))
def test_any_list_is_a_path_or_a_bad_path_and_never_another_error(parts: list[object]) -> None:
    path, refusal = attempt(checked_path, parts)
    if path is None:
        assert refusal
    else:
        assert checked_path(path) == path
        key = node_key("h", path)
        assert path_of(key.pk, key.sk) == path


def test_a_path_is_written_with_slashes_and_escapes() -> None:
    assert parse_path("US/MO/St. Louis") == ("US", "MO", "St. Louis")
    assert parse_path("a%2Fb/50%25/c%2fd") == ("a/b", "50%", "c/d")
    assert format_path(("a/b", "50%", "%2F")) == "a%2Fb/50%25/%252F"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "path is empty"), ("/US", "empty key"), ("US/", "empty key"), ("US//NE", "empty key"),
        ("50%", "lone %"), ("a%2Gb", "lone %"), ("a%20b", "lone %"), ("a\x00b", r"U\+0000"), ("a\nb", r"U\+000A"),
        ("a\x85b", r"U\+0085"), ("a\ud800", r"U\+D800"), ("/".join("a" * 33), "33 keys; at most 32"),
    ],
)  # fmt: skip
def test_an_invalid_path_is_rejected_with_the_reason(text: str, sentence: str) -> None:
    with pytest.raises(BadPath, match=sentence):
        parse_path(text)


def test_a_path_has_segments_and_they_are_texts() -> None:
    with pytest.raises(BadPath, match="empty"):
        checked_path([])
    with pytest.raises(BadPath, match="A key is 7, which is not a text"):
        checked_path(["US", 7])


def test_two_spellings_of_one_text_are_one_path() -> None:
    assert parse_path("FR/I\u0302le") == parse_path("FR/Île") == ("FR", "Île")
    assert node_key("h", parse_path("FR/\u212b")) == node_key("h", parse_path("FR/Å"))


def test_segments_are_normalised_one_by_one_so_that_none_joins_its_neighbour() -> None:
    assert parse_path("e/\u0301a") == ("e", "\u0301a")


# -- sizes: no engine is asked, not all of them would say no -----------------------------------------------------------


@pytest.mark.parametrize("character", ["a", "é", "😀", "#"])
def test_the_longest_path_fits_into_the_keys_of_all_indexes(character: str) -> None:
    """`rank` alone depends on the level, too; records check it."""
    size = len(encode_segment(character).encode())
    path = checked_path([character * (MAX_ROOT_BYTES // size), character * ((MAX_SORT_KEY_BYTES - 2) // size)])
    hierarchy = level = "n" * MAX_NAME_CHARACTERS
    key = node_key(hierarchy, path)
    assert len(key.sk.encode()) <= MAX_SORT_KEY_BYTES
    assert len(key.pk.encode()) <= MAX_PARTITION_KEY_BYTES
    assert len((key.pk + key.sk).encode()) <= MAX_PARTITION_KEY_BYTES  # the partition of its children
    assert len(level_partition(key.pk, level, MAX_SEGMENTS).encode()) <= MAX_PARTITION_KEY_BYTES


@pytest.mark.parametrize(
    ("character", "size"), [("a", 1), ("é", 2), ("日", 3), ("😀", 4), (" ", 3), ("#", 3), ("%", 3)]
)
def test_the_limit_of_a_sort_key_is_exact_in_bytes(character: str, size: int) -> None:
    fits = (MAX_SORT_KEY_BYTES - 2) // size
    path = checked_path(["R", character * fits])
    assert MAX_SORT_KEY_BYTES - size < len(sort_key(path).encode()) <= MAX_SORT_KEY_BYTES
    with pytest.raises(
        BadPath, match=f"{2 + (fits + 1) * size} bytes below its root; at most {MAX_SORT_KEY_BYTES} fit"
    ):
        checked_path(["R", character * (fits + 1)])


def test_the_limit_of_a_sort_key_counts_all_segments_and_names_the_longest() -> None:
    with pytest.raises(BadPath, match=r'takes 1026 bytes.*Its longest key, "b+…", takes 600'):
        checked_path(["R", "a" * 423, "b" * 600])
    checked_path(["R", "a" * 421, "b" * 600])


@pytest.mark.parametrize(("character", "size"), [("a", 1), ("é", 2), ("#", 3)])
def test_the_limit_of_a_root_is_exact_in_bytes(character: str, size: int) -> None:
    fits = MAX_ROOT_BYTES // size
    checked_path([character * fits])
    with pytest.raises(BadPath, match=f"{(fits + 1) * size} bytes; at most {MAX_ROOT_BYTES} fit"):
        checked_path([character * (fits + 1)])


def test_thirty_two_segments_are_a_path() -> None:
    assert len(parse_path("/".join("a" * MAX_SEGMENTS))) == MAX_SEGMENTS


def test_a_message_quotes_no_more_than_can_be_read() -> None:
    assert shorten("a" * 100) == "a" * 60 + "…"
    assert shorten("a\x00\u2028b\ud800") == "a��b�"
    assert shorten("Omaha") == "Omaha"


# -- sets of spans, compared with sets of texts -----------------------------------------------------------------------

LETTERS = "\0#$a\ud7ff\ue000\U0010ffff"
SPAN_TEXTS = ["", *("".join(letters) for length in (1, 2, 3) for letters in product(LETTERS, repeat=length))]

span_texts = st.text(LETTERS, max_size=3)
spans = st.lists(st.tuples(span_texts, span_texts | st.none()), max_size=4)


def inside(some: list[Span] | Spans) -> set[str]:
    return {text for text in SPAN_TEXTS if any(lo <= text and (hi is None or text < hi) for lo, hi in some)}


def check(found: Spans, wanted: set[str]) -> None:
    assert inside(found) == {text for text in SPAN_TEXTS if contains(found, text)} == wanted
    assert all(hi is None or lo < hi for lo, hi in found)
    assert all(hi is not None and hi < lo for (_, hi), (lo, _) in pairwise(found))


@given(spans, spans)
def test_sets_of_spans_are_sets_of_texts(one, other):
    first, second = union(*[(span,) for span in one]), union(*[(span,) for span in other])
    check(first, inside(one))
    check(union(first, second), inside(one) | inside(other))
    check(intersection(first, second), inside(one) & inside(other))
    check(complement(first), {*SPAN_TEXTS} - inside(one))
    assert complement(complement(first)) == first


def test_of_nothing_the_union_is_empty_and_the_intersection_is_everything():
    assert union() == ()
    assert intersection() == EVERYTHING
    assert complement(EVERYTHING) == ()


@given(spans, span_texts, span_texts)
def test_a_clipped_set_has_what_is_between_two_texts(some, lo, hi):
    whole = union(*[(span,) for span in some])
    check(clipped(whole, lo, hi), {text for text in inside(whole) if lo <= text < hi})


@given(span_texts)
def test_the_span_of_a_prefix_has_all_texts_that_begin_with_it(prefix):
    check((prefix_span(prefix),), {text for text in SPAN_TEXTS if text.startswith(prefix)})


@pytest.mark.parametrize(("key", "way"), [("Oma  ha", 'key "Oma  ha" .* write "Oma ha"'), (" ", "one that is seen")])
def test_a_key_that_could_look_like_another_is_refused_with_a_way_out(key: str, way: str) -> None:
    with pytest.raises(BadPath, match=way):
        check_new_key(key)
