"""Values of arguments: valid by their kind, often taken from the data, sometimes extreme or about nothing."""

import random
from collections.abc import Callable
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    get_named_type,
    get_nullable_type,
)

from tests.outside.fuzzer.snapshot import Snapshot

TAGS = ("de", "fr", "en", "de-AT", "en-GB", "zh-Hant", "pt-BR", "uk", "el", "fr-CA", "zh-Hant-TW", "xx")
WORDS = (
    "Élan",
    "elan",
    "",
    "a",
    "Z",
    "b",
    "New",
    "o",
    "日",
    "😀",
    "per cent",
    "SW1A 1AA",
    "oma",
    "a" * 100,
    "%",
    "_",
    "\\",
    "'",
)
KEYS = ("A", "B", "M", "N", "O", "a", "b", "c", "z", "1", "2", "Omaha", "~", "日", "", "%")
LAST = ("KEY", "PATH", "POSITION")
MAX_CONDITIONS = 50  # "at most 50 conditions" (lists.md)
INTEGERS = (0, 1, 2, 3, 5, -1, 2**31 - 1, -(2**31), 486_052)
LONGS = (0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), -(2**53) - 1)
FLOATS = (0.0, 0.5, -0.5, 1, 41.2587, 1e100, -1e100, 5e-100, 90)
DECIMALS = ("0", "0.1", "0.10", "9.5", "949.00", "-1", "12345678901234567890123456789012345678", "0.00000000001")
DATES = ("2024-02-29", "1970-01-01", "1999-12-31", "0001-01-01", "9999-12-31")
TIMES = ("2026-01-02T03:04:05Z", "1970-01-01T00:00:00Z", "2026-01-02T03:04:05.123Z", "2020-01-01T00:00:00+02:00")


BAD_PATHS = (
    "", "/", "a//b", "US/none", "a" * 9000, "x/" * 40, "%zz", "B/a/", "\u0301", "..", "#", "US\x00", "a\tb", "B/\u202e",
)  # fmt: skip
BAD_IDS = ("", "none", "location:none", "thing:", "x" * 5000, "a\x00")


class Name(str):
    """A name in a document without quotes: a member of an enum."""


class Values:
    """Values for one snapshot."""

    def __init__(self, random_: random.Random, snapshot: Snapshot, cursors: list[str]) -> None:
        self.random, self.snapshot, self.cursors = random_, snapshot, cursors
        self.ids = [node["id"] for node in snapshot.nodes]
        self._by_name: dict[str, Callable[[], Any]] = {
            "first": self._size, "last": self._size, "after": self._cursor, "before": self._cursor,
            "text": self._words, "n": lambda: self.random.choice((1, 1, 2, 3, 0, -1, 2**31 - 1)),
            "maxDepth": lambda: self.random.choice((1, 1, 2, 3, 32, 0)),
            "latitude": lambda: self.random.choice((41.2587, 52.52, 48, 90, -90, 0, 91)),
            "longitude": lambda: self.random.choice((-95.9379, 13.405, 11.5, 180, -180, 360, 361)),
            "kilometers": lambda: self.random.choice((1, 50, 600.5, 2000, 0, 2001)),
            "path": self._path, "under": self._path, "tree": self._tree,
            "paths": lambda: self._some(self._path), "ids": lambda: self._some(self._id), "id": self._id,
            "deletedNode": self._deleted, "languages": self._languages,
            "representations": lambda: self._some(self._representation),
        }  # fmt: skip

    def of(self, name: str, kind: Any, path: tuple[str, ...] = ()) -> Any:
        """A value of an argument or an input field; never null."""
        if not path and name in self._by_name:
            return self._by_name[name]()
        kind = get_nullable_type(kind)
        if path[-2:-1] in (("near",), ("search",)) and name in self._by_name:
            return self._by_name[name]()
        if name == "languages":
            return self._languages() if isinstance(kind, GraphQLList) else self.random.choice(TAGS)
        if isinstance(kind, GraphQLList):
            if self._rare(0.15):  # GraphQL takes one value for a list of it
                return self.of(name, kind.of_type, path)
            if get_named_type(kind).name.endswith("OrderBy"):
                return self._orders(kind.of_type)
            many = self.random.choice((0, 1, 1, 2, 3))
            return [self.of(name, kind.of_type, (*path, "[]")) for _ in range(many)]
        if isinstance(kind, GraphQLEnumType):
            return Name(self.random.choice(list(kind.values)))
        if isinstance(kind, GraphQLInputObjectType):
            while conditions_in(found := self._object(kind, path)) > MAX_CONDITIONS:
                pass
            return found
        return self._scalar(kind.name, path)

    def _object(self, kind: GraphQLInputObjectType, path: tuple[str, ...]) -> dict[str, Any]:
        needed = [name for name, field in kind.fields.items() if isinstance(field.type, GraphQLNonNull)]
        others = [name for name in kind.fields if name not in needed]
        if kind.name.endswith("OrderBy"):
            return self._order(kind)
        if len(path) > 4:
            others = [name for name in others if name not in ("and", "or", "not", "children")]
        if "children" in path and not self._rare():
            others = [name for name in others if name != "children"]
        some = self.random.sample(others, min(len(others), self.random.choice((1, 1, 1, 2, 3))))
        return {name: self.of(name, kind.fields[name].type, (*path, name)) for name in (*needed, *some)}

    def _order(self, kind: GraphQLInputObjectType) -> dict[str, Any]:
        found = {name: self.of(name, kind.fields[name].type, (name,)) for name in ("field", "direction")}
        if found["field"] in ("DISTANCE", "RELEVANCE") and not self._rare(0.3):
            found["field"] = Name("NAME")
        if self._rare(0.4 if found["field"] == "NAME" else 0.03):
            found["languages"] = self._languages()
        return found

    def _orders(self, kind: Any) -> list[dict[str, Any]]:
        """Mostly with what has to be the last at the end."""
        inner = get_named_type(kind)
        assert isinstance(inner, GraphQLInputObjectType)
        orders = [self._order(inner) for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
        if not self._rare(0.1):
            last = [order for order in orders if order["field"] in LAST]
            orders = [order for order in orders if order["field"] not in LAST] + last[:1]
        return orders

    def _scalar(self, name: str, path: tuple[str, ...]) -> Any:
        if "key" in path and self.random.random() < 0.4:
            return self.random.choice((*KEYS, self.random.choice(self.snapshot.nodes)["key"][:2]))
        known = [value for value in self._stored(path) if _fits(name, value)]
        if known and self.random.random() < 0.7:
            return self.random.choice(known)
        pools: dict[str, tuple[Any, ...]] = {
            "Int": INTEGERS, "Float": FLOATS, "Long": LONGS, "Decimal": DECIMALS, "Date": DATES, "DateTime": TIMES,
            "Boolean": (True, False), "String": WORDS, "Url": ("https://example.com/a?b=c",),
        }  # fmt: skip
        if name == "Path":
            return self._path()
        if name == "ID":
            return self._id()
        if name == "_Any":
            return self._representation()
        return self.random.choice(pools[name])

    def _stored(self, path: tuple[str, ...]) -> list[Any]:
        """Values that nodes have for the field that a condition is about."""
        names = [name for name in path if name not in ("[]", "and", "or", "not", "children", "some", "none")]
        if not names:
            return []
        found = []
        for node in self.snapshot.nodes:
            value = node.get(names[0])
            found += value if isinstance(value, list) else [value]
        return found

    def wrong(self, name: str, kind: Any, path: tuple[str, ...] = ()) -> Any:
        """A value of the right type that is mostly an error, or finds nothing."""
        inner = get_named_type(kind)
        found = self._wrong(name, inner, path)
        return [found] if isinstance(get_nullable_type(kind), GraphQLList) and not isinstance(found, list) else found

    def _wrong(self, name: str, kind: Any, path: tuple[str, ...]) -> Any:
        if isinstance(kind, GraphQLEnumType):
            return Name("NOTHING") if self._rare(0.1) else Name(self.random.choice(list(kind.values)))
        if kind.name.endswith("OrderBy"):
            return [self._order(kind), self._order(kind), {"field": Name("PATH")}, {"field": Name("KEY")}]
        if isinstance(kind, GraphQLInputObjectType):
            one = self.random.choice(list(kind.fields))
            return self.random.choice(({one: None}, {"not": {one: None}}, {"and": []}, {}, {"and": [{"or": [{}]}]}))
        if name in ("languages", "level"):
            return self.random.choice((["not a tag"], ["de"] * 21, []))
        if name in ("after", "before"):
            return self._bad_cursor()
        if kind.name == "Path":
            return self.random.choice(BAD_PATHS)
        if kind.name == "ID":
            return self.random.choice(BAD_IDS)
        return {
            "Int": -1, "Float": 1e300, "Boolean": self.random.choice((True, "x")), "String": "", "_Any": {},
        }.get(kind.name) or self._scalar(kind.name, path)  # fmt: skip

    def _bad_cursor(self) -> str:
        """No cursor, or one that was changed."""
        known = self.random.choice(self.cursors) if self.cursors else "aHR0JrFWOjM"
        return self.random.choice(("nonsense", "", "%%%", "aaaa", known[:-1], known + "A", known[::-1]))

    def _some(self, one: Callable[[], Any]) -> list[Any]:
        return [one() for _ in range(self.random.choice((0, 1, 2, 3, 5, 8)))]

    def _size(self) -> int:
        return self.random.choice(
            (1, 1, 2, 2, 3, 3, 5, 10, 100, 0, 10_000, *((-1, 2**31 - 1) if self._rare(0.1) else ()))
        )

    def _rare(self, share: float = 0.05) -> bool:
        return self.random.random() < share

    def _cursor(self) -> str:
        return self._bad_cursor() if self._rare(0.15) or not self.cursors else self.random.choice(self.cursors)

    def _languages(self) -> list[str]:
        tags = self.random.sample(TAGS, self.random.choice((0, 1, 1, 2, 3)))
        return ["not a tag"] if self._rare(0.03) else ["de"] * 21 if self._rare(0.02) else tags

    def _words(self) -> str:
        node = self.random.choice(self.snapshot.nodes)
        words = (
            node["name"],
            node["key"],
            node["name"][:2],
            node["key"][:3],
            *(name["text"] for name in node["names"]),
        )
        return str(self.random.choice((*words, *words, *WORDS)))

    def _path(self) -> str:
        if self._rare():
            return self.random.choice(BAD_PATHS)
        if self._rare() and self.snapshot.data.redirects:
            return self.random.choice(list(self.snapshot.data.redirects))
        return str(self.random.choice(self.snapshot.nodes)["path"])

    def lookup(self, name: str, kind: str) -> Any:
        """A path or an id, mostly of a node of this type."""
        fitting = [node for node in self.snapshot.nodes if node["__typename"] == kind]
        if not fitting or self._rare(0.2):
            return self._by_name[name]()
        return self.random.choice(fitting)[name]

    def _tree(self) -> str:
        return self._path().split("/")[0] if self.random.random() < 0.9 else self._path()

    def _id(self) -> str:
        if self._rare(0.08):
            return self.random.choice((*BAD_IDS, self.snapshot.deleted))
        return str(self.random.choice(self.ids))

    def _deleted(self) -> str:
        return self.snapshot.deleted if self.random.random() < 0.8 else self._id()

    def _representation(self) -> dict[str, Any]:
        node = self.random.choice(self.snapshot.nodes)
        hierarchy = next(one for one in self.snapshot.hierarchies if node in one["nodes"])
        kinds = [node["__typename"], hierarchy["interface"]]
        if self._rare(0.1):
            return self.random.choice((
                {"__typename": "Nothing", "id": node["id"]}, {"__typename": kinds[0]}, {"id": node["id"]}, {},
                {"__typename": "Box", "path": node["path"]}, {"__typename": "City", "id": 7, "path": None},
                {"__typename": kinds[0], "path": "a//b"}, {"__typename": "PageInfo", "id": node["id"]},
            ))  # fmt: skip
        key = self.random.choice(("id", "path"))
        return {
            "__typename": self.random.choice(kinds),
            key: node[key],
            **({"more": [1, {"x": None}]} if self._rare() else {}),
        }


def conditions_in(value: Any) -> int:
    """The number of conditions of a `where`: "each operator of a field is one, and each empty object or list;
    near and search count as five".
    """
    if isinstance(value, list):
        return sum(map(conditions_in, value)) or 1
    if not isinstance(value, dict):
        return 0
    joined = [conditions_in(inner) for name, inner in value.items() if name in ("and", "or", "not")]
    joined += [5 for name in value if name in ("near", "search")]
    others = [inner for name, inner in value.items() if name not in ("and", "or", "not", "near", "search")]
    return sum(joined) + sum(len(inner) if isinstance(inner, dict) else 1 for inner in others) or 1


def _fits(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name == "Boolean"
    if isinstance(value, int):
        return name == "Long" or name == "Float" or (name == "Int" and abs(value) < 2**31)
    if isinstance(value, float):
        return name == "Float"
    if name == "Decimal":
        return isinstance(value, str) and value.replace(".", "").replace("-", "").isdigit()
    if name in ("Date", "DateTime"):
        return (
            isinstance(value, str) and len(value) >= 10 and value[4:5] == "-" and ("T" in value) == (name == "DateTime")
        )
    return name == "String" and isinstance(value, str)
