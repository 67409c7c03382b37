"""Types of attributes: what a class may write, and which scalar that is."""

from graph.hierarchies.registry import served
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema

TEXT = '''
import datetime
import decimal
from enum import Enum, IntEnum
from typing import Optional

from clade import Date, DateTime, Decimal, Long, Node, attribute


class Size(IntEnum):
    SMALL = 1


class Ware(Node, hierarchy="ware"):
    """A ware."""


class Item(Ware, under=None):
    """An item."""

    name_of_maker: str | None = attribute("a")
    count: int | None = attribute("b")
    big: Long | None = attribute("c")
    ratio: Optional[float] = attribute("d")
    is_new: "bool | None" = attribute("e")
    size: Size | None = attribute("f")
    price: Decimal | None = attribute("g")
    price2: decimal.Decimal | None = attribute("h")
    day: Date | None = attribute("i")
    day2: datetime.date | None = attribute("j")
    moment: DateTime | None = attribute("k")
    moment2: datetime.datetime | None = attribute("l")
    days: list[datetime.date] | None = attribute("m")
    prices: Optional[list[decimal.Decimal]] = attribute("n")
'''
TYPES = {
    "nameOfMaker": "String",
    "count": "Int",
    "big": "Long",
    "ratio": "Float",
    "isNew": "Boolean",
    "size": "Size",
    "price": "Decimal",
    "price2": "Decimal",
    "day": "Date",
    "day2": "Date",
    "moment": "DateTime",
    "moment2": "DateTime",
    "days": "[Date!]",
    "prices": "[Decimal!]",
}


def test_every_type_of_an_attribute_is_its_scalar_and_pythons_own_types_are_the_same(tmp_path):
    (tmp_path / "ware.py").write_text(TEXT)
    kinds = core_schema(build_schema(served(str(tmp_path / "ware.py")))[0]).type_map
    for name in ("Item", "ItemAttributes", "ItemRevision"):
        fields = kinds[name].fields
        assert {field: str(fields[field].type) for field in TYPES} == TYPES


def test_a_value_of_pythons_own_types_is_read_and_checked_as_that_of_the_scalar(tmp_path):
    (tmp_path / "ware.py").write_text(TEXT)
    (cls,) = served(str(tmp_path / "ware.py"))
    attributes = cls.definition().levels["ITEM"].attributes
    for name in ("price", "day", "moment"):
        assert attributes[name].kind is attributes[f"{name}2"].kind
    assert attributes["days"].parse("2026-11-01; 2026-11-02") == ["2026-11-01", "2026-11-02"]
