"""Twins: rows of one path that have two ids in a column that is not imported, such as two cities of one name in a country
whose states have another column.
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
    sample, last = look.sample, shape.levels[-1]
    numbers = [number for number, _, reason, *_ in sample.rows if reason is None]
    if last.id or last.paths or not look.keys:
        return
    used, rows = shape.places(), [*zip(*map(sample.column, look.keys), strict=True)]
    of_path: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, path in enumerate(rows):
        if path[-1]:
            of_path[path].append(index)
    twins = next((found for found in of_path.values() if len(found) > 1), None)
    others = {*map(fold, shape.hierarchy.levels)} - {fold(last.level)}
    ids = [
        column for column, values in zip(sample.header, sample.columns, strict=False)
        if column not in used and _IDS.search(column) and len({*values} - {""}) == len(values)
        and not _OF_OTHERS.search(fold(column)) and not any(fold(column).startswith(other) for other in others)
    ]  # fmt: skip
    if twins is None or not ids or len(rows) > MOST_ROWS * len(of_path):
        return
    between = [
        level.name for level in shape.hierarchy.levels.values()
        if level.name not in {one.level for one in shape.levels}
        and may_stand(shape.hierarchy, last.level, level.name)
        and may_stand(shape.hierarchy, level.name, shape.levels[-2].level if len(look.keys) > 1 else None)
    ]  # fmt: skip
    readings: list[list[str]] = []
    for column, values in zip(sample.header, sample.columns, strict=False):
        texts = {*values}
        paths = {(path, value) for path, value in zip(rows, values, strict=True) if path[-1]}
        tells_all = len(paths) == sum(map(len, of_path.values()))
        if column and column not in (*used, *ids) and between and tells_all and all(any(map(str.isalpha, one)) for one in texts - {""}):
            level = next((one for one in between if fold(one) in fold(column)), between[-1])
            pairs = [*shape.options.pairs()]
            pairs.insert(len(look.keys) - 1, ("--level", f"{level.lower()}={column}"))
            readings.append([word for pair in pairs for word in pair])
    first, second, *_ = twins
    path = shorten("/".join(filter(None, rows[first])))
    raise Doubt(
        Guess.SHAPE,
        f'Rows {numbers[first]} and {numbers[second]} of {look.source} are both {path}, and have two ids in column '
        f'"{shorten(ids[0])}"',
        *readings,
        other=f"name the column of a level between, or --id {last.level.lower()}={ids[0]}, which rejects them",
    )
