"""Options of attributes and computed fields in a class: each that does not fit is refused with its line."""

import pycountry
import pytest

from graph.hierarchies.attribute import MAX_PATTERN_CHARACTERS, matcher
from graph.hierarchies.registry import served
from graph.schema import build_schema
from store.errors import BadInput
from store.model.values import CURRENCIES

HEAD = '''
from dataclasses import dataclass
from clade import Date, Decimal, Localized, Money, Node, Url, attribute, computed

@dataclass
class Inner:
    """An inner value."""
    text: str | None = attribute("Text.")

@dataclass
class Bare:
    text: str | None = attribute("Text.")

@dataclass
class Endless:
    """A value in itself."""
    inner: "list[Endless] | None" = attribute("Inner.")

@dataclass
class Searched:
    """A value with words."""
    text: str | None = attribute("Text.", search=True)

@dataclass
class Method:
    """A value with a method."""
    text: str | None = attribute("Text.")
    def run(self): ...

@dataclass
class Inputs:
    """A value whose input is another's."""
    text: str | None = attribute("Text.")

class Ware(Node, hierarchy="ware"):
    """A ware."""

class Item(Ware, under=None):
    """An item."""
'''
WRONG = [
    ('x: str | None = attribute("X.", minimum=1)', "has minimum= or maximum=; only numbers, dates"),
    ('x: int | None = attribute("X.", minimum=1.5)', "has an invalid minimum: x: 1.5 is not a whole number"),
    ('x: int | None = attribute("X.", minimum=2, maximum=1)', "has a minimum above its maximum; swap them"),
    ('x: Date | None = attribute("X.", maximum="soon")', 'has an invalid maximum: x: "soon" is not a date'),
    ('x: int | None = attribute("X.", max_length=3)', "has max_length= and is not a text; only texts have a length"),
    ('x: int | None = attribute("X.", pattern="1")', "has pattern= and is not a text; only str and Url"),
    ('x: str | None = attribute("X.", pattern="(a)\\\\1")', "in linear time: backreferences are not supported"),
    ('x: str | None = attribute("X.", pattern="(?=a)a")', "in linear time: look-around"),
    ('x: str | None = attribute("X.", pattern="a)|(b")', "in linear time: unopened group"),
    ('x: str | None = attribute("X.", pattern="a" * 501)', "has a pattern that has 501 characters; at most 500"),
    ('x: str | None = attribute("X.", pattern="a", default="b")', 'has an invalid default: x: "b"'),
    ('x: int | None = attribute("X.", default="x")', 'has an invalid default: x: "x" is not a whole number'),
    ('x: str | None = attribute("X.", max_length=0)', "has max_length=0; write a number of characters"),
    ('x: str | None = attribute("X.", was="x")', "has was='x'; write the former name of the attribute"),
    ('x: str | None = attribute("X.", was="a b")', "has was='a b'; write the former name"),
    ('x: str | None = attribute("X.", tags=["a b"])', "has the tag 'a b'; a tag has letters"),
    ('x: str | None = attribute("X.", was="y")\n    y: int | None = attribute("Y.")', "Item.y has a meaning besides"),
    ('x: str | None = attribute("X.", was="kids")', 'Item.kids has a meaning besides was="kids" of x'),
    ('x: list[Localized] | None = attribute("X.")', "has a type that attributes cannot have"),
    ('x: Bare | None = attribute("X.")', "Bare has no docstring"),
    ('x: Endless | None = attribute("X.")', "Endless contains a value of its own type"),
    ('x: Searched | None = attribute("X.")', "Searched.text has search=, was= or unique=, which a part of a"),
    ('x: float | None = attribute("X.", unique=True)', "has unique= and a type of which values are not unique; only"),
    ('x: list[str] | None = attribute("X.", unique=True)', "has unique= and a type of which values are not unique"),
    ('x: str | None = attribute("X.", unique="tree")', "has unique='tree'; write unique=True or unique=\"disclosed\""),
    ('x: str | None = attribute("X.", unique=True, default="a")', "has unique= and a default, which only one node"),
    ("\n    ".join(f'x{n}: str | None = attribute("X.", unique=True)' for n in range(5)), "Item has 5 attributes with"),
    ('x: str | None = attribute("X.", unique=True)\n'
     'class Other(Ware, under=None):\n    "A level."\n    x: int | None = attribute("X.", unique=True)',
     "Other.x shares its values with Item; give both the same type and unique="),
    ('x: str | None = attribute("X.", unique=True)\n'
     'class Other(Ware, under=None):\n    "A level."\n    x: str | None = attribute("X.", unique="disclosed")',
     "Other.x shares its values with Item; give both the same type and unique="),
    ('x: Method | None = attribute("X.")', "Method.run is a method or a resolver"),
    ('inner: Inner | None = attribute("X.")\n    inputs: Inputs | None = attribute("X.")\n'
     "class InnerInput(Ware, under=None):\n    'A level.'", "InnerInput"),
    ('x: int | None = attribute("X.")\n    @computed("X")\n    def x(self) -> int | None: ...', "Item.x"),
    ('@computed("X")\n    def children(self) -> int | None: ...', "which every node has already; rename the attribute"),
    ('@computed("X")\n    def x(self): ...', "Item.x has no return type; write def x(self) -> … | None"),
    ('@computed("X")\n    def x(self) -> int: ...', "Item.x is not optional"),
    ('@computed("X")\n    async def x(self) -> int | None: ...', "Item.x must be a method with self alone"),
    ('@computed("X")\n    def x(self, n) -> int | None: ...', "Item.x must be a method with self alone"),
    ('@computed("")\n    def x(self) -> int | None: ...', 'Item.x has no description; write @computed("…")'),
    ("@computed\n    def x(self) -> int | None: ...", 'and methods with @computed("…")'),
    ('@computed("X")\n    def x(self) -> Localized | None: ...', "Item.x returns Localized"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "sentence"), WRONG)
def test_an_option_that_does_not_fit_is_refused_in_one_sentence_with_its_line(tmp_path, body, sentence):
    file = tmp_path / "ware.py"
    file.write_text(f"{HEAD}    {body}\n")
    with pytest.raises(BadInput) as refused:
        build_schema(served(str(file)))
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(f"{file}:")
    assert "\n" not in str(refused.value)


PLACE = """
from clade import Decimal, Node, attribute

class Place(Node, hierarchy="place", location="north,east"):
    'A place.'
    north: Decimal | None = attribute("North.", minimum="-60.5")

class Site(Place, under=None):
    'A site.'
    east: int | None = attribute("East.", %s)
"""


@pytest.mark.parametrize(("own", "bounds"), [("minimum=0, maximum=360", (0, 360)), ("maximum=60", (-180, 60))])
def test_coordinates_have_their_own_bounds_within_those_of_the_earth(tmp_path, own, bounds):
    (file := tmp_path / "place.py").write_text(PLACE % own)
    (place,) = served(str(file))
    north, east = (place.definition().levels["SITE"].attributes[name].rules for name in ("north", "east"))
    assert (north.minimum, north.maximum, (east.minimum, east.maximum)) == ("-60.5", "90", bounds)
    (file := tmp_path / "far.py").write_text(PLACE % "maximum=500")
    with pytest.raises(
        BadInput, match=r"Site.east has a maximum of 500 and is a longitude; write one from -360 to 360"
    ):
        served(str(file))


def test_a_pattern_matches_the_whole_text_also_one_of_the_longest_size():
    matches = matcher("a|b.")
    assert [matches(text) for text in ("a", "b!", "ab", "xa", "a\n", "")] == [True, True, False, False, False, False]
    assert matcher("a" * MAX_PATTERN_CHARACTERS)("a" * MAX_PATTERN_CHARACTERS)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+b", "(.*a){20}b", "(a?){400}a{60}b", "(x+x+)+y"])
def test_a_pattern_without_end_for_engines_that_backtrack_is_matched(pattern):
    assert not matcher(pattern)("a" * 16_384)


def test_currencies_are_those_of_iso_4217():
    assert {one.alpha_3 for one in pycountry.currencies} <= CURRENCIES
