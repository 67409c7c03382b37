"""Document limits: the maximum size of one GraphQL document, and of the input values that a request gives to it.

A document is measured before it is validated, compiled or executed: validation compares fields pairwise and plans
follow every fragment, so one that is too large is rejected before both. A cached document has passed, and is not
measured again.

Input values are counted before any value is coerced. A scalar, a list and an object each count as one, with their
elements and fields. Literals and variables count at each place where they are used, since each use is coerced by
itself; those in a fragment count wherever it is spread.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    InlineFragmentNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    is_input_object_type,
    parse,
)

from graph.errors import LIMIT_EXCEEDED
from graph.operation.limit_values import LimitValues
from store.errors import Forbidden

MAX_LEVELS = 32  # of lists and objects in each other: more than any input of a schema has

# Wrappers of nodes: a list of nodes is one level of depth, also for a gateway.
NOT_DEEPER = frozenset(("edges", "node", "nodes", "_entities"))
# Their depth is bounded by the schema, and for GraphQL's own two by a rule of the validation.
INTROSPECTION = frozenset(("__schema", "__type", "_service"))

INPUT_VALUES = "input values in literals and variables"
SPLIT = "Ask in several requests."


class DocumentLimits(LimitValues):
    """The limits of one document, and the parser that applies them."""

    def parse(self, query: str) -> "tuple[DocumentNode, Inputs]":
        """The parsed document, and the input values of its operations.

        Raises GraphQLError for a syntax error, and for a document that exceeds a limit.
        """
        try:
            document = parse(
                query,
                max_lexical_tokens=self.max_tokens,
                max_comments=self.max_tokens,
                allow_empty_selection_sets=False,  # by default graphql-core takes them, though the grammar has none
            )
        except GraphQLSyntaxError as error:
            if "Document contains more than" not in error.message:
                raise
            raise _too_much(f"more than {self.max_tokens:,}", "tokens", self.max_tokens) from None
        size = Size(document, self.max_fields)
        for found, unit, limit, way_out in (
            (size.depth, "levels of fields", self.max_depth, "Ask in several requests, or raise CLADE_MAX_DEPTH."),
            (size.aliases, "aliases", self.max_aliases, SPLIT),
            (size.repeats, "fields of one name in one selection set", self.max_repeats, SPLIT),
            (size.literals, INPUT_VALUES, self.max_input_values, SPLIT),
        ):
            if found > limit:
                raise _too_much(f"{found:,}", unit, limit, way_out)
        if size.introspects and not self.introspection:
            raise GraphQLError("Introspection is disabled.", extensions={"code": Forbidden.code})
        return document, size.inputs

    def check_inputs(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        inputs: "InputValues",
        variables: Mapping[str, Any],
    ) -> None:
        """Raise GraphQLError where an operation of a parsed document has too many input values with these variables."""
        if (found := inputs.count(schema, operation, variables)) > self.max_input_values:
            raise _too_much(f"{found:,}", INPUT_VALUES, self.max_input_values)


@dataclass
class InputValues:
    """The input values of one operation: the number of its literals, and how often it uses each variable."""

    literals: int = 0
    uses: Counter[str] = field(default_factory=Counter)

    def add(self, node: FieldNode) -> None:
        """Count the arguments of a field at one of its places."""
        for argument in node.arguments or ():
            literals, uses = _counted(argument.value)
            self.literals += literals
            self.uses.update(uses)

    def count(self, schema: GraphQLSchema, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> int:
        """The number of values with these variables. Raises GraphQLError for one that is nested too deeply."""
        total = self.literals
        for definition in operation.variable_definitions or ():
            name = definition.variable.name.value
            if name in variables:
                value, size = variables[name], 1
                if isinstance(value, list | dict):
                    kind: Any = definition.type
                    while hasattr(kind, "type"):
                        kind = kind.type
                    size = _size(name, value, is_object=is_input_object_type(schema.get_type(kind.name.value)))
            elif definition.default_value is not None:
                size, _ = _counted(definition.default_value)
            else:
                continue
            total += size * max(1, self.uses[name])  # one that is not used is coerced as well
        return total


Inputs = Mapping[str, InputValues]
"""The input values of each operation of a document, by its name, which is empty where it has none."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A selection set that is still to be measured.

    `position` is that of its fields in the response, 0 at its root, `depth` their depth, None where it is not counted,
    and `within` the fragments around it.
    """

    selections: SelectionSetNode
    position: int = 0
    depth: int | None = 0
    within: frozenset[str] = frozenset()


class Size:
    """The depth, and the numbers of aliases, fields of one name at one position, and literals.

    Each is that of the largest operation. Gateways select `_entities` many times, so its aliases are not counted.
    """

    def __init__(self, document: DocumentNode, max_fields: int) -> None:
        """Raises GraphQLError where all operations together have more than `max_fields`; spreads count as fields."""
        self.depth = self.aliases = self.repeats = self.literals = 0
        self.inputs: dict[str, InputValues] = {}
        self.introspects = False
        self._max_fields = self._fields_left = max_fields
        definitions = document.definitions
        self._fragments = {one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)}
        self._unused = dict(self._fragments)
        for definition in definitions:
            if isinstance(definition, OperationDefinitionNode):
                self._measure(Ahead(definition.selection_set))
                self.inputs[definition.name.value if definition.name else ""] = self._inputs
        while self._unused:  # they are validated, too
            name = next(iter(self._unused))
            self._measure(Ahead(self._unused.pop(name).selection_set, within=frozenset((name,))))

    def _measure(self, start: Ahead) -> None:
        """Measure one operation, with a stack of its own, so that nesting of any depth is measured."""
        self._aliases = 0
        self._inputs = InputValues()
        self._times: Counter[tuple[int, str]] = Counter()
        self._positions: dict[tuple[int, str], int] = {}
        stack = [start]
        while stack:
            ahead = stack.pop()
            for selection in ahead.selections.selections:
                self._fields_left -= 1
                if self._fields_left < 0:  # with fragments in fragments there may be billions
                    limit = self._max_fields
                    raise _too_much(f"more than {limit:,}", "fields, with fragments expanded", limit)
                if isinstance(selection, FieldNode):
                    if (below := self._field(selection, ahead)) is not None:
                        stack.append(below)
                elif isinstance(selection, InlineFragmentNode):
                    stack.append(replace(ahead, selections=selection.selection_set))
                elif isinstance(selection, FragmentSpreadNode):
                    name = selection.name.value
                    self._unused.pop(name, None)
                    if name in self._fragments and name not in ahead.within:  # cycles are left to the validation
                        selections = self._fragments[name].selection_set
                        stack.append(replace(ahead, selections=selections, within=ahead.within | {name}))
        self.aliases = max(self.aliases, self._aliases)
        self.repeats = max([self.repeats, *self._times.values()])
        self.literals = max(self.literals, self._inputs.literals)

    def _field(self, field: FieldNode, ahead: Ahead) -> Ahead | None:
        """Count a field; returns the selection set below it, if any."""
        name = field.name.value
        self._inputs.add(field)
        self._aliases += field.alias is not None and name != "_entities"
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


def _counted(value: ValueNode) -> tuple[int, list[str]]:
    """The number of values in a literal, and the names of the variables in it."""
    literals, names = 0, []
    ahead = [value]
    while ahead:
        node = ahead.pop()
        if isinstance(node, VariableNode):
            names.append(node.name.value)
            continue
        literals += 1
        if isinstance(node, ListValueNode):
            ahead += node.values
        elif isinstance(node, ObjectValueNode):
            ahead += [one.value for one in node.fields]
    return literals, names


def _size(name: str, value: Any, *, is_object: bool) -> int:
    """The number of values in a variable; the content of a scalar is not counted, whatever it is."""
    size, level = 0, 0
    ahead = [value]
    while ahead:
        if level > MAX_LEVELS:
            raise GraphQLError(
                f"The variable ${name} has more than {MAX_LEVELS} levels of lists and objects; nest them less.",
                extensions={"code": LIMIT_EXCEEDED, "limit": MAX_LEVELS},
            )
        size += len(ahead)
        below: list[Any] = []
        for one in ahead:
            if isinstance(one, list):
                below += one
            elif is_object and isinstance(one, dict):
                below += one.values()
        ahead, level = below, level + 1
    return size


def _too_much(found: str, unit: str, limit: int, way_out: str = SPLIT) -> GraphQLError:
    """The error for a document that exceeds a limit."""
    message = f"The query has {found} {unit}; the limit is {limit:,}. {way_out}"
    return GraphQLError(message, extensions={"code": LIMIT_EXCEEDED, "limit": limit})
