"""What an operation asks for, as the values that the resolvers plan with.

Fields, fragments, aliases, `@skip` and `@include` are merged by graphql-core itself. What was collected is kept for
each concrete type and merged field nodes: collecting anew for every type at every level would grow exponentially.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError, GraphQLObjectType, GraphQLResolveInfo, get_named_type, is_object_type
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_subfields
from graphql.execution.values import VariableValues, get_argument_values

from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.relations import Relation, RelationKind, Selection
from store.errors import BadInput, CladeError
from store.model.keys import MAX_SORT_KEY_BYTES, encode_segment
from store.model.paths import checked_segment

_KINDS = {kind.value for kind in RelationKind}
_LISTS = {RelationKind.CHILDREN, RelationKind.DESCENDANTS, RelationKind.SIBLINGS}

Types = Mapping[tuple[str, str], str]  # the name of the GraphQL type of each hierarchy and level


class LookAhead:
    """What one operation asks for, with one set of variables."""

    def __init__(self, info: GraphQLResolveInfo[Any], types: Types) -> None:
        self._info = info
        coerced: Any = info.variable_values  # the values alone, since Strawberry takes them out
        self._variables = VariableValues({}, coerced)
        self._types = types
        self._fragments = {name: FragmentDetails(fragment) for name, fragment in info.fragments.items()}
        self._fields: dict[tuple[Any, ...], dict[str, list[FieldDetails]]] = {}
        self._relations: dict[tuple[Any, ...], Relation | CladeError] = {}
        self._selections: dict[tuple[Any, ...], FieldSelection] = {}

    def relation(self, info: GraphQLResolveInfo[Any]) -> Relation:
        """The relation that a resolver is called for; raises BadInput where its arguments contradict each other."""
        return self._relation(info.parent_type, [FieldDetails(node, None) for node in info.field_nodes])

    def selection(self, info: GraphQLResolveInfo[Any]) -> "FieldSelection":
        """What is asked of the nodes that a field returns."""
        return self._selection([FieldDetails(node, None) for node in info.field_nodes])

    def connection(self, info: GraphQLResolveInfo[Any]) -> Relation:
        """What is asked of a field that returns a connection, whatever its name; of the roots' for instance."""
        return self._relation(
            info.parent_type, [FieldDetails(node, None) for node in info.field_nodes], RelationKind.CHILDREN
        )

    def on(self, details: list[FieldDetails], hierarchy: str, level: str) -> tuple[Relation, ...]:
        """The relations that merged fields ask of a node of this level."""
        concrete = self._info.schema.get_type(self._types[hierarchy, level])
        assert isinstance(concrete, GraphQLObjectType)  # a level's type is one  # noqa: S101
        found = []
        for fields in self.collected(concrete, details).values():
            if fields[0].node.name.value in _KINDS:
                try:
                    found.append(self._relation(concrete, fields))
                except (BadInput, GraphQLError):
                    continue  # the field will tell when its turn comes
        return tuple(found)

    def collected(self, concrete: GraphQLObjectType, details: list[FieldDetails]) -> dict[str, list[FieldDetails]]:
        """The merged fields below some fields that return this type, by response key."""
        key = (concrete.name, *_ids(details))
        if key not in self._fields:
            info = self._info
            self._fields[key] = collect_subfields(
                info.schema, self._fragments, self._variables, info.operation, concrete, details
            ).grouped_field_set
        return self._fields[key]

    def _relation(
        self, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None = None
    ) -> Relation:
        key = (parent.name, *_ids(details))
        found = self._relations.get(key)
        if found is None:
            try:
                found = self._new_relation(parent, details, kind)
            except CladeError as error:  # of its arguments, which are looked at once for all nodes
                found = error.bare()
            self._relations[key] = found
        if isinstance(found, CladeError):
            raise found
        return found

    def _new_relation(
        self, parent: GraphQLObjectType, details: list[FieldDetails], kind: RelationKind | None
    ) -> Relation:
        node = details[0].node
        field = parent.fields[node.name.value]
        kind = kind or RelationKind(node.name.value)
        if kind not in _LISTS:
            return Relation(kind, ConnectionArguments(), self._selection(details))
        window = window_of(get_argument_values(field, node, self._variables))
        connection = get_named_type(field.type)
        assert is_object_type(connection)  # every list is a connection  # noqa: S101
        fields = list(self.collected(connection, details).values())
        asked = {one[0].node.name.value for one in fields}
        nodes = [detail for one in fields if one[0].node.name.value == "nodes" for detail in one]
        for edges in fields:
            if edges[0].node.name.value == "edges":
                nodes += self._nodes_of_edges(get_named_type(connection.fields["edges"].type), edges)
        return Relation(
            kind, window, self._selection(nodes), bool(asked & {"nodes", "edges", "pageInfo"}), "totalCount" in asked
        )

    def _nodes_of_edges(self, edge: Any, details: list[FieldDetails]) -> Iterable[FieldDetails]:
        for fields in self.collected(edge, details).values():
            if fields[0].node.name.value == "node":
                yield from fields

    def _selection(self, details: list[FieldDetails]) -> "FieldSelection":
        key = _ids(details)
        if key not in self._selections:
            self._selections[key] = FieldSelection(self, details)
        return self._selections[key]


class AnySelection(ABC):
    """A selection that can be told which level to expect."""

    def __init__(self) -> None:
        self._expecting: dict[str, LevelSelection] = {}

    @abstractmethod
    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        """The relations that are asked of a node of this level of a hierarchy."""

    def expecting(self, level: str | None) -> Selection:
        """The same for nodes that can be of this level only, so that what is asked above them is known beforehand."""
        if level is None:
            return self
        if level not in self._expecting:
            self._expecting[level] = LevelSelection(self, level)
        return self._expecting[level]


class FieldSelection(AnySelection):
    """What merged fields ask of the nodes they return."""

    def __init__(self, asked: LookAhead, details: list[FieldDetails]) -> None:
        super().__init__()
        self._asked = asked
        self._details = details
        self._found: dict[tuple[str, str], tuple[Relation, ...]] = {}

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        key = (hierarchy, level)
        if key not in self._found:
            self._found[key] = self._asked.on(self._details, hierarchy, level)
        return self._found[key]


@dataclass(frozen=True, eq=False)
class LevelSelection:
    """What is asked of nodes that are expected to be of one level; of another they are of no use."""

    selection: AnySelection
    level: str

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return self.selection.on(hierarchy, self.level)


def window_of(arguments: Mapping[str, Any]) -> ConnectionArguments:
    """A list's arguments, named as in the schema, as a value; raises BadInput where they contradict each other."""
    level = arguments.get("level")
    return ConnectionArguments(
        first=arguments.get("first"),
        after=arguments.get("after"),
        last=arguments.get("last"),
        before=arguments.get("before"),
        level=getattr(level, "value", level),
        start=_segment(arguments.get("from")),
        end=_segment(arguments.get("to")),
        reverse=bool(arguments.get("reverse")),
        max_depth=arguments.get("maxDepth"),
    )


def _segment(bound: str | None) -> str | None:
    """A bound as it stands in keys, made once for all lists that it bounds. Raises BadInput for one longer than any."""
    if bound is None:
        return None
    encoded = encode_segment(checked_segment(bound))
    if len(encoded.encode()) > MAX_SORT_KEY_BYTES:
        raise BadInput(f"from or to takes more than {MAX_SORT_KEY_BYTES:,} bytes in a key, which none is as long as.")
    return encoded


def _ids(details: list[FieldDetails]) -> tuple[int, ...]:
    """Field nodes as a key: the document outlives what is kept of it."""
    return tuple([id(detail.node) for detail in details])
