"""Groups of rows: levels whose cells are empty below the first row of a group, as in merged cells."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from store.errors import shorten
from store.model.hierarchy import may_stand
from store.transfer.formats.table import Sample
from store.transfer.shapes.chains import is_staircase
from store.transfer.shapes.doubts import ENOUGH_ROWS, Look, shape_doubt
from store.transfer.shapes.shape import Shape

DITTO = frozenset(("-", "–", "〃", '"', '""', "''", "do.", "dto.", "ditto", "idem"))


def check_groups(shape: Shape, look: Look) -> None:
    """Raise Doubt for columns of levels whose empty cells, or ditto signs, mean the value above, or whose zeros at the
    ends of rows mean no value.
    """
    hierarchy, source, sample, keys = shape.hierarchy, look.source, look.sample, look.keys
    cells, used = shape.given.cells, shape.places()
    filled, is_given = cells.fill_down, bool(shape.given.columns.levels)
    if merged := [column for column in shape.table.merged if column in used and column not in filled]:
        words = [word for column in merged for word in ("--fill-down", column)]
        seen = "has merged cells, and only the first of the merged ones has a value"
        raise shape_doubt(f'Column "{shorten(merged[0])}" of {source} {seen}', words)
    zeros = dict[str, str]()
    for column in keys:
        values, place = {*sample.column(column)}, f'Column "{shorten(column)}" of {source}'
        if is_given and column == keys[-1] and values == {""}:
            raise shape_doubt(f"{place} has no values", other="leave its --level out")
        if column != keys[-1] and (ditto := (values & DITTO) - cells.nulls_in(column)):
            words = ["--null", f"{column}={min(ditto)}", "--fill-down", column]
            seen = f"{place} has {shorten(min(ditto))} as a key, which may mean the value above, or none"
            raise shape_doubt(seen, words, words[:2])
        found = {value for value in values if value and not value.strip("0")} - cells.nulls_in(column)
        if column != keys[0] and len(found) == 1 and len(values) > 1 and "".join(values).isdecimal():
            zeros[column] = min(found)
    ends = zip(*(map(("", zeros.get(column)).count, sample.column(column)) for column in keys[1:]), strict=True)
    if len("".join(zeros.values())) > 1 and all([*row] == sorted(row) for row in ends):
        seen = f"{source} has zeros in {' and '.join(map(shorten, zeros))} where a row has no code of this level"
        raise shape_doubt(seen, [word for pair in zeros.items() for word in ("--null", "=".join(pair))])
    blank = [column for column in keys[:-1] if column not in filled]
    if blank and is_staircase([sample.column(column) for column in keys]):
        seen = "have a value each in rows of their own, below those of the columns before"
        words = [word for column in blank for word in ("--fill-down", column)]
        raise shape_doubt(f"Columns {', '.join(map(shorten, keys))} of {source} {seen}", words)
    levels: dict[str | None, str | None] = {one.key: one.level for one in shape.levels} | {None: None}
    group = _first_of_group(
        sample, keys, filled, lambda below, above: may_stand(hierarchy, levels[below] or "", levels[above])
    )
    if group is not None:
        column, below, above = group
        raise shape_doubt(
            f'Column "{shorten(column)}" of {source} has values only in the first rows of groups: '
            f'"{shorten(below)}" stands below the row of "{shorten(above)}", and would skip this level',
            ["--fill-down", column],
        )


def _first_of_group(
    sample: Sample, keys: Sequence[str], filled: Collection[str], may_stand: Callable[[str, str | None], bool]
) -> tuple[str, str, str] | None:
    """The first of the columns of levels, from the root down, that is empty below the first row of each group; with a
    key below, and what it would be below.

    Each of its values stands in one row alone, with a key of a level below or as a line above its group, and rows
    without one follow it. So it is no level that some nodes skip, such as the states of a country. Rows whose key of
    one column may not stand below that of another (None for the root) are rejected anyway: a few are only errors. The
    empty cells of columns that are `filled` have the value above.
    """
    columns = {column: sample.column(column) for column in keys}
    given = [*zip(*columns.values(), strict=True)]
    for column in columns.keys() & {*filled}:
        above_it = ""
        columns[column] = [above_it := own or above_it for own in columns[column]]
    rows = [*zip(*columns.values(), strict=True)]
    for place, column in enumerate(keys[:-1]):
        if column in filled:
            continue
        above: list[str] = []
        seen: Counter[tuple[str, ...]] = Counter()
        empty, allowed, groups, has_below, example = 0, 0, 0, False, None
        for number, texts in enumerate(rows):
            group = [text or "".join(above[at : at + 1]) for at, text in enumerate(texts[:place])]
            if text := texts[place]:
                above, has_below = [*group, text], any(texts[place + 1 :])
                seen[tuple(above)] += 1
            elif above[:place] != group:
                above = [*group, ""]
            elif any(texts[place + 1 :]) and any(above[place:]):
                below = next(key for key, text in zip(keys[place + 1 :], texts[place + 1 :], strict=True) if text)
                upper = next((key for key, text in zip(keys[place - 1 :: -1], group[::-1], strict=False) if text), None)
                groups += bool(rows[number - 1][place])
                if has_below or not any(given[number][:place]):
                    empty += 1
                    allowed += may_stand(below, upper if place else None)
                example = example or (column, texts[keys.index(below)], "/".join(filter(None, above)))
        if groups == 1 and len(seen) > ENOUGH_ROWS:
            continue  # one block of rows without it, such as those of another kind
        if (allowed or empty >= max(2, len(rows) // 3)) and (seen.total() - len(seen)) * 5 <= empty:
            return example
    return None
