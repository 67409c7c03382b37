"""Plan cache: compiled plans by operation and by the values of the variables in directives, which decide whether a
field is there. Plans are kept with the parsed document, and bound to the variables of requests.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakSet

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLIncludeDirective,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSkipDirective,
    OperationDefinitionNode,
    SelectionNode,
    VariableNode,
)
from graphql.execution.values import VariableValues, get_directive_values, get_variable_values

from graph.errors import UnsupportedByPlan
from graph.execution.plan import LookupRoot, OperationPlan
from graph.operation.document import GraphQLRequest, ParsedDocument
from graph.operation.selection import LookAhead, SelectedFields, Types, has_variables, resolver_arguments
from graph.types.fields import resolver_of
from graph.types.lookups import Target
from resolvers.lists.arguments import Selection
from resolvers.lookup import Lookup
from store.cache import BoundedCache

CHARACTER_BYTES = 130  # of memory that a plan takes for each character of its document

MAX_SEVERAL_CHARACTERS = 300_000
"""Maximum characters of the documents that have several plans, counted once for each plan, with the deciding values:
40 MB in all.
"""

MAX_BOUND_CHARACTERS = 500
"""Maximum characters of a document with variables in its lists, for its bound plan to be cached: such a plan takes 25
bytes a character for each request, of which there may be a thousand.
"""

_NO_VARIABLES = VariableValues({}, {})


class BoundPlan:
    """A plan with the variables of one request: its look-ahead, and all that it looks up."""

    def __init__(self, plan: OperationPlan, variables: VariableValues) -> None:
        """Raises GraphQLError where the variables do not fit, BadInput for invalid arguments."""
        self.plan = plan
        self.look_ahead = plan.look_ahead or LookAhead(plan.fields, variables)
        self.looked_up: list[tuple[LookupRoot, Sequence[Target]]] = []
        """The fields of Query that look nodes up, with the targets that their arguments name."""
        self.lookups: list[tuple[Lookup, Selection]] = []
        self.searched = [(root, resolver_arguments(root.definition, root.node, variables)) for root in plan.searched]
        """The fields of Query that find nodes, with their arguments."""
        for root in plan.looked_up:
            targets = root.resolve.targets(resolver_arguments(root.definition, root.node, variables))
            self.looked_up.append((root, targets))
            selection = self.look_ahead.selection(root.position.selected)
            self.lookups += [
                (target, selection.expecting(field.level)) for field, target in targets if target is not None
            ]


class PlanCache:
    """The plans of all documents, at most `keep` of each."""

    def __init__(self, schema: GraphQLSchema, types: Types, *, keep: int = 16) -> None:
        self._schema = schema
        self._types = types
        self._keep = keep
        kinds = [kind for kind in map(schema.get_type, types.values()) if isinstance(kind, GraphQLObjectType)]
        fields = [(name, field) for kind in kinds for name, field in kind.fields.items()]
        self._interpreted = frozenset(name for name, field in fields if resolver_of(field) is None)
        """The names of the fields of nodes that no plan compiles."""
        self._several: WeakSet[ParsedDocument] = WeakSet()
        self._characters = 0

    def get(
        self, document: ParsedDocument, operation: OperationDefinitionNode, request: GraphQLRequest
    ) -> BoundPlan | None:
        """The plan of an operation with its coerced variables; None where the operation has to be interpreted."""
        found: BoundPlan | None = document.bound.get(request)
        if found is not None:
            return found
        found = self._bind(document, operation, request)
        if found is None or document.deciding:  # with deciding variables more than `keep` plans would be held
            return found
        if found.plan.look_ahead is not None or len(request.query) <= MAX_BOUND_CHARACTERS:
            document.bound[request] = found
        return found

    def _bind(
        self, document: ParsedDocument, operation: OperationDefinitionNode, request: GraphQLRequest
    ) -> BoundPlan | None:
        variables = _NO_VARIABLES
        if operation.variable_definitions:
            given = request.variables or {}
            coerced = get_variable_values(self._schema, operation.variable_definitions, given, max_errors=1)
            if isinstance(coerced, list):  # of errors
                return None
            variables = coerced
        if document.deciding is None:
            document.deciding = _deciding_variables(document.document)
        values = [repr(variables.coerced.get(name)) for name in document.deciding]
        key = (operation.name.value if operation.name else "", *values)
        plans = document.plans
        if plans is None:
            size = CHARACTER_BYTES * len(request.query)
            plans = document.plans = BoundedCache("plans", self._keep, bytes_each=size)
        if key in plans:
            plan = plans.get(key)
        else:
            plan = self._compile(document, operation, variables)
            plans.put(key, plan)
            self._limit_several(document, sum(map(len, key)) + len(request.query))
        return None if plan is None else BoundPlan(plan, variables)

    def _compile(
        self, document: ParsedDocument, operation: OperationDefinitionNode, variables: VariableValues
    ) -> OperationPlan | None:
        parsed = document.document
        if _has_field(parsed, operation, variables, self._interpreted):
            return None
        fields = SelectedFields(self._schema, self._types, parsed.definitions, operation, variables)
        nodes = [node for node in _nodes_in(parsed) if isinstance(node, FieldNode)]
        try:
            return OperationPlan(fields, variables, {id(node) for node in nodes if has_variables(node)})
        except UnsupportedByPlan:
            return None

    def _limit_several(self, document: ParsedDocument, characters: int) -> None:
        """Count a plan of a document that can have several; past the limit the plans of all these are dropped."""
        if document.deciding:
            self._several.add(document)
            self._characters += characters
        if self._characters > MAX_SEVERAL_CHARACTERS:
            for several in self._several:
                if several.plans is not None:
                    several.plans.clear()
            self._several.clear()
            self._characters = 0


def _deciding_variables(document: DocumentNode) -> list[str]:
    """The variables in directives, on whose values a plan depends."""
    directives = [directive for node in _nodes_in(document) for directive in node.directives or ()]
    values = [argument.value for directive in directives for argument in directive.arguments or ()]
    return sorted({value.name.value for value in values if isinstance(value, VariableNode)})


def _nodes_in(document: DocumentNode) -> Iterator[Any]:
    """Every node of a document that can have directives, in no order; fragments once, as they are written."""
    ahead: list[Any] = list(document.definitions)
    while ahead:
        node = ahead.pop()
        yield node
        ahead += getattr(node, "variable_definitions", None) or ()
        selections = getattr(node, "selection_set", None)
        ahead += selections.selections if selections else ()


def _has_field(
    document: DocumentNode, operation: OperationDefinitionNode, variables: VariableValues, names: frozenset[str]
) -> bool:
    """Whether an operation selects, below its root fields, a field of one of these names."""
    definitions = document.definitions
    fragments = {one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)}
    ahead: list[tuple[bool, SelectionNode]] = [(True, one) for one in operation.selection_set.selections]
    while ahead:
        is_root, node = ahead.pop()
        if node.directives:
            skip = get_directive_values(GraphQLSkipDirective, node, variables)
            include = get_directive_values(GraphQLIncludeDirective, node, variables)
            if (skip and skip["if"]) or (include and not include["if"]):
                continue
        if isinstance(node, FieldNode):
            if not is_root and node.name.value in names:
                return True
            is_root = False
        below: Any = fragments.pop(node.name.value, None) if isinstance(node, FragmentSpreadNode) else node
        if below is not None and below.selection_set:
            ahead += [(is_root, one) for one in below.selection_set.selections]
    return False
