"""Plan cache: compiled plans by operation and by the values of the variables in directives, which decide whether a
field is there. Plans are kept with the parsed document, and bound to the variables of requests.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    VariableNode,
)
from graphql.execution.values import VariableValues, get_argument_values, get_variable_values

from graph.errors import without_frames
from graph.execution.plan import ListRoot, LookupRoot, OperationPlan, RootField, SearchRoot
from graph.operation.document import GraphQLRequest, ParsedDocument
from graph.operation.selection import LookAhead, SelectedFields, Types, has_variables
from graph.types.fields import resolver_of
from graph.types.lookups import Target
from resolvers.lists.arguments import Relation, Selection
from resolvers.lookup import Lookup
from resolvers.session.budget import RELATION_FIELDS
from store.cache import BoundedCache
from store.errors import CladeError

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
        self.plan, self.variables = plan, variables
        self.look_ahead = plan.look_ahead or LookAhead(plan.fields, variables)
        self.looked_up: list[tuple[LookupRoot, Sequence[Target]]] = []
        """The fields of Query that look nodes up, with the targets that their arguments name."""
        self.lookups: list[tuple[Lookup, Selection]] = []
        self.listed: list[tuple[ListRoot, Relation]] = []
        self.searched: list[tuple[SearchRoot, Mapping[str, Any]]] = []
        """The fields of Query that list roots or find nodes, with their arguments."""
        self.roots = [root for root in plan.roots if self._bind(root)]
        self.interpreted = {**plan.grouped}
        """The merged fields of Query that are not compiled, or whose arguments are invalid."""
        for root in self.roots:
            del self.interpreted[root.key]
        self.count = len(self.roots) + (RELATION_FIELDS - 1) * (len(self.listed) + len(self.searched))
        """What `roots` count as in the budget."""

    def _bind(self, root: RootField) -> bool:
        """Take a compiled field with its arguments; returns whether these are valid."""
        try:
            if isinstance(root, ListRoot):
                self.listed.append((root, self.look_ahead.relation(root.listing.relation)))
            elif isinstance(root, SearchRoot):
                self.searched.append((root, get_argument_values(root.definition, root.node, self.variables)))
            elif isinstance(root, LookupRoot):
                targets = root.resolve.targets(get_argument_values(root.definition, root.node, self.variables))
                self.looked_up.append((root, targets))
                selection = self.look_ahead.selection(root.position.selected)
                self.lookups += [
                    (target, selection.expecting(field.level)) for field, target in targets if target is not None
                ]
        except (CladeError, GraphQLError) as error:  # the interpreter meets it again, and reports it with its path
            without_frames(error)  # the look-ahead may keep it
            return False
        return True


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
        """The plan of an operation with its coerced variables; None where these are invalid."""
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
        plan: OperationPlan | None = plans.get(key)
        if plan is None:
            plan = self._compile(document, operation, variables)
            plans.put(key, plan)
            self._limit_several(document, sum(map(len, key)) + len(request.query))
        return BoundPlan(plan, variables)

    def _compile(
        self, document: ParsedDocument, operation: OperationDefinitionNode, variables: VariableValues
    ) -> OperationPlan:
        parsed = document.document
        fields = SelectedFields(self._schema, self._types, parsed.definitions, operation, variables)
        varying = {id(node) for node in _nodes_in(parsed) if isinstance(node, FieldNode) and has_variables(node)}
        return OperationPlan(fields, variables, varying, self._interpreted)

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
