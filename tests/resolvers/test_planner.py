"""Plans as values: which reads a batch of lists becomes, given what is known, and nothing read at all."""

from collections import Counter
from dataclasses import dataclass

import pytest

from resolvers.planner import Planner
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import NoSelection, Relation, RelationKind
from resolvers.session.records_read import Read, RecordsRead
from store.errors import BudgetExceeded
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Index, Path
from store.model.ranges import (
    KeyRange,
    children,
    level_range,
    subtree,
)
from store.model.records import Record
from tests.model import Ground, Model

HIERARCHY = Ground.definition()


@dataclass(frozen=True)
class Nested:
    """The same relations asked of every node."""

    relations: tuple[Relation, ...]

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return self.relations


def every(
    kind: RelationKind = RelationKind.CHILDREN, *below: Relation, nodes: bool = True, **window: object
) -> Relation:
    return Relation(kind, ConnectionArguments(**window), Nested(below) if below else NoSelection(), nodes)  # type: ignore[arg-type]


class World:
    """A tree of four areas with `plots` plots each and `trees` trees on each plot; the areas' list was read."""

    def __init__(self, plots: int = 5, trees: int = 0, more: dict[Path, str] | None = None) -> None:
        nodes: dict[Path, str] = {("r",): "AREA"}
        for area in "abcd":
            nodes["r", area] = "AREA"
            for plot in range(plots):
                nodes["r", area, f"p{plot:03}"] = "PLOT"
                nodes |= {("r", area, f"p{plot:03}", f"t{tree}"): "TREE" for tree in range(trees)}
        self.model = Model("ground", nodes | (more or {}))
        self.known = RecordsRead()
        self.root = self.model.nodes["r",]
        shape = Counter(level_at_depth(one.level, one.depth) for one in self.model.nodes.values())
        self.stamp = TreeVersion(self.root.pk, 1, dict(shape))
        self.areas = [self.model.nodes["r", area] for area in "abcd"]

    def read_areas(self) -> None:
        self.known.nodes[self.root.key] = self.root
        self.known.add(Read(children(self.root.pk, "#")), self.areas)

    def plan(self, *jobs: ListRequest, left: int = 10_000) -> list[Read]:
        planner = Planner(self.known, {self.root.pk: self.stamp}, HIERARCHY, left)
        planner.add(jobs)
        for group in planner.groups:
            planner.plan(group)
        return list(planner.reads)

    def level_range(self, level: str, depth: int, first: Record, last: Record) -> KeyRange:
        return level_range(self.root.pk, level, depth, first.sk, last.sk[:-1] + "$")


@pytest.fixture
def world() -> World:
    found = World()
    found.read_areas()
    return found


def test_the_children_of_one_node_are_one_query_by_parent(world):
    assert world.plan(ListRequest(world.areas[0], every())) == [Read(children(world.root.pk, "#a#"))]


def test_the_children_of_one_level_are_their_slice_of_ranks(world):
    assert world.plan(ListRequest(world.areas[0], every(level="PLOT"))) == [
        Read(children(world.root.pk, "#a#", "PLOT"))
    ]


def test_a_page_is_read_to_one_more_than_it_shows(world):
    span = children(world.root.pk, "#a#")
    assert world.plan(ListRequest(world.areas[0], every(first=3))) == [Read(span, 4)]
    assert world.plan(ListRequest(world.areas[0], every(last=3))) == [Read(span, 4, reverse=True)]
    assert world.plan(ListRequest(world.areas[0], every(first=3, reverse=True))) == [Read(span, 4, reverse=True)]


def test_the_children_of_siblings_are_one_slice_of_their_tier_whatever_the_width(world):
    relation = every()
    reads = world.plan(*[ListRequest(area, relation) for area in world.areas])
    assert reads == [Read(world.tier("PLOT", 2, world.areas[0], world.areas[3]))]


def test_each_level_of_children_is_a_slice_of_its_own():
    world = World(more={("r", area, "w"): "AREA" for area in "abd"})
    world.read_areas()
    relation = every()
    first, last = world.areas[0], world.areas[3]
    reads = world.plan(*[ListRequest(area, relation) for area in world.areas])
    assert reads == [Read(world.tier("AREA", 2, first, last)), Read(world.tier("PLOT", 2, first, last))]


def test_a_slice_over_what_was_not_asked_for_is_taken_only_where_it_is_cheaper():
    few, many = World(plots=2), World(plots=2, more={("r", "b", f"x{n}"): "PLOT" for n in range(500)})
    for world, count in ((few, 1), (many, 2)):
        world.read_areas()
        relation = every()
        reads = world.plan(ListRequest(world.areas[0], relation), ListRequest(world.areas[2], relation))
        assert len(reads) == count, "the area in between has next to nothing, or very much"


def test_short_pages_of_long_lists_are_single_queries_and_of_short_lists_a_slice():
    for plots, index in ((500, Index.BY_PARENT), (3, Index.BY_LEVEL)):
        world = World(plots=plots)
        world.read_areas()
        relation = every(first=2)
        reads = world.plan(*[ListRequest(area, relation) for area in world.areas])
        assert {read.span.index for read in reads} == {index}


def test_levels_below_levels_are_read_in_the_same_round_and_to_the_bottom_as_one_range():
    world = World(trees=2)
    reads = world.plan(ListRequest(world.root, every(RelationKind.CHILDREN, every(RelationKind.CHILDREN, every()))))
    assert reads == [Read(subtree(world.root.pk, "#").after("#"))]


def test_what_lies_deeper_than_is_asked_is_left_out_where_it_is_much():
    world = World(trees=50)
    reads = world.plan(ListRequest(world.root, every(RelationKind.CHILDREN, every())))
    assert [read.span.partition.partition("@")[2] for read in reads] == ["AREA@1", "PLOT@2"]


def test_nothing_is_read_ahead_of_a_page():
    world = World(trees=2)
    reads = world.plan(ListRequest(world.root, every(RelationKind.CHILDREN, every(first=2))))
    assert reads == [Read(children(world.root.pk, "#"))]


def test_nothing_is_read_ahead_where_only_a_number_is_asked_below():
    world = World(trees=2)
    reads = world.plan(ListRequest(world.root, every(RelationKind.CHILDREN, every(nodes=False))))
    assert reads == [Read(children(world.root.pk, "#"))]


def test_nothing_is_read_ahead_across_a_gap():
    world = World(trees=2)
    world.read_areas()
    relation = every(RelationKind.CHILDREN, every())
    reads = world.plan(ListRequest(world.areas[0], relation), ListRequest(world.areas[2], relation))
    assert all(read.span.partition.endswith("PLOT@2") or read.span.index is Index.BY_PARENT for read in reads)


def test_scattered_parents_go_by_their_neighbourhoods():
    families = {("r", area, "p000", f"x{n}"): "TREE" for area in "ad" for n in range(2)}
    huge = {("r", area, f"p{plot:03}", f"y{n}"): "TREE" for area in "bc" for plot in range(5) for n in range(200)}
    world = World(more=families | {("r", area, "p001", f"x{n}"): "TREE" for area in "ad" for n in range(2)} | huge)
    world.read_areas()
    plots = [world.model.nodes["r", area, plot] for area in "ad" for plot in ("p000", "p001")]
    for area in world.areas:
        family = [one for one in world.model.nodes.values() if one.path[:-1] == area.path]
        world.known.add(Read(children(area.pk, area.sk)), family)
    relation = every()
    reads = world.plan(*[ListRequest(plot, relation) for plot in plots])
    assert reads == [Read(world.tier("TREE", 3, plots[0], plots[1])), Read(world.tier("TREE", 3, plots[2], plots[3]))]


def test_what_the_counts_answer_is_not_read(world):
    leaf = world.model.nodes["r", "a", "p000"]
    relations = [every(), every(RelationKind.DESCENDANTS), every(first=2), every(level="TREE")]
    assert world.plan(*[ListRequest(leaf, relation) for relation in relations]) == []
    assert world.plan(ListRequest(world.areas[0], every(first=0))) == []


def test_what_was_read_is_not_read_again(world):
    span = world.tier("PLOT", 2, world.areas[0], world.areas[3])
    plots = [one for one in world.model.nodes.values() if one.level == "PLOT"]
    world.known.add(Read(span), plots)
    jobs = [
        ListRequest(area, every(**window)) for area in world.areas for window in ({}, {"first": 2}, {"level": "PLOT"})
    ]
    planner = Planner(world.known, {world.root.pk: world.stamp}, HIERARCHY, 10_000)
    planner.add(jobs)
    assert planner.groups == []
    assert planner.answered[jobs[0]] == plots[:5]
    assert planner.answered[jobs[1]] == plots[:3], "one more than shown tells that there are others"


def test_a_shorter_list_is_cut_out_of_a_longer_one_that_is_read_anyway(world):
    owner = world.areas[0]
    short, long = ListRequest(owner, every(first=2)), ListRequest(owner, every(first=4))
    assert world.plan(short, long) == [Read(children(owner.pk, owner.sk), 5)]
    assert world.plan(short, long, ListRequest(owner, every())) == [Read(children(owner.pk, owner.sk))]
    assert world.plan(ListRequest(owner, every()), ListRequest(owner, every(RelationKind.DESCENDANTS))) == [
        Read(subtree(owner.pk, owner.sk).after(owner.sk))
    ]


def test_the_children_of_one_level_are_taken_out_of_the_descendants_of_that_level(world):
    owner = world.areas[0]
    descendants, children = (
        ListRequest(owner, every(RelationKind.DESCENDANTS, level="PLOT")),
        ListRequest(owner, every(level="PLOT")),
    )
    (read,) = world.plan(descendants, children)
    plots = [one for one in world.model.nodes.values() if one.level == "PLOT" and one.path[1] == "a"]
    world.known.add(read, plots)
    assert world.plan(children) == [], "else the list would be neither read nor answered"


def test_a_page_from_the_other_end_is_a_read_of_its_own(world):
    owner = world.areas[0]
    reads = world.plan(ListRequest(owner, every(first=2)), ListRequest(owner, every(last=2)))
    assert {read.reverse for read in reads} == {False, True}


def test_siblings_of_siblings_are_one_query(world):
    relation = every(RelationKind.SIBLINGS)
    plots = [world.model.nodes["r", "a", f"p{number:03}"] for number in range(3)]
    assert [read.span for read in world.plan(*[ListRequest(plot, relation) for plot in plots])] == [
        children(world.root.pk, "#a#")
    ]


def test_one_level_of_a_subtree_is_read_from_its_tiers(world):
    reads = world.plan(ListRequest(world.root, every(RelationKind.DESCENDANTS, level="PLOT")))
    assert [read.span for read in reads] == [level_range(world.root.pk, "PLOT", 2, "#!", "$")]


def test_descendants_between_two_keys_are_read_between_them_alone(world):
    (read,) = world.plan(ListRequest(world.root, every(RelationKind.DESCENDANTS, start="b", end="d")))
    assert (read.span.lo, read.span.hi) == ("#b#", "#d!")


def test_reading_ahead_past_the_budget_is_refused_before_anything_is_read():
    world = World(trees=50)
    relation = every(RelationKind.CHILDREN, every(RelationKind.CHILDREN, every()))
    with pytest.raises(BudgetExceeded, match=r"1,024 nodes, and this request may return 1,000 more.*first:"):
        world.plan(ListRequest(world.root, relation), left=1_000)


def test_what_the_counts_cannot_bound_is_read_no_further_than_the_budget(world):
    (read,) = world.plan(ListRequest(world.root, every(RelationKind.DESCENDANTS, start="a")), left=7)
    assert read.limit == 7 + 2
