"""Exports that are imported into another store: the export of that is the same, byte for byte, for all values."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from commands.main import app_of
from tests.selection import examples

LEVELS = 32
CLASSES = '''
from dataclasses import dataclass
from enum import Enum

from clade import Date, DateTime, Decimal, Localized, Long, Money, Node, Url, attribute


class Color(Enum):
    RED = "#f00"
    GREEN = 7


@dataclass
class Size:
    """A size."""

    width: float | None = attribute("Width.")
    note: str | None = attribute("Note.")


class Thing(Node, hierarchy="thing", many="things"):
    """A thing of the test."""


class Part(Thing, under=[None, "self"]):
    """A part."""

'''
KINDS = {
    "text": "str", "whole": "int", "long": "Long", "number": "float", "amount": "Decimal", "sure": "bool",
    "day": "Date", "moment": "DateTime", "site": "Url", "color": "Color", "price": "Money", "size": "Size",
}  # fmt: skip
NASTY = (
    "", " ", " a", "a ", "\ta", "a\r", "a\nb", "\r\n", "\x00", "\x1f", "\x7f", "\x85a", "\u2028", "\ufeffa", "\u00a0a",
    '"', '"a"', '""', "'a", "[", "[]", '["a"]', "{}", "null", "true", "0", "-0", "1e5", "007", "=1+1", "a;b", ";", ",",
    "a,b", '"a', "a > b", "%", "%2F", "Ünïcödé", "東京", "القاهرة", "Київ", "हिन्दी", "👩‍👩‍👧", "ﬁ", "\u202eabc", "NaN",
)  # fmt: skip
KEYS = tuple(text for text in NASTY if text and not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in text))
texts = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = texts.filter(bool)
keys = st.sampled_from(KEYS) | st.text(st.characters(exclude_categories=["Cs", "Cc", "Mn"]), min_size=1, max_size=9)
amounts = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=4).map(str)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "whole": st.sampled_from([0, -1, 2**31 - 1, -(2**31)]),
    "long": st.sampled_from([2**53 - 1, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "number": st.sampled_from([0.0, 1.0, -1.5, 0.1, 1e16, 1e22, 1e-130, 9.9e125, 2.0**53, 5e-5]),
    "amount": amounts,
    "sure": st.booleans(),
    "day": st.dates().map(str),
    "moment": st.sampled_from(["2026-11-22T00:00:00Z", "1999-12-31T23:59:59.123456Z"]),
    "site": st.sampled_from(["https://example.com/", "http://example.com/a;b,c?d=%20#e"]),
    "color": st.sampled_from(["RED", "GREEN"]),
    "price": st.sampled_from([{"amount": "1.10", "currency": "EUR"}, {"amount": "-0.5", "currency": "JOD"}]),
    "size": st.fixed_dictionaries({"width": st.sampled_from([0.5, 1.0, None]), "note": texts}),
}
attributes = st.fixed_dictionaries(
    {},
    optional={
        **VALUES,
        **{f"{name}_list": st.lists(one, max_size=3) for name, one in VALUES.items()},
        "title": st.dictionaries(st.sampled_from(["de", "zh-Hant", "ar"]), names, min_size=1),
        "names": st.dictionaries(st.sampled_from(["de", "zh-Hant", "ar"]), names, min_size=1),
    },
)
nodes = st.lists(st.tuples(keys, names, attributes), min_size=1, max_size=6, unique_by=lambda node: node[0])


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [f'    {name}: {kind} | None = attribute("One.")' for name, kind in KINDS.items()]
    lines += [f'    {name}_list: list[{kind}] | None = attribute("Many.")' for name, kind in KINDS.items()]
    file = tmp_path_factory.mktemp("classes") / "things.py"
    file.write_text(CLASSES + "\n".join([*lines, '    title: Localized | None = attribute("Title.")']))
    return file


def clade(classes: Path, store: Path, *words: object) -> None:
    environment = {"CLADE_HIERARCHIES": str(classes), "CLADE_STORE": f"sqlite:///{store}"}
    done = CliRunner().invoke(app_of(), [str(word) for word in words], env=environment)
    assert done.exit_code == 0, done.output + repr(done.exception)


def check_round_trips(classes: Path, lines: Sequence[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "first.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        clade(classes, folder / "first.db", "import", "thing", folder / "first.jsonl")
        exports = {ending: folder / f"a.{ending}" for ending in ("jsonl", "csv")}
        for file in exports.values():
            clade(classes, folder / "first.db", "export", "thing", "--output", file)
        for ending, file in exports.items():
            clade(classes, folder / f"{ending}.db", "import", "thing", file)
            for other, expected in exports.items():
                again = folder / f"{ending}-again.{other}"
                clade(classes, folder / f"{ending}.db", "export", "thing", "--output", again)
                assert again.read_bytes() == expected.read_bytes()


def test_extreme_values_are_the_same_after_an_export_and_an_import(classes: Path) -> None:
    """All nasty texts as keys, names, attributes, items of lists, and 32 levels."""
    some_keys = [*KEYS, *[f"n{number}" for number in range(len(NASTY) - len(KEYS))]]
    lines: list[dict[str, Any]] = [
        {
            "path": [key], "level": "PART", "name": text, "names": {"de": text}, "text": text,
            "text_list": [text, text], "title": {"ar": text}, "size": {"note": text},
            "size_list": [{"note": text, "width": 1.0}],
        }
        for key, text in zip(some_keys, NASTY[1:], strict=False)
    ]  # fmt: skip
    lines += [{"path": ["deep"] * depth, "level": "PART"} for depth in range(1, LEVELS + 1)]
    lines += [{"path": ["empty"], "level": "PART", "text": "", "text_list": [], "whole_list": []}]
    lines += [{"path": ["one"], "level": "PART", "text_list": [""], "long_list": [2**63 - 1], "color_list": ["RED"]}]
    check_round_trips(classes, lines)


@settings(max_examples=examples(2, 10), deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes)
def test_generated_values_are_the_same_after_an_export_and_an_import(
    classes: Path, found: list[tuple[str, str, dict[str, Any]]]
) -> None:
    check_round_trips(
        classes, [{"path": [key], "level": "PART", "name": name, **values} for key, name, values in found]
    )
