"""Twins: rows of one path that have two ids in a column that is not imported, such as two cities of one name in a
country whose states have another column.
"""

import re
from collections import defaultdict

from store.errors import shorten
from store.transfer.formats.cells import fold
from store.transfer.shapes.doubts import Look, shape_doubt
from store.transfer.shapes.shape import Shape

MOST_ROWS = 2  # of a path on average: more are those of what is at a place, such as orders
_IDS = re.compile("(geo|name|geoname|place|location|wof|osm|feature|object|node)?([fgu]|gu|uu)?id")  # folded names


def check_twins(shape: Shape, look: Look) -> None:
    """Raise Doubt where rows of one path differ in a column that is named like an id of a place, and is unique."""
    sample, used, last = look.sample, shape.places(), shape.levels[-1]
    if last.id or last.paths:
        return
    cells = [*zip(*map(sample.column, look.keys), strict=True)]
    paths: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, path in enumerate(cells):
        if path[-1]:
            paths[path].append(at)
    twins = next((rows for rows in paths.values() if len(rows) > 1), None)
    columns = [one for one in zip(sample.header, sample.columns, strict=False) if one[0] not in used]
    ids = [name for name, own in columns if _IDS.fullmatch(fold(name)) and len({*own} - {""}) == len(own)]
    if twins is None or not ids or len(cells) > MOST_ROWS * len(paths):
        return
    numbers = [number for number, _, reason, *_ in sample.rows if reason is None]
    first, second, *_ = twins
    raise shape_doubt(
        f"Rows {numbers[first]} and {numbers[second]} of {look.source} are both "
        f'{shorten("/".join(filter(None, cells[first])))}, and have two ids in column "{shorten(ids[0])}"',
        other=f"name the column of a level between, or --id {last.level.lower()}={ids[0]}, which rejects them",
    )
