"""Twins: rows of one path that are two nodes, such as two cities of one name in a country whose states have another
column: they have two ids in a column that is not imported, or any two values where each node has a row of its own.
"""

import re
from collections import defaultdict

from store.errors import shorten
from store.transfer.formats.cells import fold
from store.transfer.formats.table import padded
from store.transfer.rows import Rejection
from store.transfer.shapes.doubts import Look, shape_doubt
from store.transfer.shapes.shape import Shape

MOST_ROWS = 2  # of a path on average: more are those of what is at a place, such as orders
_IDS = re.compile("(geo|name|geoname|place|location|wof|osm|feature|object|node)?([fgu]|gu|uu)?id")  # folded names


def check_twins(shape: Shape, look: Look) -> None:
    """Raise Doubt where rows of one path differ in a column that is named like an id of a place, and is unique; or,
    where the beginnings of all paths have rows, in any column, and all of these are filled in the same columns.
    """
    sample, used, last = look.sample, shape.places(), shape.levels[-1]
    if last.id or last.paths:
        return
    rows = [row for row in shape.first if not isinstance(row, Rejection)]
    paths: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for row in rows:
        paths[*row.path,].append(row.number)
    columns = [(name, own) for name, own in zip(sample.header, sample.columns, strict=False) if name not in used]
    ids = [name for name, own in columns if _IDS.fullmatch(fold(name)) and len({*own} - {""}) == len(own)]
    known, has_levels = {(), *paths}, any(len(path) > 1 for path in paths)
    are_nodes = has_levels and all(path[:-1] in known for path in paths)
    if len(rows) > MOST_ROWS * len(paths) or not (ids or are_nodes):
        return
    texts = {number: padded(cells, len(sample.header)) for number, cells, reason, *_ in sample.rows if reason is None}
    deepest = {(*row.path,) for row in rows if row.columns[-1] == last.key}
    values = {name for level in shape.levels for name in level.values}  # of which two are rejected
    for path, numbers in paths.items():
        if len(numbers) == 1:
            continue
        cells = {name: {texts[at][place] for at in numbers} for place, name in enumerate(sample.header) if name}
        differ = [name for name, _ in columns if len(cells.get(name, "")) > 1]
        is_same = all(len(cells[name]) == 1 for name in values) and not any("" in cells[name] for name in differ)
        way = "write a key of its own in each of them"
        found = differ if are_nodes and is_same else []
        if ids and path in deepest:
            way = f"name the column of a level between, or --id {last.level.lower()}={ids[0]}, which rejects them"
            found = ids
        if found:
            raise shape_doubt(
                f"Rows {numbers[0]} and {numbers[1]} of {look.source} are both {shorten('/'.join(map(str, path)))}, "
                f'and have two {"ids" if found is ids else "values"} in column "{shorten(found[0])}"',
                other=way,
            )
