"""Values of arguments: ordinary ones, and those at the limits or past them, by argument."""

from base64 import urlsafe_b64encode
from random import Random
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLNamedType,
    get_named_type,
    get_nullable_type,
    is_list_type,
    print_ast,
)
from graphql.utilities import value_to_literal

from bench.cost.nodes import COUNTRIES, DEEP, DELETED_ID, LARGE, OLD, SCRATCH, WIDE, id_of
from bench.cost.operation import Value
from resolvers.planning.cursors import CursorKind, encode_cursor

EXTREME = 0.3  # of all values
MAX_NESTED = 7  # conditions in each other; more than are taken

PATHS = [
    WIDE, LARGE, OLD, DEEP, "C000", "C001", f"{WIDE}/S0000", f"{WIDE}/S0000/T0", "C000/S/A", "C000/S", f"{LARGE}/L00",
    f"{LARGE}/L15", f"{OLD}/revised", f"{OLD}/moved0/below", f"{OLD}/moved7", "/".join([DEEP, *["c0"] * 31]),
    f"{DEEP}/c1/c1", "nowhere", "C000/nowhere/at/all",
]  # fmt: skip
SCRATCH_PATHS = [f"{SCRATCH}/N{number}" for number in range(20)]
ALTERNATING = "\u0301\u0323"  # above and below: each pair has to be put in order


def long_texts() -> list[str]:
    """Texts that are expensive for their length; a body of 256 KiB holds one or two."""
    return [
        ALTERNATING * 29_000, "a" + "\u0301" * 58_000, "a/" * 20_000, "!" * 40_000, "%2F" * 20_000, "%" * 40_000,
        "x" * 100_000, "/".join(["a"] * 32), "/".join(["\u0344" * 15] * 31), "\U0001d15e" * 10_000, "\uac00" * 40_000,
        "a" * 1_000, "/" * 40_000, "\x00" * 1_000, "#" * 1_000, "",
    ]  # fmt: skip


def cursors() -> list[str]:
    """Cursors of some lists, and invalid ones."""
    owners = [f"location:{id_of(*path.split('/'))}" for path in (WIDE, LARGE, "C000", "C000/S", f"{WIDE}/S0000")]
    valid = [
        encode_cursor(order, owner, "#S1")
        for owner in owners
        for order in (CursorKind.CHILDREN, CursorKind.DESCENDANTS)
    ]
    return [
        *valid, *[encode_cursor(CursorKind.ROOTS, name, "COUNTRY#C1") for name in ("location", "category")],
        encode_cursor(CursorKind.CHILDREN, owners[0], "S" * 22_000),
        encode_cursor(CursorKind.CHILDREN, owners[0], "\u0301" * 400),
        "A" * 30_000, "A" * 200_000, urlsafe_b64encode(b"c" + b"\xff" * 22_000).decode(), "!" * 40_000, "",
    ]  # fmt: skip


def ids() -> list[str]:
    made = [f"location:{id_of(*path.split('/'))}" for path in PATHS[:15] if not path.startswith(DEEP)]
    many = [f"location:{id_of(f'C{number:03}')}" for number in range(COUNTRIES)]
    return [*made, *many, DELETED_ID, "location:nothing", "x" * 30_000, "location:" + "\u0301" * 20_000, ""]


def has_list(kind: Any) -> bool:
    """Whether a type of arguments is a list, or an object with lists."""
    if is_list_type(get_nullable_type(kind)):
        return True
    named = get_named_type(kind)
    return isinstance(named, GraphQLInputObjectType) and any(
        is_list_type(get_nullable_type(one.type)) for one in named.fields.values()
    )


class Values:
    """Generator of values for arguments, from a fixed pool: equal ones are written once."""

    def __init__(self) -> None:
        self._long, self._cursors, self._ids = long_texts(), cursors(), ids()

    def of(self, name: str, argument_type: Any, random: Random) -> Value:
        """A value for the argument of this name."""
        kind = get_named_type(argument_type)
        told = str(argument_type)
        extreme = random.random() < EXTREME
        if is_list_type(getattr(argument_type, "of_type", argument_type)):
            return self._list(told, kind, random, extreme)
        return Value(told, self._one(name, kind, random, extreme))

    def filled(self, name: str, argument_type: Any, random: Random, size: int, *, literal: bool) -> Value:
        """A value whose outermost lists have so many items, as a literal or as a variable."""
        json = self._filled(name, argument_type, random, size)
        text = print_ast(value_to_literal(json, argument_type)) if literal else ""  # type: ignore[arg-type]
        return Value(str(argument_type), json, literal=text)

    def _filled(self, name: str, kind: Any, random: Random, size: int) -> Any:
        kind = get_nullable_type(kind)
        if is_list_type(kind):
            return [self._filled(name, kind.of_type, random, 1) for _ in range(size)]
        if not isinstance(kind, GraphQLInputObjectType):
            return self._one(name, kind, random, extreme=False)
        lists = {field: one for field, one in kind.fields.items() if has_list(one.type)}
        # Items are small: many of them are the point.
        fields = lists if size > 1 else {field: one for field, one in kind.fields.items() if field not in lists}
        some = random.sample(list(fields), min(2, len(fields)))
        return {field: self._filled(field, kind.fields[field].type, random, size // 2) for field in some}

    def _list(self, told: str, kind: GraphQLNamedType, random: Random, extreme: bool) -> Value:
        """Ids or representations: one several times, or several."""
        times = random.choice([190, 400, 900]) if extreme else random.choice([1, 5, 50])
        if random.random() < 0.5:
            return Value(told, self._one("", kind, random, extreme), times)
        return Value(told, [self._one("", kind, random, extreme=False) for _ in range(times)])

    def _one(self, name: str, kind: GraphQLNamedType, random: Random, extreme: bool, depth: int = 0) -> Any:
        if isinstance(kind, GraphQLEnumType):
            return "NO_SUCH_LEVEL" if extreme and random.random() < 0.2 else random.choice(list(kind.values))
        if isinstance(kind, GraphQLInputObjectType):
            return self._object(kind, random, extreme, depth)
        match kind.name:
            case "Path":
                return self._path(random, extreme)
            case "ID":
                return self._id(random, extreme)
            case "Int":
                return random.choice([0, -1, 10_000, 2**31 - 1, 100] if extreme else [1, 2, 5, 20, 100])
            case "Boolean":
                return random.random() < 0.5
            case "_Any":
                return self._representation(random, extreme)
            case "Float":
                return random.choice([0.5, -89.5, 1e6] if extreme else [1.5, 45.0])
            case "DateTime":
                return "1" if extreme else "2026-10-05T12:30:00Z"
            case "Decimal":
                return "1"
        return self._text(name, random, extreme)

    def _path(self, random: Random, extreme: bool) -> str:
        return random.choice(self._long if extreme else PATHS)

    def _id(self, random: Random, extreme: bool) -> str:
        return random.choice(self._ids[-4:] if extreme else self._ids)

    def _text(self, name: str, random: Random, extreme: bool) -> str:
        if name in ("after", "before"):
            return random.choice(self._cursors[-7:] if extreme else self._cursors)
        if name == "languages" and not extreme:
            return random.choice(["de", "de-AT", "zh-Hant"])
        if name == "hierarchy":
            return random.choice(self._long) if extreme else random.choice(["location", "category"])
        return random.choice(self._long if extreme else ["A", "S1", "S2", "T", "z", "x" * 100])

    def _representation(self, random: Random, extreme: bool) -> Any:
        name = random.choice(["City", "State", "Country", "Location", "Category", "CategoryNode", "Nothing"])
        if random.random() < 0.5:
            return {"__typename": name, "id": self._id(random, extreme)}
        return {"__typename": name, "path": self._path(random, extreme)}

    def _object(self, kind: GraphQLInputObjectType, random: Random, extreme: bool, depth: int) -> Any:
        """Attributes of one level, the input of a hierarchy with one level, or some conditions, of which a few nest."""
        fields = list(kind.fields.items())
        if kind.is_one_of:
            fields = [random.choice(fields)]
        elif kind.name.endswith("Condition"):
            fields = [one for one in fields if depth < MAX_NESTED or one[0] not in ("and", "or", "not")]
            fields = random.sample(fields, min(len(fields), random.choice([1, 2, 3])))
        elif kind.name.endswith("OrderBy") and not extreme:
            fields = [one for one in fields if one[0] != "languages"]  # which only names have
        found = {name: self._one(name, get_named_type(one.type), random, extreme, depth + 1) for name, one in fields}
        times = 1 if depth else random.choice([1, 2, 20])
        return {
            name: [found[name]] * times if is_list_type(get_nullable_type(one.type)) else found[name]
            for name, one in fields
        }
