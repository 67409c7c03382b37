"""One row of demo data, in the form of one line of a JSONL import."""

Row = dict[str, object]  # path, level, name, id and the level's own attributes
