"""Key templates: what they match, and that keys made from a path are matched as that path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.transfer.tables.templates import KeyTemplate, Match
from tests.hierarchies import CATEGORY, LOCATION

SEGMENTS = st.text(st.characters(exclude_characters="#/[]{}", exclude_categories=["Cs"]), min_size=1, max_size=8)
FOLDERS = "D#{category} / root/{category*}/[{product}]"


@pytest.mark.parametrize(
    ("template", "keys", "match"),
    [
        ("{country} / {state}#{city}", ("USA", "NE#OMAHA"), (["COUNTRY", "STATE", "CITY"], ["USA", "NE", "OMAHA"])),
        ("{country} / {state}[#{city}]", ("USA", "NE"), (["COUNTRY", "STATE"], ["USA", "NE"])),
        ("{country} / {state}#{city}", ("USA", "NE"), None),
        ("{country} / {state}#{city}", ("USA", "NE#OMAHA#68118"), None),
        ("{country} / {state}#{city}", ("USA", "NE#"), None),
        ("C#{country} / META", ("C#USA", "META"), (["COUNTRY"], ["USA"])),
        ("C#{country} / META", ("C#USA", "META2"), None),
        ("{country}|{city}", ("USA|OMAHA",), (["COUNTRY", "CITY"], ["USA", "OMAHA"])),
        ("{country}", ("USA", "x"), None),
        ("{country} / v{version}_{city}", ("USA", "v012_A_B"), (["COUNTRY", "CITY"], ["USA", "A_B"], 12)),
        ("{country} / v{version}_{city}", ("USA", "v0_A"), (["COUNTRY", "CITY"], ["USA", "A"], 0)),
        ("{country} / v{version}_{city}", ("USA", "vx_A"), None),
        ("{country} / {state}[#{county}[#{city}]]", ("A", "B#C"), (["COUNTRY", "STATE", "COUNTY"], ["A", "B", "C"])),
        (FOLDERS, ("D#a", "root/"), (["CATEGORY"], ["a"])),
        (FOLDERS, ("D#a", "root/b/c/"), (["CATEGORY"] * 3, ["a", "b", "c"])),
        (FOLDERS, ("D#a", "root/b/c/d.jpg"), (["CATEGORY"] * 3 + ["PRODUCT"], ["a", "b", "c", "d.jpg"])),
        (FOLDERS, ("D#a", "root/d.jpg"), (["CATEGORY", "PRODUCT"], ["a", "d.jpg"])),
        (FOLDERS, ("D#a", "root"), None),
        (FOLDERS, ("D#a", "root//d.jpg"), None),
    ],
)  # fmt: skip
def test_a_template_matches_whole_keys(template: str, keys: tuple[str, ...], match: tuple | None) -> None:
    hierarchy = CATEGORY if template == FOLDERS else LOCATION
    assert KeyTemplate(hierarchy, template).match(*keys) == (None if match is None else Match(*match))


@given(st.lists(SEGMENTS, min_size=1, max_size=6))
def test_levels_in_themselves_are_found_again(path: list[str]) -> None:
    found = KeyTemplate(CATEGORY, "x#{category*#}").match("x#" + "#".join(path))
    assert found == Match(["CATEGORY"] * len(path), path)


@given(SEGMENTS, SEGMENTS, st.none() | SEGMENTS)
def test_keys_of_a_path_are_matched_as_that_path(category: str, product: str, variant: str | None) -> None:
    template = KeyTemplate(CATEGORY, "CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]")
    sort_key = f"PRODUCT#{product}" + (f"#VARIANT#{variant}" if variant else "")
    expected = [category, product, *([variant] if variant else [])]
    found = template.match(f"CATEGORY#{category}", sort_key)
    assert found is not None
    assert found.path == expected
    assert found.levels == ["CATEGORY", "PRODUCT", "VARIANT"][: len(expected)]


@given(st.text(max_size=30), st.text(max_size=60))
def test_any_key_matches_or_not_and_segments_are_never_empty(partition_key: str, sort_key: str) -> None:
    for text in ("{category} / {category*}/[{product}]", "{category*#} / [P#{product}[#{variant}]]"):
        found = KeyTemplate(CATEGORY, text).match(partition_key, sort_key)
        assert found is None or all(found.path)


def test_keys_that_nearly_match_are_refused_without_trying_all_ways() -> None:
    template = KeyTemplate(CATEGORY, "{category} / {category*}/[{product}][#{variant}]")
    assert template.match("a", "a/" * 50_000 + "##") is None  # the time of quadratic attempts would be minutes
    found = template.match("a", "a/" * 50_000)
    assert found is not None
    assert len(found.path) == 50_001
