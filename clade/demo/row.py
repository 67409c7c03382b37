"""One row of demo data, in the form of one line of a JSONL import."""

from typing import Any

Row = dict[str, Any]  # path, level, name, id and the level's own attributes
