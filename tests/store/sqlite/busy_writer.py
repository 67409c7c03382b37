"""A process that writes without end: python -m tests.store.sqlite.busy_writer URL.

It prints the number of each node that it has made, and moves a subtree to and fro in between.
"""

import asyncio
import itertools
import sys

from store.connect import open_store
from store.edits.create_update import Create
from store.edits.move import Move
from store.engine.usage import ReadUsage
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY

HERE, THERE = ("a", "moving"), ("b", "moving")
PARTS = 20


async def main(url: str) -> None:
    async with open_store(url) as store:
        writer = Writer(store)
        for path in [("a",), ("b",), HERE, *[(*HERE, f"{n}") for n in range(PARTS)]]:
            await writer.write(Create(CATEGORY, path, "CATEGORY", "x", {}), ReadUsage())
        for number in itertools.count():
            place, target = (HERE, THERE) if number % 2 == 0 else (THERE, HERE)
            await writer.write(Move(CATEGORY, place, target), ReadUsage())
            await writer.write(Create(CATEGORY, ("a", f"n{number}"), "CATEGORY", "x", {}), ReadUsage())
            print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
