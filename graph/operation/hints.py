"""Hints: the field or argument that a client means where the schema has none of that name, nor one that looks alike.

Fields of a node are often asked of the connection or payload around it, and arguments have other names elsewhere.
"""

from typing import Any

from graphql import FieldsOnCorrectTypeRule, GraphQLError, KnownArgumentNamesRule, get_named_type

AROUND = ("nodes", "node")  # fields that lead from a connection, an edge or a payload to its nodes
ELSEWHERE = {
    "filter": "where", "filterBy": "where", "condition": "where",
    "sort": "orderBy", "sortBy": "orderBy", "order": "orderBy", "order_by": "orderBy",
    "limit": "first", "take": "first", "size": "first", "pageSize": "first", "count": "first",
    "cursor": "after", "offset": "after", "skip": "after",
    "depth": "maxDepth", "max_depth": "maxDepth", "query": "text", "term": "text", "search": "text", "q": "text",
    "parent": "to", "target": "to", "slug": "path", "key": "path", "uri": "path", "url": "path",
    "language": "languages", "locale": "languages", "lang": "languages", "revision": "n", "version": "n",
    "radius": "kilometers", "distance": "kilometers", "lat": "latitude", "lng": "longitude", "lon": "longitude",
}  # fmt: skip
"""What arguments are called by other APIs, and by this one."""


class FieldsOnCorrectType(FieldsOnCorrectTypeRule):
    """The rule of GraphQL's validation, with a hint at the nodes that have the field."""

    def enter_field(self, node: Any, *others: Any) -> None:
        parent: Any = self.context.get_parent_type()
        name = node.name.value
        if self.context.get_field_def() is None and not self.context.hide_suggestions:
            for around in AROUND:
                field = getattr(parent, "fields", {}).get(around)
                if field is not None and not field.args and name in getattr(get_named_type(field.type), "fields", {}):
                    fact = f"Cannot query field '{name}' on type '{parent}'."
                    self.report_error(GraphQLError(f"{fact} Did you mean '{around} {{ {name} }}'?", node))
                    return
        super().enter_field(node, *others)


class KnownArgumentNames(KnownArgumentNamesRule):
    """The rule of GraphQL's validation, with a hint at the argument that other APIs call so."""

    def enter_argument(self, arg_node: Any, *others: Any) -> None:
        field, name = self.context.get_field_def(), arg_node.name.value
        meant = ELSEWHERE.get(name)
        if field is not None and name not in field.args and meant in field.args and not self.context.hide_suggestions:
            asked = others[3][-1].name.value  # the field, the last of the nodes above
            fact = f"Unknown argument '{name}' on field '{self.context.get_parent_type()}.{asked}'."
            self.report_error(GraphQLError(f"{fact} Did you mean '{meant}'?", arg_node))
            return
        super().enter_argument(arg_node, *others)
