"""Hierarchies by module and by file: any name, once per process; and what their attributes may be."""

import sys

import pytest
from strawberry.utils.str_converters import to_camel_case

from graph.hierarchies.registry import served
from graph.operation.selection import core_schema
from graph.schema import build_schema
from store.errors import BadInput

SHOP = '''
from enum import Enum

from clade import Node, attribute

{more}
class Size(Enum):
    SMALL = 1


class Shop(Node, hierarchy="{name}", prefix="{prefix}"):
    """A shop."""


class Aisle(Shop, under=None):
    """An aisle."""

    size: Size | None = attribute("How large it is.")
'''


def shop(name="shop", more="", prefix=""):
    return SHOP.format(name=name, more=more, prefix=prefix)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_is_named_relative_to_the_working_directory_or_absolute_beside_modules(folder):
    (folder / "shops").mkdir()
    (folder / "shops" / "my-store.py").write_text(shop())
    names = [cls.name for cls in served("graph.hierarchies.locations, shops/my-store.py")]
    assert names == ["location", "shop"]
    (relative,), (absolute,) = served("shops/my-store.py"), served(str(folder / "shops" / "my-store.py"))
    assert relative is absolute  # loaded once


def test_a_file_collides_with_no_module_and_no_file_of_its_name(folder):
    (folder / "json.py").write_text(shop())
    before = sys.modules["json"]
    (cls,) = served("json.py")
    assert cls.__module__ != "json"
    assert sys.modules["json"] is before
    (folder / "other").mkdir()
    (folder / "other" / "json.py").write_text(shop("other", prefix="O").replace("Size", "OtherSize"))
    assert [cls.name for cls in served("json.py,other/json.py")] == ["shop", "other"]


def test_a_file_may_import_its_neighbours_and_leaves_the_module_path_as_it_was(folder):
    (folder / "a").mkdir()
    (folder / "a" / "shop_words.py").write_text("NAME = 'shop'\n")
    (folder / "a" / "shops.py").write_text(shop(more="from shop_words import NAME"))
    path = list(sys.path)
    assert [cls.name for cls in served("a/shops.py")] == ["shop"]
    assert sys.path == path


def test_a_file_that_failed_is_loaded_again_when_it_is_corrected(folder):
    (folder / "store.py").write_text(shop() + "1 / 0\n")
    with pytest.raises(BadInput, match=r"^store\.py:19: ZeroDivisionError: division by zero; correct this line\.$"):
        served("store.py")
    (folder / "store.py").write_text(shop("corrected"))
    assert [cls.name for cls in served("store.py")] == ["corrected"]


def test_a_mistake_in_an_imported_file_is_reported_with_its_line(folder):
    (folder / "shop_levels.py").write_text("\nfrom clade import Nothing\n")
    (folder / "shops.py").write_text(shop(more="import shop_levels"))
    with pytest.raises(BadInput, match=r"^shop_levels\.py:2: ImportError: cannot import name 'Nothing'"):
        served("shops.py")


# -- types of attributes -----------------------------------------------------------------------------------------------

TEXT = '''
import datetime
import decimal
from enum import IntEnum
from typing import Optional

from clade import Date, DateTime, Decimal, Long, Node, attribute


class Size(IntEnum):
    SMALL = 1


class Ware(Node, hierarchy="ware"):
    """A ware."""


class Item(Ware, under=None):
    """An item."""

'''
TYPES = {
    "big: Long | None": "Long", "ratio: Optional[float]": "Float", 'is_new: "bool | None"': "Boolean",
    "size: Size | None": "Size", "price: Decimal | None": "Decimal", "cost: decimal.Decimal | None": "Decimal",
    "day: Date | None": "Date", "birth: datetime.date | None": "Date",
    "moment: DateTime | None": "DateTime", "time: datetime.datetime | None": "DateTime",
    "days: list[datetime.date] | None": "[Date!]", "prices: Optional[list[decimal.Decimal]]": "[Decimal!]",
}  # fmt: skip


def test_every_type_of_an_attribute_is_its_scalar_and_pythons_own_types_are_the_same(tmp_path):
    declared = "".join(f"    {written} = attribute('{number}')\n" for number, written in enumerate(TYPES))
    (tmp_path / "ware.py").write_text(TEXT + declared)
    (cls,) = served(str(tmp_path / "ware.py"))
    kinds = core_schema(build_schema([cls])[0]).type_map
    for name in ("Item", "ItemAttributes", "WareRevision"):
        fields = {field: str(one.type) for field, one in kinds[name].fields.items()}
        found = [fields[to_camel_case(written.partition(":")[0])] for written in TYPES]
        assert found == [*TYPES.values()]
    attributes = cls.definition().levels["ITEM"].attributes
    assert attributes["days"].parse("2026-11-01; 2026-11-02") == ["2026-11-01", "2026-11-02"]
