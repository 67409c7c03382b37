"""Import job: reads a file, moves existing nodes, and writes the differences to the store."""

import asyncio
import gc
import time
from dataclasses import dataclass, field
from pathlib import Path

import typer

from commands.interrupt import interruptible
from commands.progress import progress
from graph.settings import Settings
from store.connect import opened
from store.engine.protocol import Store
from store.errors import CladeError, NoTable
from store.store_url import SQLiteUrl, parse_store_url
from store.text import quantity
from store.transfer.formats import Format
from store.transfer.load import LoadResult, load
from store.transfer.move_existing import ImportMoves
from store.transfer.rows import ImportPlan
from store.transfer.scratch_copy import scratch_copy
from store.writer.writer import Writer

METER_ROWS = 1000

# Almost all objects of an import live until its end; by default the garbage collector would scan them again and again
# and take a quarter of the time.
GC_THRESHOLD = 200_000


@dataclass
class ImportJob:
    """One import: the file, the plan of its nodes, the store, and the outcome so far."""

    file: Path
    format: Format
    plan: ImportPlan
    url: str
    prune: bool
    moves: bool
    dry_run: bool
    outcome: LoadResult = field(default_factory=LoadResult)

    def run(self) -> None:
        """Read the file and write its nodes. After an interrupt or an error, print the number of written nodes."""
        started = time.monotonic()
        try:
            with interruptible(lambda: self._progress("Stopped")):
                gc.set_threshold(GC_THRESHOLD)
                self._read()
                gc.freeze()
                nodes, rows = self.plan.nodes, self.plan.rows
                asyncio.run(self._write())
        except CladeError:
            if self.outcome.written:
                typer.echo(self._progress("Failed"), err=True)
            raise
        size = f"{quantity(rows, 'row')}, {quantity(nodes, 'node')}"
        typer.echo(f"{self.file.name}: {size} in {time.monotonic() - started:.1f} s.")

    def _progress(self, state: str) -> str:
        return f"{state}: {quantity(self.outcome.written, 'node')} written. Run the same command to continue."

    def _read(self) -> None:
        with progress("Reading", "rows") as meter:
            for row in self.format.rows(self.file):
                self.plan.take(row)
                if self.plan.rows % METER_ROWS == 0:
                    meter(METER_ROWS)

    async def _write(self) -> None:
        url = "sqlite://:memory:" if self.dry_run and not await _has_table(self.url) else self.url
        async with opened(url, make=not self.dry_run or url != self.url) as store:
            if not self.moves:
                await self._load(store)
            elif self.dry_run:
                async with scratch_copy(store, self.plan) as scratch:
                    await self._move(scratch)
                    await self._load(scratch)
            else:
                await self._move(store)
                await self._load(store)

    async def _move(self, store: Store) -> None:
        with progress("Moving", "nodes", len(self.plan.ids)) as meter:
            await ImportMoves(store, Writer(store, Settings().move_timing), self.plan, self.outcome).run(meter)

    async def _load(self, store: Store) -> None:
        with progress("Comparing" if self.dry_run else "Writing", "nodes", self.plan.nodes) as meter:
            await load(store, self.plan, self.outcome, prune=self.prune, dry_run=self.dry_run, on_nodes=meter)


async def _has_table(url: str) -> bool:
    """Whether there is a table to compare with; a missing SQLite file counts as an empty table."""
    if not isinstance(parse_store_url(url), SQLiteUrl):
        return True
    try:
        async with opened(url):
            return True
    except NoTable:
        return False
