"""Advice: the ways to read a file that is not understood. Each is tried on the file before it is named, and shown with
the tree that it makes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from typer.core import TyperOption

from store.errors import BadInput, quantity, shell_words, shorten
from store.model.keys import parent_sort_key
from store.model.paths import format_path
from store.transfer.formats.source import Doubt
from store.transfer.rows import ImportPlan
from store.transfer.staging import Node

MAX_TRIALS = 12
MAX_READINGS = 3  # that are shown
SHOWN_NODES = 12
SHOWN_OF_TREE = 8
SHOWN_CHILDREN = 4  # of a node
SHOWN_DEPTHS = 15
_OTHERS = frozenset(("describe", "store", "dry_run", "prune", "prune_all", "moves", "allow_rejects"))
"""Parameters that no proposed command has."""
_COLUMNS = ("names", "names_in", "ids", "attributes", "case_insensitive")

Step = tuple[str, Sequence[str]]


class Given:
    """The parameters of a command by name. Readings add options to them: `steps` are what was seen, and their words.

    `said` are the lines of a description, `proposed` the words of its command.
    """

    def __init__(self, params: Mapping[str, Any], options: Sequence[TyperOption], steps: Sequence[Step] = ()) -> None:
        self.params, self.steps = {**params}, steps
        self.said: list[str] = []
        self.proposed: list[str] = []
        self._options = options

    def added(self, before: "Given") -> str:
        """The words that readings have added to the parameters before, and the options that they replace."""
        names = {str(option.name): option.opts[0] for option in self._options}
        gone = [word for name, word in names.items() if before.params[name] and not self.params[name]]
        levels = self.params["levels"]
        gone += [shell_words(["--level", one]) for one in before.params["levels"] or [] if levels and one not in levels]
        words = shell_words([word for _, words in self.steps for word in words])
        return f"{words} in place of {' and '.join(gone)}" if gone else words

    def with_reading(self, doubt: Doubt, reading: Sequence[str]) -> "Given | None":
        """These parameters with the options of a reading; None where they have them already."""
        params, words, added = {**self.params}, iter(reading), list[str]()
        for word, value in zip(words, words, strict=True):
            (option,) = [one for one in self._options if word in one.opts]
            name = str(option.name)
            if word == "--name" and self.params[name]:
                continue  # it is given
            if word == "--name" and params["levels"]:  # the column of names is no level
                params["levels"] = [one for one in params["levels"] if one != value]
            replaced = {value, value.removesuffix(" reversed"), value.partition(" split ")[0]}  # of a column of paths
            earlier = [one for one in params[name] or [] if one not in replaced] if option.multiple else []
            params[name] = [*earlier, value] if option.multiple else int(value) if word == "--header-row" else value
            added += [word, value]
            if word in ("--tree-by", "--columns"):  # there are no columns of levels, or none of these names
                params |= {"levels": None, "key": None, **dict.fromkeys(_COLUMNS if word == "--columns" else ())}
        steps = [*self.steps, (doubt.seen, added)]
        return Given(params, self._options, steps) if params != self.params else None

    def words(self) -> list[str]:
        """The words of a command with these parameters."""
        found = ["clade", "import", self.params["hierarchy"], self.params["file"]]
        for option in self._options:
            value = self.params[str(option.name)]
            if option.name not in _OTHERS and value not in (None, False, [], option.default):
                values = value if option.multiple else [value]
                found += [word for one in values for word in (option.opts[0], *([] if one is True else [str(one)]))]
        return found


class Reading(NamedTuple):
    """A way to read a file that has passed all checks: its parameters, and the lines of the tree that it makes."""

    given: Given
    tree: Sequence[str]


Trial = Callable[[Given], Sequence[str]]
"""A trial of parameters on a file: the lines of the tree. Raises Doubt and BadInput as an import does."""


def readings(given: Given, doubt: Doubt, trial: Trial) -> tuple[list[Reading], str]:
    """The readings of a doubt that pass the checks, each with what further doubts add, the likeliest first; and what
    is wrong with the first one that fails.

    What else was seen counts only where none of them passes. Of readings that make one tree the first is taken.
    """
    trials, reasons = iter(range(MAX_TRIALS)), list[str]()

    def follow(given: Given, doubt: Doubt) -> Iterator[Reading]:
        has_passed = False
        for words in doubt.readings:
            more = given.with_reading(doubt, words)
            if more is None or next(trials, None) is None:
                continue
            try:
                found = [Reading(more, trial(more))]
            except Doubt as further:
                found = [*follow(more, further)]
                reasons.extend([] if found else [str(further)])
            except BadInput as error:
                reasons.append(str(error))
                continue
            has_passed = has_passed or bool(found)
            yield from found
        others = iter(() if has_passed or not doubt.readings else doubt.others)
        yield from next(filter(None, ([*follow(given, other)] for other in others)), [])

    found: dict[tuple[str, ...], Reading] = {}
    for one in follow(given, doubt):
        found.setdefault(tuple(one.tree), one)
    return [*found.values()][:MAX_READINGS], (reasons or [""])[0]


def advised(before: Given, doubt: Doubt, found: Sequence[Reading], reason: str) -> str:
    """The sentence of a doubt with the options of its readings, which are those of the trees shown above it; or, where
    none has passed, with what is wrong with the first of them.
    """
    if not found:
        return f"{doubt} Read so, it fails: {reason}" if reason else str(doubt)
    first, *others = [one.given.added(before) for one in found]
    ways = "".join([f", {words} the tree below it" for words in others])
    return f"{found[0].given.steps[0][0]}; {first} imports {'the first tree' if others else 'this tree'}{ways}."


def preview(plan: ImportPlan, of_part: str = "") -> list[str]:
    """The tree of a plan for a person: its first nodes, and the number of nodes by level and depth; `of_part` says of
    which rows, where these are not all.
    """
    counts: Counter[tuple[int, str]] = Counter()
    lines = list[str]()
    labels = {name: level.label for name, level in plan.hierarchy.levels.items()}
    for tree in plan.trees.values():
        is_packed = bool(tree.packed)
        nodes = tree.nodes
        counts.update((node.sk.count("#"), labels.get(node.level, node.level)) for node in nodes.values())
        if len(lines) < SHOWN_NODES:
            lines += islice(_drawn(nodes, labels), min(SHOWN_OF_TREE, SHOWN_NODES - len(lines)))
        if is_packed:
            tree.pack()
    lines += ["…"] if len(lines) < counts.total() else []
    level, *others = {level for _, level in counts} or {""}
    if not others:
        lines = [line.removesuffix(f" {level}") for line in lines]
    depths: defaultdict[int, list[str]] = defaultdict(list)
    for (depth, of_level), count in sorted(counts.items()):
        depths[depth].append(f"{count:,} {of_level}" if others else f"{count:,}")
    by_depth = [f"{' and '.join(found)} at depth {depth}" for depth, found in depths.items()]
    more = f", and {len(by_depth) - SHOWN_DEPTHS} more depths" if len(by_depth) > SHOWN_DEPTHS else ""
    total = quantity(counts.total(), "node" if others else f"{level} node".strip())
    return [*[f"  {line}" for line in lines], f"  {total}{of_part}: {', '.join(by_depth[:SHOWN_DEPTHS])}{more}."]


def _drawn(nodes: Mapping[str, Node], labels: Mapping[str, str]) -> Iterator[str]:
    """The nodes of a tree, each below its parent, a line each, of many children the first; `labels` are the names of
    levels.
    """
    below: defaultdict[str, list[Node]] = defaultdict(list)
    for sk, node in nodes.items():
        above = parent_sort_key(sk) if sk != "#" else ""
        below[above if above in nodes else ""].append(node)

    def drawn(place: str, indent: str) -> Iterator[str]:
        for node in below[place][:SHOWN_CHILDREN]:
            path = node.path
            key = path[-1] if place or len(path) == 1 else format_path(path)
            name = f" ({shorten(node.name)})" if node.name not in (None, path[-1]) else ""
            yield f"{indent}{shorten(key, 200)}{name} {labels.get(node.level, node.level)}"
            yield from drawn(node.sk, f"{indent}  ")
        if len(below[place]) > SHOWN_CHILDREN:
            yield f"{indent}… {len(below[place]) - SHOWN_CHILDREN:,} more"

    return drawn("", "")
