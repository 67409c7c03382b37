"""How much a document asks for, as if its fragments were written out."""

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

# Wrappers of what is asked for: a list of nodes is one level, also where a gateway asks for it.
NOT_DEEPER = frozenset(("edges", "node", "nodes", "_entities"))
# How deep these go is bounded by the schema, and for the two of GraphQL by a rule of the validation.
INTROSPECTION = frozenset(("__schema", "__type", "_service"))

ROOT, ELSEWHERE = 0, -1  # places; all others are numbered from 1


class TooManyFields(Exception):
    """There are more fields than one cares to count: with fragments in fragments there may be billions."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A selection set that is still to be measured.

    `place` is where in the answer its fields stand, `depth` how deep, None where that is not counted, and `within` are
    the fragments that it stands in.
    """

    selections: SelectionSetNode
    place: int
    depth: int | None = 0
    within: frozenset[str] = frozenset()


class Size:
    """The largest depth, and numbers of aliases, fields at the root and fields of one name at one place.

    They are those of the largest operation. Gateways ask for `_entities` many times at once, so neither its aliases
    nor its places at the root are counted.
    """

    def __init__(self, document: DocumentNode, max_fields: int) -> None:
        """Raises TooManyFields where all operations together have more; spreads of fragments count as fields do."""
        self.depth = self.aliases = self.root_fields = self.repeats = 0
        self.introspects = False
        self._fields_left = max_fields
        self._fragments = {
            one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)
        }
        self._unused = dict(self._fragments)
        for one in document.definitions:
            if isinstance(one, OperationDefinitionNode):
                self._measure(Ahead(one.selection_set, ROOT))
        while self._unused:  # they are validated all the same
            name = next(iter(self._unused))
            self._measure(Ahead(self._unused.pop(name).selection_set, ELSEWHERE, within=frozenset((name,))))

    def _measure(self, start: Ahead) -> None:
        """Walk one operation. It keeps its own stack, so that no nesting is too deep for it."""
        self._aliases = self._root_fields = 0
        self._times: Counter[tuple[int, str]] = Counter()
        self._places: dict[tuple[int, str], int] = {}
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
        """What is to be measured next for a selection, if anything; circles are left to the validation."""
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
            self._root_fields += ahead.place == ROOT
        key = (ahead.place, field.alias.value if field.alias else name)
        self._times[key] += 1
        depth = ahead.depth
        if name in INTROSPECTION:
            self.introspects, depth = True, None
        elif depth is not None:
            depth += name not in NOT_DEEPER
            self.depth = max(self.depth, depth)
        if field.selection_set is None:
            return None
        # Fields of one name at one place are merged, and so is what stands below them.
        place = self._places.setdefault(key, len(self._places) + 1)
        return Ahead(field.selection_set, place, depth, ahead.within)
