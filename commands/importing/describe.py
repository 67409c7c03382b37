"""Description of a file or a table: its columns, what was seen, and a command that has passed the checks of an import
and a trial of the first rows.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise

import typer
from typer.core import TyperOption

from commands import interrupt
from commands.importing.files import FileOptions, Source, shape_of_file
from commands.output import say
from store.errors import BadInput, quantity, shell_words, shorten
from store.model.attributes import NUMBERS, Kind
from store.model.hierarchy import Hierarchy
from store.transfer.formats.cells import DATE_EXAMPLES, EXAMPLES, PLAIN, DateFormat, NumberFormat
from store.transfer.formats.source import Doubt, Guess
from store.transfer.formats.table import Sample
from store.transfer.rows import ImportPlan, Rejection, Row
from store.transfer.shapes.choice import check_shape, check_unmatched
from store.transfer.shapes.columns import ColumnOptions, NoLevels
from store.transfer.tables.proposals import are_ids

DESCRIBED_ROWS = 1_000
SHOWN_VALUES = 3
SHOWN_COLUMNS = 60
MAX_NUMBER = 40  # characters of a cell that may be one
MAX_OPTIONS = 20  # that are added one after another
NULLS = ("NULL", "null", "\\N", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "-", "--")
_OTHERS = frozenset(("describe", "store", "dry_run", "prune", "prune_all", "moves", "allow_rejects"))
"""Parameters that no proposed command has."""
_COLUMNS = ("names", "names_in", "ids", "attributes", "case_insensitive")


class Given:
    """The parameters of a command by name; a description adds options to them until it understands the file.

    `seen` says why they were added, `said` are the other lines of the description.
    """

    def __init__(self, context: typer.Context) -> None:
        self.params = {**context.params}
        self.seen: list[str] = []
        self.said: list[str] = []
        self._options = [one for one in context.command.params if isinstance(one, TyperOption)]

    def add(self, doubt: Doubt) -> bool:
        """Add the options of a doubt, and forget what was said; False where it has none, or had them before."""
        before, words = {**self.params}, iter(next(iter(doubt.readings), ()))
        for word, value in zip(words, words, strict=True):
            (option,) = [one for one in self._options if word in one.opts]
            name = str(option.name)
            if word == "--name" and before[name]:
                continue  # it is given
            earlier = [one for one in self.params[name] or [] if not value.startswith(one)] if option.multiple else []
            self.params[name] = [*earlier, value] if option.multiple else value
            if word in ("--tree-by", "--columns"):  # there are no columns of levels, or none of these names
                self.params |= {"levels": None, **dict.fromkeys(_COLUMNS if word == "--columns" else ())}
        if before == self.params or len(self.seen) > MAX_OPTIONS:
            return False
        self.seen.append(str(doubt))
        self.said.clear()
        return True

    def words(self) -> list[str]:
        """The words of a command with these parameters."""
        found = ["clade", "import", self.params["hierarchy"], self.params["file"]]
        for option in self._options:
            value = self.params[str(option.name)]
            if option.name not in _OTHERS and value not in (None, False, [], option.default):
                values = value if option.multiple else [value]
                found += [word for one in values for word in (option.opts[0], *([] if one is True else [str(one)]))]
        return found

    def propose(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Say the proposed command: this one, with those options of `pairs` that it lacks."""
        words = self.words()
        given = {*pairwise(words)}
        words += [word for pair in pairs if pair not in given for word in pair]
        if any("\0" in word for word in words):
            self.said.append("No command is proposed: a name has the character NUL, which no shell passes; rename it.")
            return
        self.said += ["Proposed command:", f"  {shell_words(words)}"]

    def say(self) -> None:
        """Print the description so far."""
        if lines := [*self.seen, *self.said]:
            say(*lines)


def describe_file(given: Given, plan: ImportPlan, source: Source, options: FileOptions) -> None:
    """Say the columns of a file, what was guessed, and a command that has passed the checks and a trial with a plan.

    Raises BadInput for a file that no command would import, and Doubt where options make it another one.
    """
    hierarchy = plan.hierarchy
    try:
        shape = shape_of_file(hierarchy, source.file, given.params["format_name"], options)
    except NoLevels as error:
        if error.table is not None:
            describe_columns(given.said, error.table.sample, {})
            check_unmatched(hierarchy, error.table, options.taken)
        raise
    given.said += [f"{source.name}: {guess}" for guess in (*shape.table.guesses, *shape.guesses)]
    if shape.is_table:
        sample, parts = shape.table.sample, options.tree.parts if options.tree else {}
        places = shape.places() | {column: what for what, column in parts.items() if column}
        describe_columns(given.said, sample, places)
        keys = [level.key for level in shape.levels if level.key]
        if not options.columns.levels:
            _refuse_ids(source.name, keys, sample)
        if keys and replace(options.cells, nulls=frozenset(), fill_down=frozenset()) == PLAIN:
            _check_cells(source.name, hierarchy, shape.options, sample)
    check_shape(shape)
    if tree := shape.tree:
        tree.spool()
        interrupt.run(tree.place(None))
    if sentence := check_sample(plan, source.name, tree.rows() if tree else shape.first):
        given.said.append(sentence)
    given.propose(shape.options.pairs())


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
        raise Doubt(Guess.SHAPE, sentence)
    return sentence


def _refuse_ids(source: str, keys: Sequence[str], sample: Sample) -> None:
    """Raise BadInput where a column that is named like a level has ids, which no proposed command takes for keys."""
    for column in keys:
        values = [*filter(None, sample.column(column)[:DESCRIBED_ROWS])]
        if len(values) > 1 and are_ids(values):
            raise BadInput(
                f'Column "{shorten(column)}" of {source} has ids, such as {shorten(values[0])}, and no keys; name the '
                "columns of keys with --level."
            )


def _check_cells(source: str, hierarchy: Hierarchy, options: ColumnOptions, sample: Sample) -> None:
    """Raise Doubt where columns of attributes have texts for no value, or numbers, dates or lists that are written in
    another way.
    """
    cells: list[tuple[str, str]] = []
    words, numbers, dates = list[str](), list[str](), list[str]()
    for place, _, column in (value.partition("=") for value in options.attributes):
        level, _, name = place.partition(".")
        values = [*filter(None, sample.column(column)[:DESCRIBED_ROWS])] if column in sample.header else []
        attribute = hierarchy.level(level).attributes[name]
        cells += [(column, cell) for cell in values]
        known = [cell for cell in values if cell not in NULLS]
        if attribute.many and any("|" in cell for cell in known) and not any(";" in cell for cell in known):
            words += ["--list-separator", f"{column}=|"]
        elif attribute.kind in NUMBERS:
            numbers += known
        elif attribute.kind in (Kind.DATE, Kind.DATETIME):
            dates += known
    words += [word for column, cell in dict.fromkeys(cells) if cell in NULLS for word in ("--null", f"{column}={cell}")]
    numbers = [cell for cell in numbers if any(map(str.isdigit, cell)) and len(cell) < MAX_NUMBER]
    if any(not re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) for cell in numbers):
        signs = {sign for cell in numbers for sign in re.split(r"[\d.,'\s+-]+", cell) if sign}
        money = [sign for sign in signs if re.fullmatch("[A-Z]{3}", sign) or unicodedata.category(sign[-1]) == "Sc"]
        examples = [f"{sign}{example}" for sign in money for example in EXAMPLES]
        examples = [*EXAMPLES, *examples, *(f"{example} {sign}" for sign in money for example in EXAMPLES)]
        fitting = [example for example in examples if all(_fits(NumberFormat(example), cell) for cell in numbers)]
        words += ["--numbers", fitting[0]] if fitting else []
    if any(not re.match(r"\d{4}-\d\d-\d\d", cell) for cell in dates):
        fitting = [example for example in DATE_EXAMPLES if all(_fits(DateFormat(example), cell) for cell in dates)]
        words += ["--dates", fitting[0]] if len(fitting) == 1 else []
    if words:
        raise Doubt(Guess.SHAPE, f"Cells of {source} have no value, or other numbers, dates or lists", words)


def _fits(example: NumberFormat | DateFormat, cell: str) -> bool:
    try:
        example.plain(cell)
    except BadInput:
        return False
    return True
