"""Planner: the reads of lists, given the records read before, without a store."""

from collections import Counter
from dataclasses import dataclass

import pytest

from resolvers.lists.arguments import ConnectionArguments, KeyBounds, NoSelection, Relation, RelationKind
from resolvers.lists.list_request import ListRequest
from resolvers.planner import Planner, list_request
from resolvers.session.budget import Budget, BudgetLimits
from resolvers.session.records_read import Read, RecordsRead
from resolvers.sorting.conditions import Combination, KeyComparison
from resolvers.sorting.ordering import Ordering
from store.engine import ReadUsage
from store.errors import BudgetExceeded
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Index, KeyRange, Path, children, level_range, subtree
from store.model.records import Record
from tests.model import Ground, Model

HIERARCHY = Ground.definition()


@dataclass(frozen=True)
class Nested:
    """A selection of the same relations for every node."""

    relations: tuple[Relation, ...]

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return self.relations


def every(
    kind: RelationKind = RelationKind.CHILDREN, *below: Relation, nodes: bool = True, **arguments: object
) -> Relation:
    return Relation(kind, ConnectionArguments(**arguments), Nested(below) if below else NoSelection(), nodes)  # type: ignore[arg-type]


def between(first: str, end: str) -> KeyBounds | None:
    """The bounds of the paths from one to another."""
    where = Combination("and", (KeyComparison.of("path", "gte", first), KeyComparison.of("path", "lt", end)))
    return KeyBounds.of(where, are_children=False)


class World:
    """A tree of four areas with `plots` plots each and `trees` trees on each plot."""

    def __init__(self, plots: int = 5, trees: int = 0, more: dict[Path, str] | None = None) -> None:
        nodes: dict[Path, str] = {("r",): "AREA"}
        for area in "abcd":
            nodes["r", area] = "AREA"
            for plot in range(plots):
                nodes["r", area, f"p{plot:03}"] = "PLOT"
                nodes |= {("r", area, f"p{plot:03}", f"t{tree}"): "TREE" for tree in range(trees)}
        self.model = Model("ground", nodes | (more or {}))
        self.records_read = RecordsRead()
        self.root = self.model.nodes["r",]
        shape = Counter(level_at_depth(one.level, one.depth) for one in self.model.nodes.values())
        self.version = TreeVersion(self.root.pk, 1, dict(shape))
        self.areas = [self.model.nodes["r", area] for area in "abcd"]

    def read_areas(self) -> None:
        self.records_read.nodes[self.root.key] = self.root
        self.records_read.add(Read(children(self.root.pk, "#")), self.areas)

    def plan(self, *jobs: ListRequest, left: int = 10_000, units: float = 2_000) -> list[Read]:
        budget = Budget(BudgetLimits(left), ReadUsage(limit=units))
        planner = Planner(self.records_read, {self.root.pk: self.version}, HIERARCHY, budget)
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


def test_children_of_one_node_are_one_query(world):
    assert world.plan(list_request(world.areas[0], every())) == [Read(children(world.root.pk, "#a#"))]


def test_children_of_one_level_are_one_range_of_ranks(world):
    assert world.plan(list_request(world.areas[0], every(levels=("PLOT",)))) == [
        Read(children(world.root.pk, "#a#", "PLOT"))
    ]


def test_a_page_is_a_query_with_a_limit_of_one_more(world):
    span = children(world.root.pk, "#a#")
    assert world.plan(list_request(world.areas[0], every(first=3))) == [Read(span, 4)]
    assert world.plan(list_request(world.areas[0], every(last=3))) == [Read(span, 4, reverse=True)]
    assert world.plan(list_request(world.areas[0], every(first=3, ordering=Ordering(descending=True)))) == [
        Read(span, 4, reverse=True)
    ]


def test_children_of_siblings_are_one_query_of_their_level(world):
    relation = every()
    reads = world.plan(*[list_request(area, relation) for area in world.areas])
    assert reads == [Read(world.level_range("PLOT", 2, world.areas[0], world.areas[3]))]


def test_each_level_of_children_of_siblings_is_one_query():
    world = World(more={("r", area, "w"): "AREA" for area in "abd"})
    world.read_areas()
    relation = every()
    first, last = world.areas[0], world.areas[3]
    reads = world.plan(*[list_request(area, relation) for area in world.areas])
    assert reads == [Read(world.level_range("AREA", 2, first, last)), Read(world.level_range("PLOT", 2, first, last))]


def test_a_range_over_other_siblings_is_read_only_if_it_is_cheaper():
    few, many = World(plots=2), World(plots=2, more={("r", "b", f"x{n}"): "PLOT" for n in range(500)})
    for world, count in ((few, 1), (many, 2)):
        world.read_areas()
        relation = every()
        reads = world.plan(list_request(world.areas[0], relation), list_request(world.areas[2], relation))
        assert len(reads) == count, "the area in between has next to nothing, or very much"


def test_short_pages_of_long_lists_are_single_queries_and_of_short_lists_one_range():
    for plots, index in ((500, Index.BY_PARENT), (3, Index.BY_LEVEL)):
        world = World(plots=plots)
        world.read_areas()
        relation = every(first=2)
        reads = world.plan(*[list_request(area, relation) for area in world.areas])
        assert {read.span.index for read in reads} == {index}


def test_all_levels_below_a_node_are_one_range_of_the_table():
    world = World(trees=2)
    reads = world.plan(list_request(world.root, every(RelationKind.CHILDREN, every(RelationKind.CHILDREN, every()))))
    assert reads == [Read(subtree(world.root.pk, "#").after("#"))]


def test_a_large_level_that_is_not_requested_is_not_prefetched():
    world = World(trees=50)
    reads = world.plan(list_request(world.root, every(RelationKind.CHILDREN, every())))
    assert [read.span.partition.partition("@")[2] for read in reads] == ["AREA@1", "PLOT@2"]


@pytest.mark.parametrize("inner", [{"first": 2}, {"nodes": False}])
def test_nothing_is_prefetched_for_pages_and_total_counts(inner):
    world = World(trees=2)
    reads = world.plan(list_request(world.root, every(RelationKind.CHILDREN, every(**inner))))
    assert reads == [Read(children(world.root.pk, "#"))]


def test_nothing_is_prefetched_across_a_gap():
    world = World(trees=2)
    world.read_areas()
    relation = every(RelationKind.CHILDREN, every())
    reads = world.plan(list_request(world.areas[0], relation), list_request(world.areas[2], relation))
    assert all(read.span.partition.endswith("PLOT@2") or read.span.index is Index.BY_PARENT for read in reads)


def test_scattered_parents_are_one_query_for_each_run_of_siblings():
    families = {("r", area, "p000", f"x{n}"): "TREE" for area in "ad" for n in range(2)}
    huge = {("r", area, f"p{plot:03}", f"y{n}"): "TREE" for area in "bc" for plot in range(5) for n in range(200)}
    world = World(more=families | {("r", area, "p001", f"x{n}"): "TREE" for area in "ad" for n in range(2)} | huge)
    world.read_areas()
    plots = [world.model.nodes["r", area, plot] for area in "ad" for plot in ("p000", "p001")]
    for area in world.areas:
        family = [one for one in world.model.nodes.values() if one.path[:-1] == area.path]
        world.records_read.add(Read(children(area.pk, area.sk)), family)
    relation = every()
    reads = world.plan(*[list_request(plot, relation) for plot in plots])
    assert reads == [
        Read(world.level_range("TREE", 3, plots[0], plots[1])),
        Read(world.level_range("TREE", 3, plots[2], plots[3])),
    ]


def test_more_queries_than_a_request_may_make_are_ranges_where_these_are_allowed():
    plots: dict[Path, str] = {("r", f"n{plot:03}"): "PLOT" for plot in range(600)}
    world = World(more=plots | {(*plot, f"t{tree}"): "TREE" for plot in plots for tree in range(4)})
    owners = [world.model.nodes["r", f"n{plot:03}"] for plot in range(0, 600, 10)]
    world.records_read.nodes[world.root.key] = world.root
    relation = every(compared=True)
    for units, reads in ((2_000, 60), (200, 1), (100, 60)):
        assert len(world.plan(*[list_request(one, relation) for one in owners], units=units)) == reads, units


def test_lists_that_are_empty_by_their_counts_are_not_read(world):
    leaf = world.model.nodes["r", "a", "p000"]
    relations = [every(), every(RelationKind.DESCENDANTS), every(first=2), every(levels=("TREE",))]
    assert world.plan(*[list_request(leaf, relation) for relation in relations]) == []
    assert world.plan(list_request(world.areas[0], every(first=0))) == []


def test_records_read_before_are_not_read_again(world):
    span = world.level_range("PLOT", 2, world.areas[0], world.areas[3])
    plots = [one for one in world.model.nodes.values() if one.level == "PLOT"]
    world.records_read.add(Read(span), plots)
    jobs = [
        list_request(area, every(**arguments))
        for area in world.areas
        for arguments in ({}, {"first": 2}, {"levels": ("PLOT",)})
    ]
    planner = Planner(world.records_read, {world.root.pk: world.version}, HIERARCHY, Budget())
    planner.add(jobs)
    assert planner.groups == []
    assert planner.answered[jobs[0]] == plots[:5]
    assert planner.answered[jobs[1]] == plots[:3], "one more than shown tells that there are others"


def test_a_list_within_another_planned_list_has_no_read_of_its_own(world):
    owner = world.areas[0]
    short, long = list_request(owner, every(first=2)), list_request(owner, every(first=4))
    assert world.plan(short, long) == [Read(children(owner.pk, owner.sk), 5)]
    assert world.plan(short, long, list_request(owner, every())) == [Read(children(owner.pk, owner.sk))]
    assert world.plan(list_request(owner, every()), list_request(owner, every(RelationKind.DESCENDANTS))) == [
        Read(subtree(owner.pk, owner.sk).after(owner.sk))
    ]


def test_the_children_of_one_level_are_taken_out_of_the_descendants_of_that_level(world):
    owner = world.areas[0]
    descendants, children = (
        list_request(owner, every(RelationKind.DESCENDANTS, levels=("PLOT",))),
        list_request(owner, every(levels=("PLOT",))),
    )
    (read,) = world.plan(descendants, children)
    plots = [one for one in world.model.nodes.values() if one.level == "PLOT" and one.path[1] == "a"]
    world.records_read.add(read, plots)
    assert world.plan(children) == [], "else the list would be neither read nor answered"


def test_pages_from_both_ends_are_two_queries(world):
    owner = world.areas[0]
    reads = world.plan(list_request(owner, every(first=2)), list_request(owner, every(last=2)))
    assert {read.reverse for read in reads} == {False, True}


def test_descendants_of_one_level_are_one_query_of_that_level(world):
    reads = world.plan(list_request(world.root, every(RelationKind.DESCENDANTS, levels=("PLOT",))))
    assert [read.span for read in reads] == [level_range(world.root.pk, "PLOT", 2, "#!", "$")]


def test_descendants_between_two_keys_are_one_range_between_them(world):
    (read,) = world.plan(list_request(world.root, every(RelationKind.DESCENDANTS, bounds=between("r/b", "r/d"))))
    assert (read.span.lo, read.span.hi) == ("#b#", "#d#")


def test_a_prefetch_beyond_the_budget_is_rejected_without_a_read():
    world = World(trees=50)
    relation = every(RelationKind.CHILDREN, every(RelationKind.CHILDREN, every()))
    with pytest.raises(BudgetExceeded, match=r"1,024 nodes, and this request may return 1,000 more.*first:"):
        world.plan(list_request(world.root, relation), left=1_000)


def test_lists_of_unknown_length_are_read_only_up_to_the_budget(world):
    (read,) = world.plan(
        list_request(world.root, every(RelationKind.DESCENDANTS, bounds=between("r/a", "r/z"))), left=7
    )
    assert read.limit == 7 + 2
