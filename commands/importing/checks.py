"""Checks of a file before it is imported: files that would become another tree than a person sees in them are doubts,
with the options that make this tree. `--describe` takes these options.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from commands.importing.files import FileFormat, FileOptions, Source
from commands.output import shell_words
from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy, Level, may_stand
from store.transfer.formats.columns import fold
from store.transfer.formats.shapes import (
    MAX_ROWS,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    Rows,
    Sample,
    column_chain,
    data_in_header,
    first_of_group,
    joined_path,
    mojibake,
    nested_keys,
    outlined,
    parent_column,
    paths_in_cells,
    second_header,
)
from store.transfer.formats.source import JSON_REASON, Doubt, Guess, csv_line
from store.transfer.formats.tables import Table
from store.transfer.rows import Rejection, Row
from store.transfer.tables.items import key_text
from store.transfer.tables.left_out import LeftOut
from store.transfer.tables.scan import Export, first_items

_CODES = re.compile("code|kod|^(id|key|nr|no|num|number|nummer|numer|notation)$")  # folded names of columns
_NAMES = re.compile("name|title|label|titel|bezeichnung|nombre|nom|nazwa|description|text")
_DEPTH = re.compile("1?[0-9]")
DEPTHS = frozenset(("level", "lvl", "ebene", "niveau", "nivel", "livello", "stufe", "indent"))
DITTO = frozenset(("-", "–", "〃", '"', '""', "''", "do.", "dto.", "ditto", "idem"))


def check_file(
    hierarchy: Hierarchy, source: Source, found: FileFormat, options: FileOptions, *, ignore_unknown: bool = False
) -> None:
    """Raise Doubt for a file whose rows would become another tree than it has, unless this guess is taken.

    Raises BadInput for a table of paths with columns that have no place, unless they are to be ignored.
    """
    if found.is_own or options.tree:
        return
    taken = options.taken
    if (table := found.table) is not None:
        sample = Sample(table.header, table.texts())
        if found.has_text_header and Guess.HEADER not in taken:
            _check_header(hierarchy, source.name, sample)
        if not found.keys:
            _check_paths(hierarchy, source.name, found, table, sample, taken, ignore_unknown=ignore_unknown)
        elif Guess.SHAPE not in taken:
            if not any(level.paths for level in found.levels):
                _check_shape(hierarchy, source.name, sample, table.texts, found.keys)
            _check_groups(hierarchy, source.name, found, table, sample, options)
    if Guess.SHAPE not in taken and found.format.by_id is None:
        check_keys(hierarchy, source.name, (row for _, row in found.format.read()), found)


def check_unmatched(hierarchy: Hierarchy, source: Source, table: Table, taken: Collection[Guess]) -> None:
    """Raise Doubt for a table without a column of a level that has no header, or whose tree is in another shape."""
    sample = Sample(table.header, table.texts())
    if Guess.HEADER not in taken:
        _check_header(hierarchy, source.name, sample)
    if Guess.SHAPE not in taken:
        _check_shape(hierarchy, source.name, sample, table.texts, ())


def check_table(hierarchy: Hierarchy, name: str, export: Export, left_out: LeftOut) -> None:
    """Raise Doubt for a table of DynamoDB whose items refer to their parents by an id."""
    sample = [*first_items(export, SAMPLE_ROWS, left_out)]
    header = list(dict.fromkeys(column for item in sample for column in item))

    def rows(number: int = MAX_ROWS) -> Iterator[list[str]]:
        for item in first_items(export, number, left_out):
            yield [key_text(item.get(column)) for column in header]

    _refuse_parents(hierarchy, name, Sample(header, rows(SAMPLE_ROWS)), rows)


def check_keys(
    hierarchy: Hierarchy, source: str, rows: Iterable[Row | Rejection], found: FileFormat | None = None
) -> None:
    """Raise Doubt for rows in which the keys of a level are whole paths, or codes that begin with other ones.

    Paths in JSON that are lists of keys are taken as they are.
    """
    levels: dict[str, tuple[str, set[str]]] = {}
    of_paths: set[str] = set()  # columns whose cells are split
    roots: list[str] = []
    codes: list[str] = []  # of the roots: their ids, or their keys
    is_flat, has_columns, size = True, False, 0
    for row in islice(rows, SAMPLE_ROWS):
        if isinstance(row, Rejection) or (found and found.has_lists and isinstance(row.path, list)):
            continue
        size += sum(len(str(key)) for key in row.path)
        if size > SAMPLE_CHARACTERS:
            break
        levels_of = [part.level for part in row.parts] or [""]
        for index, key in enumerate(row.path):
            level = levels_of[max(0, index - len(row.path) + len(levels_of))]
            column = row.columns[index] if index < len(row.columns) else ""
            levels.setdefault(level, (column, set()))[1].add(str(key))
            if column and index and column == row.columns[index - 1]:
                of_paths.add(column)
        roots.append(str(row.path[0]))
        is_flat = is_flat and len(row.path) == 1 and bool(row.parts)
        has_columns = has_columns or bool(row.columns)
        if row.parts:
            codes.append(str(row.parts[0].id or roots[-1]) if len(row.path) == 1 else roots[-1])
    for level, (column, keys) in levels.items():
        place = f'Column "{column}" of {source}' if column else source
        if damaged := mojibake(keys):
            raise Doubt(Guess.ENCODING, f'{place} has broken characters, such as "{shorten(damaged)}"; mend the file.')
        if column not in of_paths and (path := joined_path(keys, are_roots=is_flat)):
            is_text = found is not None and found.table is None and not found.has_lists
            own = column or ("path" if found and (is_text or found.table) else "")
            _refuse_path(hierarchy, place, path, level, own, is_text=is_text)
    if is_flat or (has_columns and not of_paths):  # paths are written as they are meant, unless all are roots
        _refuse_codes(source, {*codes})
    if is_flat:
        _refuse_codes(source, {code.partition(" ")[0] for code in codes})
        _refuse_outline(source, roots)


def _check_shape(hierarchy: Hierarchy, source: str, sample: Sample, rows: Rows, keys: Sequence[str]) -> None:
    """Raise Doubt for a table whose tree is not in the columns of its `keys`, with the options that say it.

    Without any key the whole paths, codes and depths are looked for in all columns.
    """
    _refuse_parents(hierarchy, source, sample, rows, keys)
    if len(keys) > 1:
        return
    level = _nested(hierarchy)
    for column, values in zip(sample.header, sample.columns, strict=False):
        place, known = f'Column "{shorten(column)}" of {source}', {*values} - {""}
        if not known or not column:
            continue
        is_code = len(known) == len(values) and (not keys or column in keys or _CODES.search(fold(column)))
        if is_code and sum(any(map(str.isdecimal, one)) and " " not in one for one in known) >= 0.9 * len(known):
            _refuse_codes(place, known, _by(hierarchy, sample, prefix=column))
        if not keys and level and (path := paths_in_cells(known)):
            _refuse_path(hierarchy, place, path, level.name, column)
        if column in keys or not keys:
            texts = [row[sample.header.index(column)] for row in sample.rows]
            _refuse_outline(place, texts, _by(hierarchy, sample, indent=column))
        is_depth = fold(column) in DEPTHS or (not keys and fold(column) in ("depth", "tiefe"))
        if column not in keys and is_depth and len(known) > 1 and all(map(_DEPTH.fullmatch, values)):
            raise _shape(
                f"{place} seems to have the depths of nodes, which are in their order below one another, and all would "
                "become siblings",
                _by(hierarchy, sample, depth=column),
            )
    chain = column_chain(sample) if level else []
    own = [column for column in chain if level and fold(level.name) in fold(column)]  # such as Subcategory
    if level and len(chain) > 1 and (not keys or len(own) > 1 or keys[0] in chain[1:]):
        options = [word for column in chain for word in ("--level", f"{level.name.lower()}={column}")]
        raise _shape(f"{source} has columns that are below one another: {', '.join(map(shorten, chain))}", options)


def _shape(seen: str, options: Sequence[str] = (), other: str = "write a file of paths") -> Doubt:
    """The doubt of a shape that was seen, with the options that import it, or another way out where there are none."""
    way_out = f"{shell_words(options)} imports this tree" if options else other
    return Doubt(Guess.SHAPE, f"{seen}; {way_out}.", options)


def _nested(hierarchy: Hierarchy) -> Level | None:
    """The level that may be a root and nests in itself, of which a tree of any depth can be."""
    return next((one for one in hierarchy.levels.values() if one.may_be_root and one.name in one.under), None)


def _by(hierarchy: Hierarchy, sample: Sample, **parts: str) -> list[str]:
    """The options of a tree by these columns, with the columns of levels and names where these are clear."""
    others = [(column, [*filter(None, values)]) for column, values in zip(sample.header, sample.columns, strict=False)]
    others = [(column, values) for column, values in others if values and column and column not in parts.values()]
    nested = _nested(hierarchy)
    named = [nested.name] if nested else []
    for column, values in others:
        if "level" not in parts and all(found := [*map(hierarchy.find, {*values})]):
            parts["level"], named = column, [level.name for level in found if level]
    texts = [column for column, values in others if column != parts.get("level") and _are_words(values)]
    name = next((column for column in texts if _NAMES.search(fold(column))), next(iter(texts), ""))
    if name and fold(name) != "name" and not named:
        parts["key"] = name
    words = [word for level in sorted(named) for word in ("--name", f"{level.lower()}={name}")] if name else []
    by = csv_line([f"{what}={column}" for what, column in parts.items()])
    return ["--tree-by", by, *([] if "indent" in parts or fold(name) == "name" else words)]


def _are_words(values: Collection[str]) -> bool:
    return sum(any(map(str.isalpha, value)) for value in values) >= 0.9 * len(values)


def _refuse_path(
    hierarchy: Hierarchy, place: str, path: Sequence[str], level: str, column: str, *, is_text: bool = False
) -> None:
    """Raise Doubt for whole paths in a column, or in the lines of a text, which is read as a table of one column."""
    example, sign, *each = path
    options = "--format csv --delimiter tab --columns path".split() if is_text else []
    if column and (nested := _nested(hierarchy)):
        split = f'{column} split "{sign}"' + (f' each "{each[0]}"' if any(each) else "")
        options += ["--level", f"{nested.name.lower()}={split}"]
    seen = f'{place} has whole paths, such as "{shorten(example)}", where a key of one {level} belongs'
    raise _shape(seen, options, "write / between the keys of a path")


def _refuse_codes(place: str, codes: Collection[str], options: Sequence[str] = ()) -> None:
    if nested := nested_keys(codes):
        raise _shape(
            f'{place} looks like a tree by codes: most begin with another one, such as "{shorten(nested[0])}" with '
            f'"{shorten(nested[1])}", and all would become siblings',
            options,
        )


def _refuse_outline(place: str, texts: Sequence[str], options: Sequence[str] = ("--tree-by", "indent")) -> None:
    if (example := outlined(texts)) is not None:
        raise _shape(
            f"{place} is an outline: {shorten(example)!r} begins with blanks or signs that may show its depth, and all "
            "would become siblings",
            options,
        )


def _check_header(hierarchy: Hierarchy, source: str, sample: Sample) -> None:
    known = {fold(name) for level in hierarchy.levels.values() for name in (level.name, *level.attributes)}
    if (cell := data_in_header(sample, known)) is not None:
        names = [chr(ord("a") + number % 26) * (number // 26 + 1) for number in range(len(sample.header))]
        if len({*sample.columns[0], sample.header[0]}) > len(sample.rows):
            names[0] = "id"
        raise Doubt(
            Guess.HEADER,
            f'The first row of {source} looks like data: "{shorten(cell)}" is no name of a column, by the rows below; '
            f"--columns names the {len(names):,} columns of a file without a header, such as --columns a,b,c.",
            ("--columns", ",".join(names)),
        )
    if (cell := second_header(sample)) is not None:
        raise Doubt(
            Guess.HEADER,
            f'The first row below the header of {source} looks like a second one: "{shorten(cell)}" stands above '
            "numbers; remove it, or --header-row takes its names.",
        )


def _refuse_parents(
    hierarchy: Hierarchy, source: str, sample: Sample, rows: Rows, levels: Collection[str] = ()
) -> None:
    if (found := parent_column(sample, rows, levels)) is not None:
        parent, own = found
        raise _shape(
            f'{source} is a tree by parent ids: column "{shorten(parent)}" has values of "{shorten(own)}" of other '
            "rows",
            _by(hierarchy, sample, id=own, parent=parent),
        )


def _check_paths(
    hierarchy: Hierarchy, source: str, found: FileFormat, table: Table, sample: Sample, taken: Collection[Guess], *,
    ignore_unknown: bool,
) -> None:  # fmt: skip
    """Raise for a table whose columns are called path and level and mean something else, or that has other columns."""
    levels = sample.column("level") if found.format.by_id is None else []
    if levels and not any(map(hierarchy.find, levels)):
        if Guess.SHAPE not in taken:
            _check_shape(hierarchy, source, sample, table.texts, ())
        raise BadInput(
            f'Column "level" of {source} has no level of {hierarchy.name}, such as "{shorten(levels[0])}"; the levels '
            f"are {', '.join(hierarchy.levels)}. Columns of other names are imported with --level."
        )
    known = found.places(hierarchy)
    for column in table.header if not ignore_unknown else ():
        if column not in known and not column.startswith(JSON_REASON) and any(sample.column(column)):
            level = hierarchy.levels[next(iter(hierarchy.levels))].name.lower()
            raise BadInput(
                f'Column "{shorten(column)}" of {source} is no attribute of a level of {hierarchy.name}; '
                f"{shell_words(['--attr', f'{level}.ATTRIBUTE={column}'])} or "
                f"{shell_words(['--name-in', f'{level}.LANGUAGE={column}'])} gives it a place, --ignore-unknown leaves "
                "it out."
            )


def _check_groups(
    hierarchy: Hierarchy, source: str, found: FileFormat, table: Table, sample: Sample, options: FileOptions
) -> None:
    cells, used = options.cells, found.places(hierarchy)
    filled, is_given = cells.fill_down, bool(options.columns.levels)
    if merged := [column for column in table.merged if column in used and column not in filled]:
        words = [word for column in merged for word in ("--fill-down", column)]
        raise Doubt(
            Guess.SHAPE,
            f'Column "{shorten(merged[0])}" of {source} has merged cells, and only the first of the merged ones has a '
            f"value; {shell_words(words)} gives it to all of them.",
            words,
        )
    for column in found.keys:
        values = {*sample.column(column)}
        if is_given and column == found.keys[-1] and values == {""}:
            raise Doubt(Guess.SHAPE, f'Column "{shorten(column)}" of {source} has no values; leave its --level out.')
        if column != found.keys[-1] and (ditto := (values & DITTO) - cells.nulls_in(column)):
            words = ["--null", f"{column}={min(ditto)}", "--fill-down", column]
            raise Doubt(
                Guess.SHAPE,
                f'Column "{shorten(column)}" of {source} has {shorten(min(ditto))} as a key; {shell_words(words[:2])} '
                f"takes it as no value, and with {shell_words(words[2:])} it is the value above.",
                words,
            )
    levels: dict[str | None, str | None] = {one.key: one.level for one in found.levels} | {None: None}
    group = first_of_group(
        sample,
        found.keys,
        filled,
        lambda below, above: may_stand(hierarchy, levels[below] or "", levels[above]),
    )
    if group is not None:
        column, below, above = group
        words = ["--fill-down", column]
        raise Doubt(
            Guess.SHAPE,
            f'Column "{shorten(column)}" of {source} has values only in the first rows of groups: '
            f'"{shorten(below)}" stands below the row of "{shorten(above)}", and would skip this level; '
            f"{shell_words(words)} gives empty cells the value above. Where such rows have none, --yes imports them "
            "so.",
            words,
        )
