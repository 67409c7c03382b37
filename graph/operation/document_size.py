"""Document size: depth, aliases and repeated fields of a document, with fragments counted wherever they are spread."""

from collections import Counter
from dataclasses import dataclass, replace

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
)

# Wrappers of nodes: a list of nodes is one level of depth, also for a gateway.
NOT_DEEPER = frozenset(("edges", "node", "nodes", "_entities"))
# Their depth is bounded by the schema, and for GraphQL's own two by a rule of the validation.
INTROSPECTION = frozenset(("__schema", "__type", "_service"))

ROOT, ELSEWHERE = 0, -1  # positions; all others are numbered from 1


class TooManyFields(Exception):
    """The document has more fields than its maximum: with fragments in fragments there may be billions."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A selection set that is still to be measured.

    `position` is that of its fields in the response, `depth` their depth, None where it is not counted, and `within`
    the fragments around it.
    """

    selections: SelectionSetNode
    position: int
    depth: int | None = 0
    within: frozenset[str] = frozenset()


class Size:
    """The depth, and the numbers of aliases, root fields and fields of one name at one position.

    Each is that of the largest operation. Gateways select `_entities` many times, so neither its aliases nor its root
    fields are counted.
    """

    def __init__(self, document: DocumentNode, max_fields: int) -> None:
        """Raises TooManyFields where all operations together have more than `max_fields`; spreads count as fields."""
        self.depth = self.aliases = self.root_fields = self.repeats = 0
        self.introspects = False
        self._fields_left = max_fields
        self._fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        self._unused = dict(self._fragments)
        for definition in document.definitions:
            if isinstance(definition, OperationDefinitionNode):
                self._measure(Ahead(definition.selection_set, ROOT))
        while self._unused:  # they are validated, too
            name = next(iter(self._unused))
            self._measure(Ahead(self._unused.pop(name).selection_set, ELSEWHERE, within=frozenset((name,))))

    def _measure(self, start: Ahead) -> None:
        """Measure one operation, with a stack of its own, so that nesting of any depth is measured."""
        self._aliases = self._root_fields = 0
        self._times: Counter[tuple[int, str]] = Counter()
        self._positions: dict[tuple[int, str], int] = {}
        stack = [start]
        while stack:
            ahead = stack.pop()
            for selection in ahead.selections.selections:
                self._fields_left -= 1
                if self._fields_left < 0:
                    raise TooManyFields
                below = self._below(selection, ahead)
                if below is not None:
                    stack.append(below)
        self.aliases = max(self.aliases, self._aliases)
        self.root_fields = max(self.root_fields, self._root_fields)
        self.repeats = max([self.repeats, *self._times.values()])

    def _below(self, selection: SelectionNode, ahead: Ahead) -> Ahead | None:
        """The selection set below a selection, if any; cycles are left to the validation."""
        if isinstance(selection, FieldNode):
            return self._field(selection, ahead)
        if isinstance(selection, InlineFragmentNode):
            return replace(ahead, selections=selection.selection_set)
        assert isinstance(selection, FragmentSpreadNode)  # noqa: S101  # there are no more kinds
        name = selection.name.value
        self._unused.pop(name, None)
        if name in ahead.within or name not in self._fragments:
            return None
        return replace(ahead, selections=self._fragments[name].selection_set, within=ahead.within | {name})

    def _field(self, field: FieldNode, ahead: Ahead) -> Ahead | None:
        name = field.name.value
        if name != "_entities":
            self._aliases += field.alias is not None
            self._root_fields += ahead.position == ROOT
        key = (ahead.position, field.alias.value if field.alias else name)
        self._times[key] += 1
        depth = ahead.depth
        if name in INTROSPECTION:
            self.introspects, depth = True, None
        elif depth is not None:
            depth += name not in NOT_DEEPER
            self.depth = max(self.depth, depth)
        if field.selection_set is None:
            return None
        # Fields of one name at one position are merged, and so are the fields below them.
        position = self._positions.setdefault(key, len(self._positions) + 1)
        return Ahead(field.selection_set, position, depth, ahead.within)
