"""Plan cache: compiled plans by operation and by the values of the variables in directives, which decide whether a
field is there. Plans are kept as long as the parsed document at most, and bound to the variables of requests.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLObjectType, GraphQLSchema, OperationDefinitionNode
from graphql.execution.values import VariableValues, get_variable_values

from graph.errors import BAD_USER_INPUT, MAX_ERRORS_PER_CODE, request_error
from graph.execution.plan import LookAhead, OperationPlan, ReadField, arguments_of
from graph.operation.document import ParsedDocument, nodes_in
from graph.operation.prepared import MAX_BOUND_CHARACTERS, Prepared
from graph.operation.selection import SelectedFields, Types, has_variables
from graph.types.fields import resolver_of
from graph.types.lookups import LookupField, RootsField, Target
from graph.types.search import SearchField
from resolvers.lists.arguments import Selection
from resolvers.lookup import Lookup
from store.cache import SieveCache
from store.errors import CladeError

CHARACTER_BYTES = 130  # of memory that a plan takes for each character of its document

MAX_PLANS_CHARACTERS = 300_000
"""Maximum characters of the documents of all plans, counted once for each plan: 40 MB in all."""

_NO_VARIABLES = VariableValues({}, {})

PlanKey = tuple[ParsedDocument, tuple[str | None, ...]]
"""By operation, and by the values that decide what a plan is."""


class BoundPlan:
    """A plan with the variables of one request: its look-ahead, and all that the fields of Query are asked with."""

    def __init__(self, plan: OperationPlan, variables: VariableValues) -> None:
        self.plan, self.variables = plan, variables
        self.look_ahead = plan.look_ahead or LookAhead(variables)
        self.looked_up: list[tuple[ReadField, Sequence[Target]]] = []
        """The fields that look nodes up, with the targets that their arguments name."""
        self.lookups: list[tuple[Lookup, Selection]] = []
        self.called: list[tuple[ReadField, Any]] = []
        """All others, with their arguments."""
        self.invalid: list[tuple[ReadField, Exception]] = []
        """Those whose arguments are invalid, with the error."""
        for root in plan.query.reads if plan.query else ():
            self._bind(root)
        self.is_cached = all(isinstance(root.reading, RootsField | SearchField) for root, _ in self.called)
        """Whether what is asked may be cached: no feeds and no moves are."""

    def _bind(self, root: ReadField) -> None:
        resolve = root.reading
        given: Any = arguments_of(root.definition, root.nodes[0], self.variables)
        if isinstance(resolve, RootsField):
            given = self.look_ahead.asked(root)
        elif isinstance(resolve, LookupField) and not isinstance(given, Exception):
            try:
                self._look_up(root, resolve.targets(given))
                return
            except CladeError as error:
                given = error.bare()
        if isinstance(given, Exception):
            self.invalid.append((root, given))
        else:
            self.called.append((root, given))

    def _look_up(self, root: ReadField, targets: Sequence[Target]) -> None:
        self.looked_up.append((root, targets))
        selection = self.look_ahead.selection(root.selected)
        self.lookups += [
            (target, selection.expecting(field.level)) for field, target in targets if isinstance(target, tuple)
        ]


class PlanCache:
    """The plans of all documents: several of one that has variables in directives."""

    def __init__(self, schema: GraphQLSchema, types: Types, *, hide_suggestions: bool = False) -> None:
        self._schema, self._hide_suggestions = schema, hide_suggestions
        self._types = types
        self._current = {name for kind in schema.type_map.values() for name in _current_fields(kind)}
        """The names of the fields that show what was before, so that nothing beside them may be stale."""
        self._plans: SieveCache[PlanKey, OperationPlan] = SieveCache(
            "plans",
            MAX_PLANS_CHARACTERS,
            weigh=lambda key, _: key[0].characters,
            bytes_each=CHARACTER_BYTES,
            evicted=lambda key, _: key[0].holders.pop(key),
        )

    def bind(self, prepared: Prepared) -> BoundPlan | list[GraphQLError]:
        """The plan of a request with its coerced variables, or the errors for which it is rejected."""
        variables, query = _NO_VARIABLES, prepared.request.query
        document, operation = prepared.document, prepared.operation
        if operation.variable_definitions:
            given = prepared.request.variables or {}
            coerced = self._coerced(operation, given)
            if isinstance(coerced, list):
                return [request_error(error, BAD_USER_INPUT) for error in coerced]
            variables = coerced
        if prepared.lifted:
            variables = VariableValues(variables.sources, {**variables.coerced, **prepared.lifted})
        try:
            bound = BoundPlan(self._plan(prepared, variables), variables)
        except GraphQLError as error:  # the condition of a field of Query is null
            return [request_error(error, BAD_USER_INPUT)]
        # A plan that others of its document may evict is held by no request.
        if not document.deciding and (bound.plan.look_ahead is not None or len(query) <= MAX_BOUND_CHARACTERS):
            prepared.bound = bound
        return bound

    def _coerced(
        self, operation: OperationDefinitionNode, given: dict[str, Any]
    ) -> VariableValues | list[GraphQLError]:
        """The values of an operation's variables, or all their errors. Only those that a response lists are made with
        similar names, which take ten times as long as the error itself.
        """
        coerce = partial(get_variable_values, self._schema, operation.variable_definitions or (), given)
        coerced = coerce(max_errors=MAX_ERRORS_PER_CODE, hide_suggestions=self._hide_suggestions)
        if not isinstance(coerced, list) or len(coerced) <= MAX_ERRORS_PER_CODE:
            return coerced
        every = coerce(hide_suggestions=True)
        return [*coerced[:MAX_ERRORS_PER_CODE], *every[MAX_ERRORS_PER_CODE:]] if isinstance(every, list) else coerced

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
        nodes = [node for node in nodes_in(parsed) if isinstance(node, FieldNode)]
        varying = {id(node) for node in nodes if has_variables(node)}
        is_current = not self._current.isdisjoint(node.name.value for node in nodes)
        return OperationPlan(fields, variables, varying, is_query=prepared.is_query, is_current=is_current)


def _current_fields(kind: Any) -> list[str]:
    """The names of a type's fields that read what was before: revisions, feeds, deleted nodes and moves."""
    if not isinstance(kind, GraphQLObjectType):
        return []
    found = {name: resolver_of(definition) for name, definition in kind.fields.items()}
    if kind.name == "Query":
        known = LookupField | RootsField | SearchField
        return [name for name, resolve in found.items() if resolve is not None and not isinstance(resolve, known)]
    return [name for name, resolve in found.items() if not getattr(resolve, "leads_to_nodes", True)]
