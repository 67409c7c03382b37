"""Golden files of the present version: promises, data and responses, written anew.

Run `python -m tests.golden`; it needs an engine with DynamoDB's API, as the tests do (tests/engines.py).
"""

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphql import build_schema

from store.connect import opened
from store.dynamodb.table import table_definition
from store.engine.usage import ReadUsage
from store.model.items import Put, key_of
from tests import engines
from tests.golden import promises
from tests.golden.asking import asking, command
from tests.golden.data import TABLE, dynamodb
from tests.golden.operations import operations
from tests.golden.seed import seed


def main() -> None:
    target = promises.GOLDEN / promises.version()
    with TemporaryDirectory(dir=promises.GOLDEN) as made:
        folder = Path(made) / target.name
        folder.mkdir()
        write(folder)
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    for file in sorted(target.iterdir()):
        print(f"{file.relative_to(promises.ROOT)}: {file.stat().st_size / 1000:.0f} KB")


def write(folder: Path) -> None:
    """Write all golden files into a folder."""
    schemas = promises.schemas()
    for name, sdl in schemas.items():
        (folder / f"{name}.graphql").write_text(sdl, "utf-8")
    write_json(folder / "names.json", promises.names())
    write_json(folder / "table.json", table_definition(TABLE))
    with engines.find() as engine:
        keys = seed(engine.address(TABLE))
        write_table(engine.url, folder / "table.jsonl")
        asyncio.run(write_file(engine.address(TABLE), folder / "store.db"))
    write_json(folder / "keys.json", keys)
    url = f"sqlite:///{folder / 'store.db'}"
    for name in ("place", "thing", "note"):
        (folder / f"{name}.jsonl").write_text(command(url, "export", name), "utf-8")
    write_lines(folder / "responses.json", asyncio.run(responses(url, keys, schemas["golden"])))


def write_table(endpoint: str, file: Path) -> None:
    """Write all items of the table as the engine returns them."""
    pages = dynamodb(endpoint).get_paginator("scan").paginate(TableName=TABLE)
    items = [item for page in pages for item in page["Items"]]
    items.sort(key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
    file.write_text("".join(f"{json.dumps(item, ensure_ascii=False, sort_keys=True)}\n" for item in items), "utf-8")


async def write_file(url: str, file: Path) -> None:
    """Write all items into an SQLite file, in the same order each time."""
    async with opened(url) as store, opened(f"sqlite:///{file}", make=True) as copy:
        items = [item async for page in store.scan(ReadUsage()) for item in page]
        await copy.commit([Put(in_order(item)) for item in sorted(items, key=key_of)])
    with sqlite3.connect(file) as connection:
        connection.execute("VACUUM")
    connection.close()


def in_order(value: Any) -> Any:
    """A value whose objects have their members in the order of their names: an engine returns them in any."""
    match value:
        case dict():
            return {name: in_order(value[name]) for name in sorted(value)}
        case list():
            return [in_order(one) for one in value]
    return value


async def responses(url: str, keys: dict[str, str], sdl: str) -> dict[str, Any]:
    """The operations with their responses; each document stands once."""
    documents: dict[str, int] = {}
    asked = []
    async with asking(url, keys, writes="granted") as client:
        async for one in operations(build_schema(sdl), client):
            number = documents.setdefault(one.query, len(documents))
            response = await client.ask(one.query, one.variables, one.key)
            asked.append({"document": number, "variables": one.variables, "key": one.key, "response": response})
    return {"documents": list(documents), "operations": asked}


def write_json(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


def write_lines(file: Path, value: dict[str, list[Any]]) -> None:
    """Write an object of lists, with a line for each of their elements."""
    lists = (
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in listed) + "\n]"
        for name, listed in value.items()
    )
    file.write_text("{" + ",\n".join(lists) + "}\n", "utf-8")


if __name__ == "__main__":
    main()
