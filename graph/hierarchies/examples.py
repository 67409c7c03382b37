"""Example queries: what GraphiQL's tabs hold and `clade serve` prints, made from the hierarchies that are served.

They are pure functions of the hierarchy classes and of samples (some paths of stored nodes), so that each query returns
data. In an empty store they return no nodes, without an error.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from graphql import parse, print_ast

from graph.hierarchies.node import Node
from graph.hierarchies.registry import camel, field_of, input_field_of, list_field_of
from resolvers.lists.arguments import ConnectionArguments, NoSelection, Relation, RelationKind
from resolvers.pages import read_pages
from resolvers.planner import list_request
from resolvers.session.request import Request
from resolvers.trees import read_roots
from store.engine import Store
from store.errors import CladeError
from store.model.attributes import COMPOUND, Attribute, Kind
from store.model.records import Record

MAX_ATTRIBUTES = 3  # of a level, in one example
NEW_KEY = "example"
_ONLY_IN_EDITORS = re.compile(r"#[^\n]*\n|^(query|mutation) \w+(\([^)]*\))? ?", re.MULTILINE)

SAMPLE_SECONDS = 2.0  # at most; without samples the examples have made-up paths
_VALUES: Mapping[Kind, Any] = {
    Kind.TEXT: "example", Kind.INT: 1, Kind.LONG: 1, Kind.FLOAT: 1.0, Kind.DECIMAL: "1", Kind.BOOLEAN: True,
    Kind.DATE: "2026-01-01", Kind.DATETIME: "2026-01-01T00:00:00Z", Kind.URL: "https://example.com/",
    Kind.MONEY: {"amount": "1.00", "currency": "EUR"}, Kind.LOCALIZED: [{"language": "en", "text": "example"}],
}  # fmt: skip
_WORDS = ("Example", "EXAMPLE", "a", "A", "EX", "EXA", "1", "12", "123", "1234", "12345", "123456", "A1", "A-1")

_ONE = ConnectionArguments(first=1)
_FIRST_CHILD = Relation(RelationKind.CHILDREN, _ONE, NoSelection())
_FIRST_ROOT = Relation(RelationKind.ROOTS, _ONE, NoSelection(), counts=True)


@dataclass(frozen=True)
class Sample:
    """Some nodes that a hierarchy holds: `path` and `level` of its first root's first child, or of that root itself.

    `root` is the path of the root, and `below` the level of which there are most below it, empty where it is a leaf.
    """

    root: str
    path: str
    level: str
    below: str = ""


@dataclass(frozen=True)
class Example:
    """One query or mutation, as GraphiQL shows it in a tab."""

    name: str
    query: str
    variables: Mapping[str, Any] = field(default_factory=dict)

    def one_line(self) -> str:
        """The same without comment, name and variables, whose values stand in their places."""
        text = " ".join(_ONLY_IN_EDITORS.sub("", self.query).split())
        return re.sub(r"\$(\w+)", lambda found: json.dumps(self.variables[found[1]], ensure_ascii=False), text)


def example_queries(
    classes: Sequence[type[Node]], samples: Mapping[str, Sample], *, writable: bool = False
) -> list[Example]:
    """Examples of the first hierarchy, then the roots of each other; `samples` are by hierarchy, and may lack some.

    `writable` adds a mutation, which is a dry run. The first example has no variables: GraphiQL shows none in the tab
    that it opens with.
    """
    first, *others = classes
    sample = samples.get(first.name) or _made_up(first)
    found = [_roots(first), _breadcrumb(first, sample)]
    if sample.below:
        found.append(_one_level(first, sample))
    if writable:
        found.append(_create(first, sample, is_there=first.name in samples))
    return found + [_roots(cls) for cls in others]


def _made_up(cls: type[Node]) -> Sample:
    """Paths that could be there, for a hierarchy without nodes."""
    root = next(level for level in cls.levels.values() if None in level.under)
    below = next((level.level for level in cls.levels.values() if root.level in level.under), "")
    path = f"{root.title}1"
    return Sample(path, path, root.level, below)


def _roots(cls: type[Node]) -> Example:
    name = list_field_of(cls)
    comment = f"# Roots of {cls.name}, each with its children.\n# Ctrl-Enter runs it, Ctrl-Space completes a word."
    nodes = "nodes { path name level children(first: 5) { nodes { name level } } }"
    return _example(comment, name[:1].upper() + name[1:], "", f"{name}(first: 10) {{ {nodes} }}")


def _breadcrumb(cls: type[Node], sample: Sample) -> Example:
    level = cls.levels[sample.level]
    leaves = [name for name, (_, attribute) in level.attributes.items() if attribute.kind not in COMPOUND]
    own = " ".join(camel(name) for name in leaves[:MAX_ATTRIBUTES])
    attributes = f"... on {cls.prefix}{level.title} {{ {own} }}" if own else ""
    fields = f"{field_of(cls.prefix + cls.title)}(path: $path) {{ name level {attributes} ancestors {{ path name }} }}"
    comment = "# A node by its path, and all nodes above it."
    return _example(comment, "Breadcrumb", "($path: Path!)", fields, {"path": sample.path})


def _one_level(cls: type[Node], sample: Sample) -> Example:
    comment = "# One level below a node, page by page:\n# the endCursor of a page is the after of the next."
    page = "totalCount nodes { path name } pageInfo { hasNextPage endCursor }"
    listing = f"descendants(level: {cls.levels[sample.below].label}, first: $first, after: $after) {{ {page} }}"
    variables = {"path": sample.root, "first": 10, "after": None}
    given = "($path: Path!, $first: Int!, $after: String)"
    return _example(
        comment, "OneLevel", given, f"{field_of(cls.prefix + cls.title)}(path: $path) {{ {listing} }}", variables
    )


def _example(comment: str, name: str, given: str, fields: str, variables: Mapping[str, Any] | None = None) -> Example:
    query = print_ast(parse(f"query {name}{given} {{ {fields} }}"))
    return Example(name, f"{comment}\n{query}\n", variables or {})


_CREATE = """# Makes a node. A dry run writes nothing and answers
# what it would; set dryRun to false to write.
mutation CreateTITLE($input: CreateTITLEInput!, $dryRun: Boolean!) {
  createTITLE(input: $input, dryRun: $dryRun) {
    node {
      id
      path
    }
    plan {
      nodes
      writeUnits
    }
    userErrors {
      message
      field
    }
  }
}
"""


def _create(cls: type[Node], sample: Sample, *, is_there: bool) -> Example:
    """A mutation that makes a sibling of the sample, or a first root."""
    level, title = cls.levels[sample.level], cls.prefix + cls.title
    own = [attribute for _, attribute in level.attributes.values()]
    has_parent = is_there and sample.root != sample.path
    given: dict[str, Any] = {"parent": {"path": sample.root}} if has_parent else {}
    given |= {
        "key": NEW_KEY, "name": "An example", "attributes": {camel(input_field_of(level.title)): _required(own)},
    }  # fmt: skip
    return Example(f"Create{title}", _CREATE.replace("TITLE", title), {"input": given, "dryRun": True})


def _required(attributes: Iterable[Attribute]) -> dict[str, Any]:
    """Values of those of these attributes that a new node must have."""
    return {camel(one.name): _example_value(one) for one in attributes if one.rules.required}


def _example_value(attribute: Attribute) -> Any:
    """A value that an attribute accepts, unless its pattern accepts no word of these."""
    value: Any
    if attribute.kind is Kind.ENUM:
        value = min(attribute.members)
    elif attribute.kind is Kind.NESTED:
        value = _required(attribute.parts)
    else:
        rules = attribute.rules
        least = rules.minimum if rules.minimum is not None else rules.maximum
        words: list[Any] = [_VALUES[attribute.kind]] if least is None else [least]
        if rules.matches is not None:
            words = [word for word in (*words, *_WORDS) if rules.matches(word)] or words
        value = words[0][: attribute.max_length] if isinstance(words[0], str) else words[0]
    return [value] if attribute.many else value


async def read_samples(store: Store, classes: Sequence[type[Node]]) -> dict[str, Sample]:
    """A sample of each hierarchy by its name, by three requests to the store each; none where it is empty or fails."""
    request = Request(store, {cls.name: cls.definition() for cls in classes})
    found = {}
    with suppress(CladeError, TimeoutError):
        async with asyncio.timeout(SAMPLE_SECONDS):
            for cls in classes:
                page = await read_roots(request, cls.name, _FIRST_ROOT)
                for root in page.records:
                    found[cls.name] = await _sample(request, cls, root)
    return {name: sample for name, sample in found.items() if sample is not None}


async def _sample(request: Request, cls: type[Node], root: Record) -> Sample | None:
    """The first child of a root, or the root itself; None where its level is one that the classes have not."""
    (children,) = await read_pages(request, [list_request(root, _FIRST_CHILD)])
    records = [] if isinstance(children, Exception) else children.records
    known = [record for record in (*records, root) if record.level in cls.levels]
    counts = {level: count for level, count in root.descendant_counts.items() if level in cls.levels}
    below = max(counts, key=lambda level: counts[level], default="")
    if not known:
        return None
    return Sample(root.path_text, known[0].path_text, known[0].level, below)
