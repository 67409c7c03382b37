"""Data that documents are made for: the built-in hierarchies, and the hierarchy of extremes, each with a past."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.outside.fuzzer.damage import Damage
from tests.outside.processes import EXTREMES, HERE, Place, Server, command

Row = dict[str, Any]
DEEP = 31
_NUMBERS = itertools.count(1)  # of files
DAY, MOMENT = "2024-02-29", "2026-01-02T03:04:05Z"


def _row(path: str, level: str, name: str | None = None, **more: Any) -> Row:
    return {"path": path, "level": level, **({"name": name} if name is not None else {}), **more}


def locations() -> list[Row]:
    """Places with skipped levels, equal names, names in other languages, and roots without children."""
    return [
        _row("US", "COUNTRY", "United States", names={"de": "Vereinigte Staaten", "fr": "États-Unis"},
             population=331_000_000, iso3="USA", latitude=39.8, longitude=-98.6),
        _row("US/NE", "STATE", "Nebraska", names={"uk": "Небраска"}, population=1_900_000),
        _row("US/NE/Omaha", "CITY", "Omaha", population=486_051, latitude=41.2587, longitude=-95.9379,
             timezone="America/Chicago"),
        _row("US/NE/Lincoln", "CITY", "Lincoln", population=291_082, latitude=40.8, longitude=-96.667),
        _row("US/NE/Fremont", "CITY", "Fremont", population=27_141),
        _row("US/NE/Omaha/68118", "POSTAL_CODE"),
        _row("US/NE/Omaha/68118/1", "STORE", "St Andrews", street="100 St Andrews lane", square_feet=921,
             brand="Nordlys"),
        _row("US/NE/Omaha/68118/2", "STORE", "Harney", street="1209 Harney St", square_feet=1340, latitude=41.26,
             longitude=-95.93),
        _row("US/NE/Omaha/68102", "POSTAL_CODE"),
        _row("US/NY", "STATE", "New York", population=19_000_000),
        _row("US/NY/New York City", "CITY", "New York City", names={"de": "New York", "pt-BR": "Nova Iorque"},
             population=8_300_000),
        _row("US/NY/New York City/SW1A 1AA", "POSTAL_CODE", "Old Quarter"),
        _row("DE", "COUNTRY", "Germany", names={"de": "Deutschland", "fr": "Allemagne", "el": "Γερμανία"},
             population=84_000_000),
        _row("DE/BY", "STATE", "Bavaria", names={"de": "Bayern"}, population=13_000_000),
        _row("DE/BY/Munich", "CITY", "Munich", names={"de": "München", "fr": "Munich"}, population=1_500_000,
             latitude=48.137, longitude=11.575),
        _row("DE/Berlin", "CITY", "Berlin", population=3_700_000, latitude=52.52, longitude=13.405),
        _row("SG", "COUNTRY", "Singapore", population=5_900_000, latitude=1.3, longitude=103.8),
        _row("SG/Singapore", "CITY", "Singapore", population=5_900_000),
        _row("FR", "COUNTRY", "France", names={"de": "Frankreich"}, population=68_000_000),
        _row("IS", "COUNTRY", "Iceland"),
        _row("NO", "COUNTRY", "norway", names={"de": "Norwegen", "fr": "Norvège"}),
    ]  # fmt: skip


def categories() -> list[Row]:
    """Categories of several depths, products with prices of many digits, and variants."""
    return [
        _row("Electronics", "CATEGORY"),
        _row("Electronics/Televisions", "CATEGORY", names={"de": "Fernseher"}),
        _row("Electronics/Televisions/OLED", "CATEGORY"),
        _row("Electronics/Televisions/OLED/TV-NORDLYS-48", "PRODUCT", "Nordlys 48-inch OLED", brand="Nordlys",
             price="949.00"),
        _row("Electronics/Televisions/OLED/TV-NORDLYS-48/Black", "VARIANT", color="black", stock=6),
        _row("Electronics/Televisions/OLED/TV-NORDLYS-48/White", "VARIANT", color="White", stock=0, price="899.00"),
        _row("Electronics/Televisions/Projectors", "CATEGORY"),
        _row("Electronics/Televisions/Projectors/HALO", "PRODUCT", "Halo Mini Projector", brand="Halo", price="329.00"),
        _row("Electronics/Audio", "CATEGORY"),
        _row("Electronics/LAPTOP", "PRODUCT", "Laptop", brand="élan", price="1299.00"),
        _row("Electronics/LAPTOP/Silver", "VARIANT", color="silver", stock=25),
        _row("Books", "CATEGORY"),
        _row("Books/Novel", "PRODUCT", "A novel", price="9.5"),
        _row("Arts", "CATEGORY", "Arts & Crafts"),
    ]  # fmt: skip


FULL: Row = {
    "text": "Élan, vital", "required_flag": False, "small": -(2**31), "large": 2**63 - 1, "ratio": 1e100,
    "exact": "12345678901234567890123456789012345678", "day": DAY, "moment": MOMENT,
    "site": "https://example.com/a?b=c",
    "state": "OPEN", "size": "LARGE", "price": {"amount": "12.50", "currency": "EUR"},
    "parcel": {"code": "P1", "size": "SMALL", "corner": {"x": "0.5", "y": -(2**63)}, "days": [DAY, "1999-12-31"],
               "price": {"amount": "0.01", "currency": "JPY"}},
    "greeting": {"de": "Hallo", "en": "Hello", "zh-Hant": "你好"}, "latitude": 90.0, "longitude": 180.0,
    "texts": ["a", "", "é;ü", "\"quoted\""], "flags": [True, False], "smalls": [0, 2**31 - 1],
    "larges": [2**53 + 1, -(2**63)],
    "ratios": [0.1, 5e-100, -1e100], "exacts": ["0.1", "-99999999999999999999999999999999999999"], "days": [DAY],
    "moments": [MOMENT], "sites": ["http://example.org/"], "states": ["CLOSED", "null_", "WAITING"],
    "prices": [{"amount": "1.00", "currency": "USD"}], "parcels": [{"code": "Q", "size": "LARGE"}, {"code": "R"}],
}  # fmt: skip


def things() -> list[Row]:
    """Boxes with values at their bounds, keys that have to be escaped, and a chain as deep as a path may be."""
    rows = [
        _row("B", "BOX", "Box of everything", names={"de": "Kiste", "en-GB": "Crate"}, note="first note", **FULL),
        _row("B/a", "BOX", "Élan", state="CLOSED", small=1, large=2**53 + 1, ratio=0.5, exact="0.10", day="1970-01-01"),
        _row("B/b", "BOX", "elan", state="WAITING", size="SMALL", small=2, large=2**53, exact="0.1",
             moment="1970-01-01T00:00:00Z"),
        _row("B/c", "BOX", "ELAN B", state="null_", small=2, large=-(2**63), ratio=-0.5, texts=[], flags=[]),
        _row("B/a b", "BOX", "Zebra"),
        _row("B/a%2Fb", "BOX", "slash"),
        _row("B/100%25", "BOX", "percent", note="per cent"),
        _row("B/#!", "CARD", "hash", title="Hash", grade=0),
        _row("B/\"q\"", "CARD", "quotes \"'<>&\\", title="T\\", grade=9),
        _row("B/日本", "CARD", "日本語", title="日本"),
        _row("B/😀", "CARD", "Smile 😀", title="😀", grade=5, note="emoji"),
        _row("B/ﬀ", "CARD", "ligature", title="ligature"),
        _row("B/c/1", "CARD", "one", title="one", grade=1, names={"de": "eins"}),
        _row("B/c/10", "CARD", "ten", title="ten", grade=1),
        _row("B/c/2", "CARD", "two", title="Two", grade=2),
        _row("B/c/Z", "BOX", "Inner", parcel={"code": "in"}, parcels=[]),
        _row("B/c/Z/z", "CARD", "z", title="z"),
        _row("Card", "CARD", "A card by itself", title="alone", grade=3),
        _row("Bare", "BOX", "bare"),
        _row("aare", "BOX", "lower", state="OPEN", states=["OPEN"]),
        _row("D", "BOX", "deep 1"),
    ]  # fmt: skip
    path = "D"
    for number in range(2, DEEP + 1):
        path = f"{path}/d"
        rows.append(_row(path, "BOX", f"deep {number}", small=number))
    rows.append(_row(f"{path}/e", "CARD", "deepest", title="deepest"))
    return rows


FAILING = HERE / "classes" / "failing.py"
RAISES, WRONG_TYPE = "INTERNAL_SERVER_ERROR", "BAD_DATA"


@dataclass(frozen=True)
class Fails:
    """The outcome of a computed field: an error with this code."""

    code: str


def parts() -> list[Row]:
    """Parts of which some have a computed field that fails, alone, beside others and in rows."""
    price = {"amount": "2.50", "currency": "EUR"}
    return [
        _row("M", "UNIT", "Mill", note="a mill", size=0, tags=["big"], names={"de": "Mühle"}),
        _row("M/a", "UNIT", "Axle", note="an axle", size=1, tags=["x", "y"], price=price, kind="MADE"),
        _row("M/a/1", "SCREW", "one", note="first", length="1.5", names={"de": "eins", "fr": "un"}),
        _row("M/a/2", "SCREW", "two", length="0.5"),
        _row("M/a/x", "SCREW", "ex", note="x"),
        _row("M/b", "UNIT", "Belt", size=2, tags=["soft"]),
        _row("M/b/c", "UNIT", "Clasp", note="clasp", size=3, kind="BOUGHT"),
        _row("M/b/c/x1", "SCREW", "ex one"),
        _row("M/b/d", "UNIT", "Disc", size=5, tags=[]),
        _row("M/c", "UNIT", "Crank", note="crank", price=price, size=3, names={"de": "Kurbel"}),
        _row("M/c/s", "SCREW", "screw", note="s", length="12"),
        _row("M/x", "SCREW", "x of the mill", note="x"),
        _row("N", "UNIT", "Nail box", size=4, note="nails"),
        _row("N/a", "UNIT", "full", size=4, note="full", tags=["a"], names={"de": "voll"}),
        _row("N/a/1", "SCREW", "n one", note="1", length="3"),
        _row("N/a/2", "SCREW", "n two", note="2", length="4"),
        _row("N/b", "UNIT", "empty", size=2),
        _row("O", "SCREW", "lone", note="lone"),
        _row("P", "UNIT", "Pin box", size=1, note="pins"),
        _row("P/a", "SCREW", "pin a", note="a"),
        _row("P/b", "SCREW", "pin b", note="b", length="1"),
        _row("x", "SCREW", "lone x"),
    ]  # fmt: skip


def computed_parts(row: Row) -> Row:
    """What the computed fields of classes/failing.py have for a row, by the names of their fields."""
    size, note = row.get("size"), row.get("note")
    found: Row = {"noteLength": Fails(RAISES) if note is None else len(note)}
    if row["level"] == "SCREW":
        key = row["path"].rpartition("/")[2]
        return {**found, "share": Fails(RAISES) if key.startswith("x") else key}
    return {
        **found,
        "share": 1 / size if size else Fails(RAISES),
        "odd": Fails(WRONG_TYPE) if size == 3 else size,
        "labels": Fails(WRONG_TYPE) if size == 2 else row.get("tags"),
    }


@dataclass(frozen=True)
class DataSet:
    """Hierarchies that one server serves: their rows, the mutations after the import, and what these led to."""

    name: str
    hierarchies: str
    rows: dict[str, list[Row]]
    past: str
    redirects: dict[str, str]
    reordered: tuple[str, ...]  # first among the siblings of their level
    changed: dict[str, Row]
    computed: Callable[[Row], Row] | None = None
    damage: Damage = field(default_factory=dict)

    def now(self, hierarchy: str) -> list[Row]:
        """The rows of its nodes after the past."""
        moved = [{**row, "path": self.redirects.get(row["path"], row["path"])} for row in self.rows[hierarchy]]
        return [{**row, **self.changed.get(row["path"], {})} for row in moved]

    def load(self, place: Place, store: str) -> None:
        for hierarchy, rows in self.rows.items():
            file = place.folder / f"{hierarchy}-{next(_NUMBERS)}.jsonl"
            file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
            command("import", hierarchy, str(file), store=store, hierarchies=self.hierarchies)

    def make_past(self, server: Server) -> str:
        """Make revisions, redirects, an order and a deleted node; returns the id of that."""
        return str(server.ask(self.past).data["gone"]["node"]["id"])


def extremes() -> DataSet:
    past = """
    mutation {
      a: updateThing(input: {node: {path: "B"}, name: "Box of everything, again", attributes: {box: {state:
        CLOSED, size: SMALL}}}) { __typename }
      b: updateThing(input: {node: {path: "B"}, attributes: {box: {state: null_, texts: null, note:
        "second note"}}}) { __typename }
      c: updateThing(input: {node: {path: "B/c/1"}, name: "uno", names: [{language: "fr", text: "un"}]}) {
        __typename }
      moveThing(input: {node: {path: "B/c/2"}, position: {first: true}}) { __typename }
      gone: createThing(input: {key: "gone", name: "gone", attributes: {box: {state: OPEN}}}) { node { id } }
      deleteThing(input: {node: {path: "gone"}}) { __typename }
    }
    """
    box = {"name": "Box of everything, again", "state": "null_", "size": "SMALL", "texts": None, "note": "second note"}
    changed = {"B": box, "B/c/1": {"name": "uno", "names": {"de": "eins", "fr": "un"}}}
    return DataSet("extremes", str(EXTREMES), {"thing": things()}, past, {}, ("B/c/2",), changed)


def builtin() -> DataSet:
    past = """
    mutation {
      updateLocation(input: {node: {path: "US/NE/Omaha"}, attributes: {city: {population: 486052}}}) {
        __typename }
      a: updateLocation(input: {node: {path: "US/NE/Omaha"}, attributes: {city: {timezone: null}}}) {
        __typename }
      moveLocation(input: {node: {path: "US/NE/Fremont"}, key: "Fremont City"}) { __typename }
      moveCategoryNode(input: {node: {path: "Electronics/LAPTOP"}, to: {parent: {path: "Electronics/Audio"}}})
        { __typename }
      c: moveLocation(input: {node: {path: "US/NE/Omaha"}, position: {first: true}}) { __typename }
      updateCategoryNode(input: {node: {path: "Books"}, names: [{language: "de", text: "Bücher"}]}) {
        __typename }
      gone: createLocation(input: {key: "gone", name: "gone", attributes: {country: {iso3: "GON"}}}) { node {
        id } }
      deleteLocation(input: {node: {path: "gone"}}) { __typename }
    }
    """
    redirects = {
        "US/NE/Fremont": "US/NE/Fremont City",
        "Electronics/LAPTOP": "Electronics/Audio/LAPTOP",
        "Electronics/LAPTOP/Silver": "Electronics/Audio/LAPTOP/Silver",
    }
    rows = {"location": locations(), "category": categories()}
    served = "graph.hierarchies.locations,graph.hierarchies.categories"
    changed = {"US/NE/Omaha": {"population": 486_052, "timezone": None}, "Books": {"names": {"de": "Bücher"}}}
    return DataSet("builtin", served, rows, past, redirects, ("US/NE/Omaha",), changed)


def failing() -> DataSet:
    """Computed fields that fail."""
    past = """
    mutation {
      updatePart(input: {node: {path: "M/a"}, attributes: {unit: {size: 0}}}) { __typename }
      a: updatePart(input: {node: {path: "M/a"}, name: "Axle two", attributes: {unit: {size: 3}}}) { __typename }
      b: updatePart(input: {node: {path: "M/c/s"}, attributes: {screw: {note: null}}}) { __typename }
      movePart(input: {node: {path: "M/b/d"}, key: "x d"}) { __typename }
      gone: createPart(input: {key: "gone", name: "gone", attributes: {unit: {size: 2}}}) { node { id } }
      c: updatePart(input: {node: {path: "gone"}, attributes: {unit: {size: 0, note: "n"}}}) { __typename }
      deletePart(input: {node: {path: "gone"}}) { __typename }
    }
    """
    changed = {"M/a": {"name": "Axle two", "size": 3}, "M/c/s": {"note": None}}
    return DataSet("failing", str(FAILING), {"part": parts()}, past, {"M/b/d": "M/b/x d"}, (), changed, computed_parts)


def damaged() -> DataSet:
    """Nodes whose items another tool has changed, so that the node or one of its fields cannot be read.

    Of P/a there is no record any more, so a list for which its item is read fails: it is among the nodes of a tree of
    its own, since it follows from other lists and from the cache which read a list is taken from.
    """
    damage: Damage = {
        "M/a": ("size", "large"),
        "M/a/1": ("names", {"de": 5}),
        "M/a/x": ("note", 7),
        "M/b/c": ("kind", "stolen"),
        "M/b/c/x1": ("length", "long"),
        "M/c": ("price", "cheap"),
        "N/a/1": ("names", "none"),
        "N/a/2": ("level", "NOTHING"),
        "N/b": ("tags", {"no": "list"}),
        "O": ("note", ["a", "b"]),
        "P/a": ("name", None),
    }
    return replace(failing(), name="damaged", damage=damage)


SETS = (extremes, builtin, failing, damaged)
