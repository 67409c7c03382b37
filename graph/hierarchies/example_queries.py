"""Example queries: what GraphiQL's tabs hold and `clade serve` prints, made from the hierarchies that are served.

They are pure functions of the hierarchy classes and of some paths that the store holds, so that each finds something;
in an empty store they find nothing and fail nowhere.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph.hierarchies.names import camel, field_of, input_field_of, list_field_of
from graph.hierarchies.node import Node

MAX_ATTRIBUTES = 3  # of a level, in one example
NEW_KEY = "example"
_ONLY_IN_EDITORS = re.compile(r"#[^\n]*\n|^(query|mutation) \w+(\([^)]*\))? ?", re.MULTILINE)


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
    found = [_roots(first), _breadcrumb(first, sample), *_level(first, sample)]
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
    return Example(
        _title(name),
        f"""# Roots of {cls.name}, each with its children.
# Ctrl-Enter runs it, Ctrl-Space completes a word.
query {_title(name)} {{
  {name}(first: 10) {{
    nodes {{
      path
      name
      level
      children(first: 5) {{
        nodes {{
          name
          level
        }}
      }}
    }}
  }}
}}
""",
    )


def _breadcrumb(cls: type[Node], sample: Sample) -> Example:
    level = cls.levels[sample.level]
    own = "\n      ".join(camel(name) for name in list(level.attributes)[:MAX_ATTRIBUTES])
    attributes = f"\n    ... on {cls.prefix}{level.title} {{\n      {own}\n    }}" if own else ""
    return Example(
        "Breadcrumb",
        f"""# A node by its path, and all nodes above it.
query Breadcrumb($path: Path!) {{
  {_node_field(cls)}(path: $path) {{
    name
    level{attributes}
    ancestors {{
      path
      name
    }}
  }}
}}
""",
        {"path": sample.path},
    )


def _level(cls: type[Node], sample: Sample) -> Iterator[Example]:
    if sample.below:
        yield Example(
            "OneLevel",
            f"""# One level below a node, page by page:
# the endCursor of a page is the after of the next.
query OneLevel($path: Path!, $first: Int!, $after: String) {{
  {_node_field(cls)}(path: $path) {{
    descendants(level: {sample.below}, first: $first, after: $after) {{
      totalCount
      nodes {{
        path
        name
      }}
      pageInfo {{
        hasNextPage
        endCursor
      }}
    }}
  }}
}}
""",
            {"path": sample.root, "first": 10, "after": None},
        )


_CREATE = """# Makes a node. A dry run writes nothing and answers
# what it would; set dryRun to false to write.
mutation CreateTITLE(
  $parent: Path
  $key: String!
  $name: String!
  $attributes: TITLEAttributes!
  $dryRun: Boolean!
) {
  createTITLE(
    parent: $parent
    key: $key
    name: $name
    attributes: $attributes
    dryRun: $dryRun
  ) {
    node {
      id
      path
    }
    plan {
      nodes
      writeUnits
    }
  }
}
"""


def _create(cls: type[Node], sample: Sample, *, is_there: bool) -> Example:
    """A mutation that makes a sibling of the sample, or a first root."""
    level, title = cls.levels[sample.level], cls.prefix + cls.title
    variables: dict[str, Any] = {
        "parent": sample.root if is_there and sample.root != sample.path else None,
        "key": NEW_KEY,
        "name": "An example",
        # A level without attributes is said by `true`.
        "attributes": {camel(input_field_of(level.title)): {} if level.attributes else True},
        "dryRun": True,
    }
    return Example(f"Create{title}", _CREATE.replace("TITLE", title), variables)


def _node_field(cls: type[Node]) -> str:
    return field_of(cls.prefix + cls.title)


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]
