"""SQL: the table with its indexes, and the constant statements."""

from store.metadata.layout_version import LAYOUT
from store.model.keys import Index, index_name

# `expires` is a column so that expired items are found. `body` holds what the columns before it do not (`rows.py`).
SCHEMA = (
    """CREATE TABLE items (
        pk TEXT NOT NULL, sk TEXT NOT NULL, parent TEXT, rank TEXT, tier TEXT, expires REAL, body BLOB NOT NULL,
        PRIMARY KEY (pk, sk)
    ) WITHOUT ROWID""",
    "CREATE INDEX by_parent ON items (parent, rank) WHERE parent IS NOT NULL",
    "CREATE INDEX by_level ON items (tier, sk) WHERE tier IS NOT NULL",
    "CREATE INDEX by_expiry ON items (expires) WHERE expires IS NOT NULL",
)
MARK = f"PRAGMA user_version = {LAYOUT}"
COLUMNS = ["pk", "sk", "parent", "rank", "tier", "expires", "body"]

INSERT = "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?)"
PUT = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?)"
DELETE = "DELETE FROM items WHERE pk = ? AND sk = ?"
ROW = "pk, sk, parent, rank, tier, body"
NODE_ROW = "pk, sk, rank, body"
SELECT = f"SELECT {ROW} FROM items"  # noqa: S608  # of constants alone
SCAN = f"{SELECT} WHERE (pk, sk) > (?, ?) AND (expires IS NULL OR expires > ?) ORDER BY pk, sk LIMIT ?"
RUNNING_MOVES = "SELECT 1 FROM items WHERE pk = ? AND expires IS NULL LIMIT 1"  # the records of others expire
EXPIRED = "SELECT pk, sk FROM items WHERE expires <= ? LIMIT ?"


def where(index: Index) -> str:
    """FROM and WHERE of a SELECT of a range; parameters: partition, lower and upper bound, current time."""
    by = f" INDEXED BY {index_name(index)}" if index is not Index.TABLE else ""
    return (
        f"FROM items{by} WHERE {index.partition} = ? AND {index.sort} >= ? AND {index.sort} < ? "
        "AND (expires IS NULL OR expires > ?)"
    )


def count_page(index: Index) -> str:
    """The SELECT that counts a page of a range: its rows, their bytes, and the sort key of the last one."""
    rows = f"SELECT length(body) AS size, {index.sort} AS sort {where(index)} ORDER BY {index.sort} LIMIT ?"
    return f"SELECT count(*), total(size), max(sort) FROM ({rows})"  # noqa: S608  # of constants alone
