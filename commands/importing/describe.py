"""Description of a file or a table: its columns, what was seen, and a command that has passed the checks of an import
and a trial of the first rows.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise

from commands import interrupt
from commands.importing.advice import Given, Reading, preview
from commands.importing.files import FileOptions, Source, shape_of_file
from commands.output import say
from store.errors import BadInput, quantity, shell_words, shorten
from store.model.attributes import NUMBERS, Kind
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.transfer.formats.cells import DATE_EXAMPLES, EXAMPLES, PLAIN, DateFormat, NumberFormat
from store.transfer.formats.source import Doubt, Guess
from store.transfer.formats.table import Sample
from store.transfer.rows import ImportPlan, Rejection, Row
from store.transfer.shapes.choice import check_shape, check_unmatched
from store.transfer.shapes.columns import ColumnOptions, NoLevels
from store.transfer.shapes.shape import Shape
from store.transfer.tables.proposals import are_ids

DESCRIBED_ROWS = 1_000
SHOWN_VALUES = 3
SHOWN_COLUMNS = 60
NULLS = ("NULL", "null", "\\N", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "-", "--")


def plan_of(given: Given, hierarchy: Hierarchy, stored: Collection[Key] = ()) -> ImportPlan:
    """A plan without rows, by the options of an import."""
    options = {name: given.params[name] for name in ("ignore_unknown", "level_ids", "create_parents", "order")}
    return ImportPlan(hierarchy, **options, stored=stored)


def shape_at(given: Given, hierarchy: Hierarchy, source: Source, options: FileOptions, said: list[str]) -> Shape:
    """The shape of a file. Without a column of a level, raises Doubt where another shape is seen, and says columns."""
    try:
        return shape_of_file(hierarchy, source.file, given.params["format_name"], options)
    except NoLevels as error:
        if error.table is not None:
            describe_columns(said, error.table.sample, {})
            check_unmatched(hierarchy, error.table, options.taken)
        raise


def describe_file(given: Given, hierarchy: Hierarchy, source: Source, options: FileOptions) -> list[str]:
    """Note the columns of a file, what was guessed, and a command that has passed the checks; returns the lines of the
    tree of the first rows.

    Raises BadInput for a file that no command would import, and Doubt where options make it another one.
    """
    shape = shape_at(given, hierarchy, source, options, given.said)
    given.said += [f"{source.name}: {guess}" for guess in (*shape.table.guesses, *shape.guesses)]
    if shape.is_table:
        sample, parts = shape.table.sample, shape.given.tree.parts if shape.given.tree else {}
        places = shape.places() | {column: what for what, column in parts.items() if column}
        describe_columns(given.said, sample, places)
        keys = [level.key for level in shape.levels if level.key]
        if not options.columns.levels:
            _refuse_ids(source.name, keys, sample)
        if keys and {*options.cells.nulls} <= {""} and replace(options.cells, nulls={}, fill_down=frozenset()) == PLAIN:
            _check_cells(source.name, hierarchy, shape.options, sample)
    check_shape(shape)
    propose(given, shape.options.pairs())
    return tree_of_sample(given, shape)


def tree_of_sample(given: Given, shape: Shape) -> list[str]:
    """The lines of the tree that the first rows of a shape make, with the sentence of those that would be rejected.

    Raises Doubt for a shape of which most of them would be.
    """
    plan, name = plan_of(given, shape.hierarchy), shape.table.name
    if tree := shape.tree:
        tree.create = given.params["create_parents"]
        tree.spool()
        interrupt.run(tree.place(None))
        if tree.unlike:
            raise Doubt(Guess.SHAPE, tree.unlike, ("--fold-case", "id"))
    rejected = check_sample(plan, name, tree.rows() if tree else shape.first)
    if rejected and given.steps and 10 * len(plan.rejections) > plan.rows:  # advice has to fit nearly all rows
        raise Doubt(Guess.SHAPE, rejected.rstrip("."))
    paths = [(*row.path,) for row in (() if tree else shape.first) if not isinstance(row, Rejection)]
    joined = len(paths) - len({*paths})
    repeated = f"{quantity(joined, 'row')} of nodes that another row has." if joined else ""
    notes = [f"  {sentence}" for sentence in (*(tree.sentences if tree else ()), repeated, rejected) if sentence]
    of_part = f" of the first {plan.rows:,} rows" if plan.rows >= DESCRIBED_ROWS else ""
    return [*preview(plan, of_part), *notes]


def propose(given: Given, pairs: Iterable[tuple[str, str]]) -> None:
    """Note the proposed command: the given one, with those options of `pairs` that it lacks."""
    words = given.words()
    known = {*pairwise(words)}
    given.proposed = words + [word for pair in pairs if pair not in known for word in pair]


def say_description(found: Sequence[Reading]) -> None:
    """Print the description of a file, with the tree and the command of each reading, that of the likeliest last."""
    first = found[0].given
    say(*[f"{seen}; {shell_words(words)}." for seen, words in first.steps], *first.said)
    for number, (given, tree) in reversed([*enumerate(found)]):
        if any("\0" in word for word in given.proposed):
            say("No command is proposed: a name has the character NUL, which no shell passes; rename it.")
            continue
        say(f"The tree {'by the proposed command' if not number else 'by another reading'}:", *tree)
        say("Proposed command:" if not number else "Its command:", f"  {shell_words(given.proposed)}")


def describe_columns(said: list[str], sample: Sample, places: Mapping[str, str]) -> None:
    """Say the columns of a table with values of the first rows, and what becomes of them."""
    if len(sample.header) > SHOWN_COLUMNS:
        said.append(f"  {len(sample.header):,} columns, the first {SHOWN_COLUMNS}:")
    for column, values in zip(sample.header[:SHOWN_COLUMNS], sample.columns, strict=False):
        seen = [*dict.fromkeys(filter(None, values[:DESCRIBED_ROWS]))]
        shown = ", ".join(shorten(value, 30) for value in seen[:SHOWN_VALUES])
        said.append(f"  {column}: {shown or 'no values'} ({places.get(column, 'not imported')})")


def check_sample(plan: ImportPlan, source: str, rows: Iterable[Row | Rejection], enough: int = 1) -> str | None:
    """How many of the first rows would be rejected, and the first reason; None if none. The rows are added to the plan.

    Raises Doubt where these are more than half of at least `enough` rows: the columns are not what they are taken for.
    """
    for row in islice(rows, DESCRIBED_ROWS):
        plan.take(row)
    plan.check_ids()
    return check_rejections(plan, source, enough)


def check_rejections(plan: ImportPlan, source: str, enough: int) -> str | None:
    """The same of rows that a plan has."""
    rejections = [one for part in (plan, *plan.versions.values()) for one in part.rejections]
    if not rejections:
        return None
    first = rejections[0]
    rows = f"{len(rejections):,} of the first {quantity(plan.rows, 'row')}"
    sentence = f"{rows} of {source} would be rejected; row {first.number}: {first.reason}"
    if plan.rows >= enough and len(rejections) * 2 > plan.rows:
        raise Doubt(Guess.SHAPE, sentence.rstrip("."))
    return sentence


def _refuse_ids(source: str, keys: Sequence[str], sample: Sample) -> None:
    """Raise BadInput where a column that is named like a level has ids, which no proposed command takes for keys."""
    for column in keys:
        values = [*filter(None, sample.column(column)[:DESCRIBED_ROWS])]
        if len(values) > 1 and are_ids(values):
            seen = f'Column "{shorten(column)}" of {source} has ids, such as {shorten(values[0])}, and no keys'
            raise BadInput(f"{seen}; name the columns of keys with --level.")


def _check_cells(source: str, hierarchy: Hierarchy, options: ColumnOptions, sample: Sample) -> None:
    """Raise Doubt where columns of attributes have texts for no value, or numbers, dates or lists that are written in
    another way.
    """
    words, numbers, dates = list[str](), list[str](), list[str]()
    for place, _, column in (value.partition("=") for value in options.attributes):
        level, _, name = place.partition(".")
        values = [*filter(None, sample.column(column)[:DESCRIBED_ROWS])] if column in sample.header else []
        attribute = hierarchy.level(level).attributes[name]
        words += [word for cell in dict.fromkeys(values) if cell in NULLS for word in ("--null", f"{column}={cell}")]
        known = [cell for cell in values if cell not in NULLS]
        if attribute.many and any("|" in cell for cell in known) and not any(";" in cell for cell in known):
            words += ["--list-separator", f"{column}=|"]
        elif attribute.kind in NUMBERS:
            numbers += known
        elif attribute.kind in (Kind.DATE, Kind.DATETIME):
            dates += known
    numbers = [cell for cell in numbers if any(map(str.isdigit, cell))]
    if any(not re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) for cell in numbers):
        signs = {sign for cell in numbers for sign in re.split(r"[\d.,'\s+-]+", cell) if sign}
        money = [sign for sign in signs if re.fullmatch("[A-Z]{3}", sign) or unicodedata.category(sign[-1]) == "Sc"]
        signs_around = [("", ""), *((sign, "") for sign in money), *(("", f" {sign}") for sign in money)]
        examples = [f"{before}{example}{after}" for before, after in signs_around for example in EXAMPLES]
        fitting = [example for example in examples if all(_fits(NumberFormat(example), cell) for cell in numbers)]
        words += ["--numbers", fitting[0]] if fitting else []
    if any(not re.match(r"\d{4}-\d\d-\d\d", cell) for cell in dates):
        fitting = [example for example in DATE_EXAMPLES if all(_fits(DateFormat(example), cell) for cell in dates)]
        words += ["--dates", fitting[0]] if len(fitting) == 1 else []
    if words:
        raise Doubt(Guess.SHAPE, f"Cells of {source} have no value, or other numbers, dates or lists", words)


def _fits(example: NumberFormat | DateFormat, cell: str) -> bool:
    with suppress(BadInput):
        return bool(example.plain(cell))
    return False
