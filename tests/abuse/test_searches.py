"""Searches with unusual texts and arguments, and many of them at once: rejected or answered within the budget."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.hierarchies.locations import Location
from resolvers.session.budget import BudgetLimits
from store.connect import open_store
from store.search.folding import MAX_TEXT_CHARACTERS, fold
from tests.recorded_reads import ReadRecorder
from tests.selection import examples
from tests.systems.asking import Client, plant

QUERY = """query($text: String!, $under: Path, $languages: [String!]) {
  searchLocations(text: $text, under: $under, level: [CITY, CITY], languages: $languages) {
    complete nodes { path } } }"""
ODD = st.text(
    st.one_of(
        st.sampled_from("\u0301\u0308\u200d\u0000\u001f\uffff東京가각กรุงßİŁ#+~/%٣🏠"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=MAX_TEXT_CHARACTERS + 10,
)


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=examples(15, 60))
@given(ODD)
def test_folding_an_odd_text_is_stable(text):
    folded = fold(text)
    assert fold(folded.replace("+", " ")) == folded
    assert len(folded) <= 40 * max(1, len(text))  # NFKD makes at most 18 characters of one


@pytest.mark.parametrize(
    ("text", "under", "languages"),
    [
        ("東" * 201, None, None),
        ("a b c d e f g h i", None, None),
        ("oma", "US//NE", None), ("oma", "/" * 300, None), ("oma", None, ["de"] * 1_000), ("oma", None, ["d" * 100]),
    ],
)  # fmt: skip
async def test_unusual_arguments_are_rejected_before_anything_is_read(store, text, under, languages):
    reply = await Client(store, Location).ask(QUERY, text=text, under=under, languages=languages)
    (error,) = reply.errors
    assert error["extensions"]["code"] in ("BAD_USER_INPUT", "BAD_PATH")
    assert not any(reply.data.values())
    assert reply.requests == 0


@pytest.mark.parametrize("text", ["", " ", "\u0301" * 200, "\x00" * 10])
async def test_a_text_without_words_finds_nothing_and_reads_nothing(store, text):
    reply = await Client(store, Location).ask(QUERY, text=text, under=None, languages=None)
    (found,) = reply.data.values()
    assert (reply.errors, found["nodes"], reply.requests) == ([], [], 0)


async def test_unusual_texts_get_a_response(store):
    await plant(store, Location, [(("東" * 40,), "COUNTRY"), (("東" * 40, "x" * 200), "CITY")])
    client = Client(store, Location)
    for text in ("東" * 200, "x" * 200, "#", "a#b", "~", "ﷺ" * 10, "1" * 200, "x\u0301" * 100):
        reply = await client.ask(QUERY, text=text, under=None, languages=None)
        assert all(error["extensions"]["code"] == "BAD_USER_INPUT" for error in reply.errors), (text, reply.errors)
        assert reply.units <= 64
    found = (await client.ask(QUERY, text="x" * 100, under=None, languages=None)).data["searchLocations"]
    assert (len(found["nodes"]), found["complete"]) == (1, True)


async def test_many_searches_of_one_operation_share_its_read_units(demo_store):
    fields = [f'f{n}: searchLocations(text: "{letter}", first: 100) {{ complete nodes {{ path }} }}'
              for n, letter in enumerate("abcdefghijklmnoprstu")]  # fmt: skip
    async with open_store(demo_store) as store:
        recorder = ReadRecorder(store)
        client = Client(recorder, Location, budget=replace(BudgetLimits(), read_units=200.0))
        reply = await client.ask(f"{{ {' '.join(fields)} }}")
        assert {error["extensions"]["code"] for error in reply.errors} == {"BUDGET_EXCEEDED"}
        assert len(recorder.spans) <= 2 * len(fields) + 1  # whatever was begun before the first one ended
