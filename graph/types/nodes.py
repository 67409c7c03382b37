"""Hierarchy types: the GraphQL types of one hierarchy, made of its classes. They are the level enum, the types of nodes
and the type of their revisions.
"""

from typing import Any

import strawberry
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from graph.hierarchies.attribute import DateTime
from graph.hierarchies.node import Node, description
from graph.types.connections import LevelTypes
from graph.types.fields import (
    PAGING,
    Count,
    Fields,
    Path,
    RecordField,
    Resolver,
    argument,
    class_of,
    enum_class,
    field,
    key,
    label,
    level_of,
    name_fields,
    set_fields,
)
from graph.types.history import history_fields, revision_types
from graph.types.list_inputs import ListInputs
from graph.types.reading import ANCESTORS, CHILDREN, DESCENDANTS, PARENT
from store.errors import BadData
from store.model.records import Record

_CHANGED_BY = "Caller that wrote it, if known."
_MAX_DEPTH = argument("maxDepth", int | None, "Maximum depth; 1 is only its children.")


@strawberry.interface(name="Node", description="An object with a globally unique ID, after Relay's specification.")
class NodeInterface:
    id = field(RecordField("id"), strawberry.ID, "Globally unique ID, which a node keeps for ever.")


TreeNode: Any = class_of("TreeNode", {}, NodeInterface)


def _tree_node_fields(node: Any, level_name: Resolver, child_count: StrawberryField) -> Fields:
    """The fields of nodes of any hierarchy, which lead to nodes of this type."""
    return {
        "path": field(RecordField("path_text"), Path, "Current path, from the root down."),
        "key": field(key, str, "Last segment of the path; unique among siblings."),
        "name": name_fields()["name"],
        "level_name": field(level_name, str, "Name of the level, as in `level`."),
        "depth": field(RecordField("depth"), int, "Number of ancestors; 0 for a root."),
        "child_count": child_count,
        "parent": field(PARENT, node | None, "Parent; null for a root or the top of a grant."),
        "ancestors": field(ANCESTORS, list[node] | None, "Ancestors, from the root down."),
    }


class HierarchyTypes:
    """All types of one hierarchy; `type_names` are those of its levels by (hierarchy, level), and `revision` is the
    name of the type of its revisions.
    """

    def __init__(self, cls: type[Node]) -> None:
        self.cls, self.name = cls, cls.name
        levels = {one.label: (level, description(one)) for level, one in cls.levels.items()}
        text = f"The levels of the hierarchy {self.name}."
        self.level = enum_class(f"{cls.prefix}{cls.title}Level", levels, text)
        self.inputs = ListInputs(cls, self.level)
        self.nodes, self.revision = LevelTypes(cls, TreeNode), f"{cls.prefix}{cls.title}Revision"
        past = history_fields(*revision_types(cls, self.level))
        page = f"A page of a list of nodes of the hierarchy {self.name}."
        self.nodes.publish(self._node_fields() | past, description, page, self.inputs.facets)
        self.title, self.interface, self.concrete = self.nodes.title, self.nodes.interface, self.nodes.concrete
        self.type_names = {(self.name, level): cls.prefix + one.title for level, one in cls.levels.items()}

    def list_arguments(self, *more: StrawberryArgument) -> list[StrawberryArgument]:
        """The arguments of every list, and further ones."""
        enum: Any = self.level
        level = argument("level", list[enum] | None, "Only nodes of these levels.")
        return [*PAGING, level, *more, *self.inputs.arguments]

    def _node_fields(self) -> Fields:
        """The fields of every node of the hierarchy; those that lead to other nodes are nullable, so that a failed read
        affects one field alone.
        """
        node: Any = self.nodes.interface
        listing = self.nodes.connection | None
        of_level = argument("level", list[self.level] | None, "Only of these levels.")  # type: ignore[name-defined]
        child_count = field(Count("kids"), int, "Number of children.", of_level)
        of_trees = _tree_node_fields(node, self._level_name, child_count)
        own = {
            "level": field(RecordField("level"), self.level, "Level of the node in its hierarchy."),
            "descendant_count": field(Count("descendant_counts"), int, "Number of descendants.", of_level),
            "revision": field(RecordField("revision"), int, "Number of the revision; each write adds 1."),
            "updated_at": field(RecordField("updated_at"), DateTime, "Time of the last change of the content."),
            "changed_by": field(RecordField("changed_by"), str | None, _CHANGED_BY),
            "children": field(
                CHILDREN, listing, "Children, ordered by level, then by position.", *self.list_arguments()
            ),
            "descendants": field(
                DESCENDANTS, listing, "Descendants, ordered by path.", *self.list_arguments(_MAX_DEPTH)
            ),
        }
        return of_trees | name_fields() | own

    def _level_name(self, record: Record, info: Any) -> str:
        return level_of(record, self.cls.levels).label


def _no_level(record: Record, info: Any) -> str:
    raise BadData(f"{label(record)} is of no hierarchy that is served.")  # each hierarchy has a resolver of its own


_CHILD_COUNT = field(Count("kids"), int, "Number of children.")
set_fields(TreeNode, _tree_node_fields(TreeNode, _no_level, _CHILD_COUNT))
strawberry.interface(TreeNode, name="TreeNode", description="A node of any hierarchy.")
