"""Table administration of SQLite: creation, schema version and description."""

from store.engine.table_options import TableOptions
from store.errors import BadInput
from store.metadata.layout_version import check_layout
from store.model.attributes import Value
from store.model.keys import Index, index_name
from store.sqlite.connection import Database
from store.sqlite.sql import COLUMNS, MARK, SCHEMA


class Table:
    """The table in a database. Errors of SQLite are translated by its methods that a store has too."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = database.path

    async def create(self, options: TableOptions) -> bool:
        """Create the file and the table unless they exist; whether the table was created."""
        if options != TableOptions():
            raise BadInput("These options are for tables of DynamoDB; an SQLite file has none.")
        with self._database.translated():
            self._database.connection("rwc")
            await self._database.run_alone("PRAGMA journal_mode = WAL")
            async with self._database.transaction() as connection:
                if exists := self.exists():
                    check_layout(self._path, self._layout())
                for statement in (*SCHEMA, MARK) if not exists else ():
                    connection.execute(statement)
        return not exists

    def exists(self) -> bool:
        """Whether the file holds the table; raises BadInput where it is that of another program."""
        found = [name for (name,) in self._database.connection().execute("SELECT name FROM pragma_table_info('items')")]
        if found and found != COLUMNS:
            raise BadInput(f'"{self._path}" has a table "items" of another program; use another file.')
        return bool(found)

    def check_version(self) -> None:
        """Raise WrongLayout unless the table has this Clade's schema version."""
        check_layout(self._path, self._layout())

    def _layout(self) -> int | None:
        (version,) = self._database.connection().execute("PRAGMA user_version").fetchone()
        return version or None  # 0 is that of a file without one

    def check_health(self) -> None:
        """Raise NoTable, WrongLayout or Unavailable where the table cannot be read."""
        with self._database.translated():
            self._database.connection().execute("SELECT 1 FROM items LIMIT 1").fetchone()
            self.check_version()

    def describe(self) -> dict[str, Value]:
        """Properties of the table by name."""
        with self._database.translated():
            execute = self._database.connection().execute
            pages, size = execute("PRAGMA page_count").fetchone()[0], execute("PRAGMA page_size").fetchone()[0]
            items = execute("SELECT count(*) FROM items").fetchone()[0]
            layout = self._layout()
        return {
            "name": self._path, "layout": str(layout), "status": "ACTIVE", "items": items, "bytes": pages * size,
            "indexes": sorted(index_name(index) for index in Index if index is not Index.TABLE), "ttl": "expires",
        }  # fmt: skip
