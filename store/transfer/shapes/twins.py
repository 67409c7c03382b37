"""Twins: rows of one path that have two ids in a column that is not imported, such as two cities of one name in a
country whose states have another column.
"""

import re
from collections import defaultdict

from store.errors import shorten
from store.model.hierarchy import may_stand
from store.transfer.formats.cells import fold
from store.transfer.formats.source import Doubt, Guess
from store.transfer.shapes.doubts import Look
from store.transfer.shapes.shape import Shape

MOST_ROWS = 2  # of a path on average: more are those of what is at a place, such as orders
_IDS = re.compile(r"(?i:(?:^|[\W_])(id|fid|gid)|nameid|placeid|[ug]uid)$|[a-z]I[Dd]$")
_OF_OTHERS = re.compile(
    "order|customer|client|user|account|person|employee|contact|invoice|payment|transaction|session|event|message|"
    "product|item|article|sku|job|ticket|visit|record|row|parent|store|shop|branch|site|station|property|listing"
)


def check_twins(shape: Shape, look: Look) -> None:
    """Raise Doubt where rows of one path differ in a column that is named like an id, and is unique."""
    hierarchy, sample, used = shape.hierarchy, look.sample, shape.places()
    *above, last = shape.levels
    if last.id or last.paths:
        return
    cells = [*zip(*map(sample.column, look.keys), strict=True)]
    paths: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, path in enumerate(cells):
        if path[-1]:
            paths[path].append(at)
    twins = next((rows for rows in paths.values() if len(rows) > 1), None)
    free = [(name, own) for name, own in zip(sample.header, sample.columns, strict=False) if name and name not in used]
    levels = [fold(name) for name in hierarchy.levels if name != last.level]
    ids = [
        name for name, own in free
        if _IDS.search(name) and len({*own} - {""}) == len(own) and not _OF_OTHERS.search(fold(name))
        and not fold(name).startswith((*levels,))
    ]  # fmt: skip
    if twins is None or not ids or len(cells) > MOST_ROWS * len(paths):
        return
    upper = above[-1].level if above else None
    between = [
        name for name in hierarchy.levels
        if name not in (last.level, upper) and may_stand(hierarchy, last.level, name)
        and may_stand(hierarchy, name, upper)
    ]  # fmt: skip
    readings: list[list[str]] = []
    for name, own in free if between else ():
        is_level = len({(*path, value) for path, value in zip(cells, own, strict=True)}) == len(cells)
        if is_level and name not in ids and all(any(map(str.isalpha, value)) for value in own):
            level = next((one for one in between if fold(one) in fold(name)), between[-1])
            pairs = [*shape.options.pairs()]
            pairs.insert(len(above), ("--level", f"{level.lower()}={name}"))
            readings.append([word for pair in pairs for word in pair])
    numbers = [number for number, _, reason, *_ in sample.rows if reason is None]
    first, second, *_ = twins
    raise Doubt(
        Guess.SHAPE,
        f"Rows {numbers[first]} and {numbers[second]} of {look.source} are both "
        f'{shorten("/".join(filter(None, cells[first])))}, and have two ids in column "{shorten(ids[0])}"',
        *readings,
        other=f"name the column of a level between, or --id {last.level.lower()}={ids[0]}, which rejects them",
    )
