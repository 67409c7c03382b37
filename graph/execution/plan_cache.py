"""Plan cache: compiled plans by operation and by the values of the variables in directives, which decide whether a
field is there. Plans are kept as long as the parsed document at most, and bound to the variables of requests.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLObjectType, GraphQLSchema
from graphql.execution.values import VariableValues, get_argument_values, get_variable_values

from graph.errors import without_frames
from graph.execution.plan import ListRoot, LookupRoot, OperationPlan, RootField, SearchRoot
from graph.operation.document import ParsedDocument, nodes_in
from graph.operation.prepared import Prepared
from graph.operation.selection import LookAhead, SelectedFields, Types, has_variables
from graph.types.fields import resolver_of
from graph.types.lookups import Target
from resolvers.lists.arguments import Relation, Selection
from resolvers.lookup import Lookup
from resolvers.session.budget import RELATION_FIELDS
from store.cache import SieveCache
from store.errors import CladeError

CHARACTER_BYTES = 130  # of memory that a plan takes for each character of its document

MAX_PLANS_CHARACTERS = 300_000
"""Maximum characters of the documents of all plans, counted once for each plan: 40 MB in all."""

MAX_BOUND_CHARACTERS = 500
"""Maximum characters of a document with variables in its lists, for its bound plan to be cached: such a plan takes 25
bytes a character for each request, of which there may be a thousand.
"""

_NO_VARIABLES = VariableValues({}, {})

PlanKey = tuple[ParsedDocument, tuple[str | None, ...]]
"""By operation, and by the values that decide what a plan is."""


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
    """The plans of all documents: several of one that has variables in directives."""

    def __init__(self, schema: GraphQLSchema, types: Types) -> None:
        self._schema = schema
        self._types = types
        kinds = [kind for kind in map(schema.get_type, types.values()) if isinstance(kind, GraphQLObjectType)]
        fields = [(name, field) for kind in kinds for name, field in kind.fields.items()]
        self._interpreted = frozenset(name for name, field in fields if resolver_of(field) is None)
        """The names of the fields of nodes that no plan compiles."""
        self._plans: SieveCache[PlanKey, OperationPlan] = SieveCache(
            "plans",
            MAX_PLANS_CHARACTERS,
            weigh=lambda key, _: key[0].characters,
            bytes_each=CHARACTER_BYTES,
            evicted=lambda key, _: key[0].holders.pop(key),
        )

    def bind(self, prepared: Prepared) -> BoundPlan | None:
        """The plan of a request with its coerced variables; None where these are invalid."""
        variables, query = _NO_VARIABLES, prepared.request.query
        document, operation = prepared.document, prepared.operation
        if operation.variable_definitions:
            given = prepared.request.variables or {}
            coerced = get_variable_values(self._schema, operation.variable_definitions, given, max_errors=1)
            if isinstance(coerced, list):  # of errors
                return None
            variables = coerced
        bound = BoundPlan(self._plan(prepared, variables), variables)
        # A plan that others of its document may evict is held by no request.
        if not document.deciding and (bound.plan.look_ahead is not None or len(query) <= MAX_BOUND_CHARACTERS):
            prepared.bound = bound
        return bound

    def _plan(self, prepared: Prepared, variables: VariableValues) -> OperationPlan:
        document = prepared.document
        key = document, (prepared.name, *[repr(variables.coerced.get(name)) for name in document.deciding])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._compile(prepared, variables)
            document.hold(self._plans, key, plan)
        return plan

    def _compile(self, prepared: Prepared, variables: VariableValues) -> OperationPlan:
        parsed = prepared.document.document
        fields = SelectedFields(self._schema, self._types, parsed.definitions, prepared.operation, variables)
        varying = {id(node) for node in nodes_in(parsed) if isinstance(node, FieldNode) and has_variables(node)}
        return OperationPlan(fields, variables, varying, self._interpreted)
