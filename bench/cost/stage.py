"""Stage: a store with the nodes, on SQLite or DynamoDB, and the meter of a server on it."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

from bench.cost.examples import TRUSTED
from bench.cost.meter import CLIENT_SECONDS, Meter
from bench.cost.nodes import Sizes, age, fill
from store.connect import open_store
from store.engine.usage import ReadUsage
from tests import engines
from tests.systems.asking import write


async def filled(folder: Path, sizes: Sizes = Sizes(), engine: engines.Engine | None = None) -> str:
    """The URL of a store that is made in a folder, or copied from there into a table of an engine."""
    made = f"sqlite:///{folder / 'clade.db'}"
    await fill(made, sizes)
    if engine is None:
        return made
    table = engine.address(f"clade-cost-{uuid.uuid4().hex}")
    async with open_store(made) as source, open_store(table) as target:
        await target.create()
        await write(target, [item async for page in source.scan(ReadUsage()) for item in page])
    return table


@contextlib.asynccontextmanager
async def measuring(
    folder: Path, store: str, client_seconds: float = CLIENT_SECONDS, **more: str
) -> AsyncIterator[Meter]:
    """A meter on a new store, of a server with default settings or `more`."""
    trusted = folder / "trusted.json"
    trusted.write_text(json.dumps(TRUSTED))
    settings = {"trusted_documents": str(trusted), "trusted_mode": "prefer", **more}
    meter = Meter(folder, store, client_seconds=client_seconds, **settings)
    try:
        await meter.start()
        await asyncio.to_thread(age, meter.url)
        yield meter
    finally:
        await meter.close()
