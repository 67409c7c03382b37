"""Spans: what union, complement, intersection and clipping leave, compared with sets of texts."""

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from store.model.ranges import (
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

LETTERS = "\0#$a\ud7ff\ue000\U0010ffff"
TEXTS = ["", *("".join(letters) for length in (1, 2, 3) for letters in product(LETTERS, repeat=length))]

texts = st.text(LETTERS, max_size=3)
spans = st.lists(st.tuples(texts, texts | st.none()), max_size=4)


def inside(some: list[Span] | Spans) -> set[str]:
    return {text for text in TEXTS if any(lo <= text and (hi is None or text < hi) for lo, hi in some)}


def check(found: Spans, wanted: set[str]) -> None:
    assert inside(found) == {text for text in TEXTS if contains(found, text)} == wanted
    assert all(hi is None or lo < hi for lo, hi in found)
    assert all(hi is not None and hi < lo for (_, hi), (lo, _) in pairwise(found))


@given(spans, spans)
def test_sets_of_spans_are_sets_of_texts(one, other):
    first, second = union(*[(span,) for span in one]), union(*[(span,) for span in other])
    check(first, inside(one))
    check(union(first, second), inside(one) | inside(other))
    check(intersection(first, second), inside(one) & inside(other))
    check(complement(first), {*TEXTS} - inside(one))
    assert complement(complement(first)) == first


def test_of_nothing_the_union_is_empty_and_the_intersection_is_everything():
    assert union() == ()
    assert intersection() == EVERYTHING
    assert complement(EVERYTHING) == ()


@given(spans, texts, texts)
def test_a_clipped_set_has_what_is_between_two_texts(some, lo, hi):
    whole = union(*[(span,) for span in some])
    check(clipped(whole, lo, hi), {text for text in inside(whole) if lo <= text < hi})


@given(texts)
def test_the_span_of_a_prefix_has_all_texts_that_begin_with_it(prefix):
    check((prefix_span(prefix),), {text for text in TEXTS if text.startswith(prefix)})
