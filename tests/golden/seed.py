"""Seed of the golden data: imports, mutations and API keys that leave items of every kind in a table.

Its clock stands in 2061, so that nothing in it ever expires, and its random numbers are the same each time.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from store.api_keys import add_key, new_key, revoke_key
from store.connect import opened
from tests.golden.asking import Client, asking, command
from tests.golden.promises import CLASSES
from tests.user_errors import take_user_errors, with_user_errors

START = 2_871_763_200.0  # 2061-01-01 in UTC
STEP_SECONDS = 61.0
SHORT = {"request_seconds": 0.2, "settle_seconds": 0.0}
"""Settings with which a large move is soon done; the engine's indexes are never late."""
KEYS = {
    "editor": ["write:place", "write:thing", "write:note"],
    "reader": ["read:place/DE", "read:place/XX/none", "read:thing/Store/Inner"],
    "former": ["write:place"],
}
"""The grants of API keys by their names; the one of the former editor is revoked."""

LETTERS = ["Łódź", "Αθήνα", "Київ", "東京", "서울", "القاهرة", "תל אביב", "मुंबई", "กรุงเทพ", "Þórshöfn", "İzmir", "🏝 Île"]
LONG = "The longest text. " * 910  # of 16,380 characters, nearly as many as an attribute may have
DEEP = "/".join(["Deep", *(f"d{depth}" for depth in range(2, 33))])

Row = dict[str, Any]


def place_rows() -> list[Row]:
    """Lands, towns in all scripts, and shops."""
    lands: list[Row] = [
        {
            "path": "DE",
            "level": "LAND",
            "name": "Germany",
            "names": {"de": "Deutschland", "fr": "Allemagne"},
            "id": "de",
        },
        {"path": "FR", "level": "LAND", "name": "France", "names": {"de": "Frankreich", "zh-Hant": "法國"}},
        {"path": "XX", "level": "LAND", "name": "Nowhere", "people": 0},
    ]
    lands[0] |= {
        "people": 83_000_000,
        "latitude": 51.0,
        "longitude": 10.0,
        "motto": {"de": "Einigkeit", "la": "Unitas"},
    }
    towns: list[Row] = [
        {"path": "DE/Köln", "level": "TOWN", "people": 1_073_096, "latitude": 50.9375, "longitude": 6.9603}
        | {"mayor": "Henriette R.", "names": {"en": "Cologne", "fr": "Cologne", "it": "Colonia"}},
        {"path": "DE/Köln/Ehrenfeld", "level": "TOWN", "id": "ehrenfeld", "people": 37_000}
        | {"latitude": 50.95, "longitude": 6.91},
        {"path": "DE/Bonn", "level": "TOWN", "people": 336_465, "latitude": 50.7374, "longitude": 7.0982},
        {"path": "FR/Paris", "level": "TOWN", "people": 2_102_650, "latitude": 48.8566, "longitude": 2.3522},
        {"path": "XX/%2F%25#x", "level": "TOWN", "name": "#1/2 %"},
        {"path": "XX/date line", "level": "TOWN", "latitude": -0.5, "longitude": 180.0},
        {"path": "XX/north pole", "level": "TOWN", "latitude": 90.0, "longitude": -180.0},
        *({"path": f"XX/{name}", "level": "TOWN", "names": {"en": f"Town {number}"}, "latitude": number / 7,
           "longitude": -number / 3, "people": number} for number, name in enumerate(LETTERS)),
    ]  # fmt: skip
    shops: list[Row] = [
        {"path": f"{town}/{number}", "level": "SHOP", "name": f"Shop {number}", "owner": owner, "grade": grade}
        | {"opened": f"20{number:02}-02-28", "latitude": 50.9 + number / 100, "longitude": 6.9}
        for number, (town, owner, grade) in enumerate(
            [("DE/Köln", "Ana Müller", "FIRST"), ("DE/Köln/Ehrenfeld", "Çelik", None), ("DE", "Ana", "THIRD")] * 2
        )
    ]
    return lands + towns + shops


def thing_rows() -> list[Row]:
    """Boxes, a chain of 32 of them, and samples with all attributes at their extremes."""
    label = {"text": "T", "lines": ["a", "", "ß"], "number": -1, "serial": 2**63 - 1, "weight": 0.1, "price": "0.10"}
    label |= {"printed": False, "since": "0001-01-01", "checked": "9999-12-31T23:59:59.999999Z", "grade": "THIRD"}
    label |= {"page": "https://example.com/?q=%20#x", "fee": {"amount": "-0.01", "currency": "JPY"}}
    label |= {"size": {"width": "99.5", "unit": "km"}, "sizes": [{"width": "0"}, {"width": "1.50", "unit": "cm"}]}
    least: Row = {"text": "\u0001 \"'\\\n\t", "number": -(2**31), "serial": -(2**63), "weight": -9.99e125}
    least |= {"price": f"-{'9' * 38}", "printed": False, "since": "0001-01-01", "checked": "0001-01-01T00:00:00Z"}
    least |= {
        "fee": {"amount": "-99999999999.999", "currency": "KWD"},
        "size": {"width": "0"},
        "texts": [],
        "labels": [],
    }
    most: Row = {"text": LONG, "number": 2**31 - 1, "serial": 2**63 - 1, "weight": 9.99e125, "price": f"0.{'9' * 37}"}
    most |= {"printed": True, "since": "9999-12-31", "checked": "2024-02-29T12:00:00.5+05:45", "grade": "FIRST"}
    most |= {"page": f"http://[::1]:65535/{'p' * 200}", "fee": {"amount": "12.50", "currency": "EUR"}, "label": label}
    most |= {"size": {"width": "1.50"}, "words": {"de": "Wörter", "ar": "كلمات", "zh-Hans": "词"}}
    most |= {
        "texts": ["", "b", "a", "b", "\U0001f600" * 20],
        "numbers": [2**31 - 1, 0, -(2**31)],
        "flags": [True, False],
    }
    most |= {
        "serials": [2**53 + 1, -(2**63)],
        "weights": [0.0, 1e-130, -1.5, 0.1 + 0.2],
        "prices": ["1", "1.0", "-0.00"],
    }
    most |= {"days": ["2024-02-29"], "times": ["1969-12-31T23:59:59Z"], "pages": ["https://xn--bcher-kva.example/"]}
    most |= {"fees": [{"amount": "0", "currency": "XAU"}], "grades": ["THIRD", "FIRST"], "labels": [label, {}]}
    chain = DEEP.split("/")
    return [
        {"path": "Store", "level": "BOX", "label": label},
        {"path": "Store/Inner", "level": "BOX"},
        {"path": "Store/Inner/least", "level": "SAMPLE", "name": "Least"} | least,
        {"path": "Store/Inner/most", "level": "SAMPLE", "name": "Most", "names": {"de": "Äußerstes"}} | most,
        {"path": "Store/Inner/none", "level": "SAMPLE", "name": "None"},
        *({"path": f"Store/{letter}", "level": "SAMPLE", "number": place % 3, "text": name, "weight": place / 8}
          for place, (letter, name) in enumerate(zip("ihgfedcba", LETTERS, strict=False))),
        *({"path": "/".join(chain[:depth]), "level": "BOX"} for depth in range(1, len(chain) + 1)),
    ]  # fmt: skip


def note_rows() -> list[Row]:
    """Pages, enough below one that moving it is a large move."""
    return [
        *({"path": path, "level": "PAGE"} for path in ("A", "B", "A/1", "A/1/x", "A/2", "A/3", "A/4", "A/4/y", "B/7")),
        *({"path": f"A/3/{number:02}", "level": "PAGE", "name": f"Page {number}"} for number in range(40)),
    ]


FORMER: list[Row] = [
    {"path": "DE", "level": "LAND", "id": "de"},
    {"path": "DE/Bonn am Rhein", "level": "CITY", "name": "Bonn", "souls": 12, "head": "Ann", "gone": True},
]
"""Rows that are written with the former classes, so that their values have the former names."""
CHANGED = [
    {"path": "DE/Bonn", "level": "TOWN", "people": 336_466, "mayor": "Katja D.", "names": {"la": "Bonna"}},
    {"path": "XX", "level": "LAND", "people": None, "motto": {"la": "Nihil"}},
]
"""Rows of a second import, which changes nodes."""
MOVED = [
    {"path": "DE/Nord", "level": "TOWN", "name": "Nord"},
    {"path": "DE/Nord/Ehrenfeld", "level": "TOWN", "id": "ehrenfeld"},
]
"""Rows of an import with --moves."""


async def write_more(client: Client) -> None:
    """Mutations of every kind, by a caller with a key."""

    async def make(document: str) -> None:
        clock.step()
        reply = await client.ask(with_user_errors(document), key="editor")
        assert "errors" not in reply, (document, reply)
        assert take_user_errors(reply["data"]) == [], document

    async def edit(kind: str, path: str | None = None, **given: Any) -> None:
        node = {"node": at(path)} if path else {}
        await make(mutation(kind, **node, **given))

    def below(path: str) -> dict[str, Any]:
        return {"parent": at(path)}

    await make(ONCE)
    await edit(
        "createPlace", **below("FR"), key="Lyon", name="Lyon", id="place:lyon", attributes={"town": {"people": 5}}
    )
    for people in (6, 7, None):
        await edit("updatePlace", "FR/Lyon", attributes={"town": {"people": people}})
    await edit("updatePlace", "FR/Lyon", names=[{"language": "en", "text": "Lyons"}], name="Lugdunum")
    await edit("movePlace", "FR/Lyon", key="Lugdunum")
    await edit("movePlace", "FR/Lugdunum", key="Lyon")
    await edit("movePlace", "FR/Paris", to=below("XX"))
    await edit("movePlace", "XX/Київ", position={"first": True})
    await edit("movePlace", "XX/東京", position={"after": at("XX/서울")})
    await edit("movePlace", "FR", position={"first": True})
    await edit("deletePlace", "XX/Αθήνα")
    await edit("moveGoldenThing", "Store/a", to=below("Deep"))
    await edit("deleteGoldenThing", "Store/b")
    await edit("createPlace", **below("FR"), key="Nice", name="Nice", id="nice", attributes={"town": {"mayor": "Z"}})
    await edit("deletePlace", "FR/Nice")
    await edit("createPlace", **below("FR"), key="Nizza", name="Nizza", id="nice", attributes={"town": {}})
    await edit("createGoldenThing", **below("Store"), key="b", name="Another", attributes={"sample": {"number": 9}})
    await edit("deleteNote", "A/1", policy=Word("CASCADE"))
    await edit("deleteNote", "A/4", policy=Word("REPARENT"))
    await edit("moveNote", "A/2", to={"root": True})
    await edit("moveNote", "A/3", to=below("B"))


def at(path: str) -> dict[str, str]:
    return {"path": path}


def mutation(kind: str, once: str | None = None, **given: Any) -> str:
    """The document of a mutation."""
    key = "" if once is None else f", idempotencyKey: {literal(once)}"
    return f"mutation {{ {kind}(input: {literal(given)}{key}) {{ node {{ id }} }} }}"


class Word(str):
    """A value of an enum."""


def literal(value: object) -> str:
    """A value as GraphQL writes it."""
    match value:
        case Word():
            return value
        case dict():
            return f"{{{', '.join(f'{name}: {literal(one)}' for name, one in value.items())}}}"
        case list():
            return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False)


ONCE = mutation("createNote", "golden-1", key="Once", name="Once", level=Word("PAGE"))
"""A mutation that is made once, however often it is sent."""


# -- steps -------------------------------------------------------------------------------------------------------------


class Clock:
    """The time of the seed in seconds since 1970, and its random numbers, which are the same at the same time."""

    def __init__(self) -> None:
        self.now = START
        self._numbers = random.Random(START)  # noqa: S311  # nothing here is secret

    def step(self) -> None:
        self.now += STEP_SECONDS
        self._numbers.seed(self.now)

    def random_bytes(self, count: int) -> bytes:
        return self._numbers.randbytes(count)


clock = Clock()


def seed(url: str) -> dict[str, str]:
    """Fill the empty table at a URL; returns the texts of the API keys by their names."""
    with unvarying(), TemporaryDirectory() as folder:
        commands = Commands(url, Path(folder))
        commands.run("table", "create")
        commands.load("place", FORMER, classes="tests.golden.former")
        commands.run("repair", "place")  # since other attributes are searched now
        for hierarchy, rows in (("place", place_rows()), ("thing", thing_rows()), ("note", note_rows())):
            commands.load(hierarchy, rows)
        commands.load("place", CHANGED)
        commands.load("place", MOVED, "--moves")
        commands.load("thing", [{"path": "Deep", "level": "BOX"}, {"path": "Deep/gone", "level": "BOX"}])
        commands.load("thing", [row for row in thing_rows() if row["path"].startswith("Deep")], "--prune")
        keys = asyncio.run(make_keys(url))
        asyncio.run(mutate(url, keys))
        assert ", no findings." in commands.run("check")
    return keys


async def make_keys(url: str) -> dict[str, str]:
    """Add the API keys; returns their texts by their names."""
    texts = {}
    async with opened(url) as store:
        for name, grants in KEYS.items():
            clock.step()
            key, texts[name] = new_key(name, grants, None)
            await add_key(store, key)
            if name == "former":
                await revoke_key(store, key.id)
    return texts


async def mutate(url: str, keys: dict[str, str]) -> None:
    async with asking(url, keys, writes="granted", **SHORT) as client:
        await write_more(client)
        while any(move["endedAt"] is None for move in await moves(client)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # only asking tells


async def moves(client: Client) -> list[dict[str, Any]]:
    """The moves of the notes."""
    reply = await client.ask("{ moves(hierarchy: NOTE) { endedAt } }", key="editor")
    found: list[dict[str, Any]] = reply["data"]["moves"]
    assert found
    return found


class Commands:
    """The command line for a store, whose clock goes on with each command."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder

    def run(self, *words: str, classes: str = CLASSES) -> str:
        clock.step()
        return command(self._url, *words, classes=classes, **SHORT)

    def load(self, hierarchy: str, rows: Sequence[Row], *options: str, classes: str = CLASSES) -> None:
        """Import rows, tree by tree: the trees of one import are written in any order."""
        file = self._folder / "rows.jsonl"
        for tree in dict.fromkeys(row["path"].partition("/")[0] for row in rows):
            own = (row for row in rows if row["path"].partition("/")[0] == tree)
            file.write_text("".join(f"{json.dumps(row)}\n" for row in own), "utf-8")
            self.run("import", hierarchy, str(file), "--yes", *options, classes=classes)


@contextmanager
def unvarying() -> Iterator[None]:
    """The clock and the random numbers of the seed, until the block ends."""
    with (
        patch.object(time, "time", lambda: clock.now),
        patch.object(os, "urandom", clock.random_bytes),
        patch.object(random, "_urandom", clock.random_bytes),
    ):
        yield
