"""Redirects: by which moves subtrees have left a former key, and where each of them led.

One redirect serves every path below the former key. A move is told by the key that it led to, and by its place in the
log of the tree that it left and of the tree that it came to. So a former path is followed move by move in their order
(`resolvers/lookup.py`), whatever nodes came to its keys before or after.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple, cast

from msgspec import Meta, Struct

from store.model.attributes import Value
from store.model.items import Item, Partition, SortKey, decoded
from store.model.keys import Key, ancestor_keys

_Place = Annotated[str, Meta(pattern=r"^\d{12}(\.\d{4})?$")]

_PREFIX = "alias#"
MAX_KEPT = 16  # moves away from one key, the last ones, so that an item stays small


class _Redirect(Struct):
    moves: list[tuple[_Place, _Place, str, Partition, SortKey]]


class Departure(NamedTuple):
    """A move of a subtree away from a key.

    `left` and `arrived` are its places in the logs of the trees that it left and came to (`log_place`). Each of its
    nodes has got these `tokens`, mostly one.
    """

    left: str
    arrived: str
    tokens: str
    target: Key


def log_place(number: int, step: int = 0) -> str:
    """The place of a move in a log: the number of its log item, and of a later edit of a batch its step.

    Their order as texts is that of time.
    """
    return f"{number:012d}.{step:04d}" if step else f"{number:012d}"


def placed_in(place: str) -> int:
    """The number of the log item of a place."""
    return int(place.partition(".")[0])


def redirect_key(former: Key) -> Key:
    """The key of the redirect from a former key."""
    return Key(_PREFIX + former.pk, former.sk)


def is_redirect(key: Key) -> bool:
    """Whether a key is that of a redirect."""
    return key.pk.startswith(_PREFIX)


def redirect_item(key: Key, moves: Sequence[Departure]) -> Item:
    """The redirect at `redirect_key` with these moves, in their order; the oldest of too many are forgotten."""
    kept = [[one.left, one.arrived, one.tokens, *one.target] for one in moves[-MAX_KEPT:]]
    return {"pk": key.pk, "sk": key.sk, "moves": cast(Value, kept)}


def departures(item: Item | None) -> list[Departure]:
    """The moves in a redirect, in their order; raises BadData where it is damaged."""
    moves = [] if item is None else decoded(item, _Redirect).moves
    return [Departure(left, arrived, tokens, Key(pk, sk)) for left, arrived, tokens, pk, sk in moves]


def with_places(item: Item, place: Callable[[str, str], str]) -> Item:
    """A redirect with each place in the log of a tree replaced by what `place` returns for the tree and the place."""
    key = Key(cast(str, item["pk"]), cast(str, item["sk"]))
    tree = key.pk.removeprefix(_PREFIX)
    moves = [
        one._replace(left=place(tree, one.left), arrived=place(one.target.pk, one.arrived)) for one in departures(item)
    ]
    return redirect_item(key, moves)


def path_keys(key: Key) -> list[Key]:
    """A key and those of its ancestors, the longest first: those that a redirect for it may start from."""
    return [key, *ancestor_keys(key)[::-1]]
