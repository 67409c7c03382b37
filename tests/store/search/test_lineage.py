"""Lineages and moves, on random trees with random moves, against the true tree."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from store.model.items import Item
from store.search.lineage import STEP, Lineage, MovedNode, Moves, id_hash, lineage, steps


@dataclass
class Forest:
    """Nodes with their parents, the items of moved nodes, and the lineages and depths of the nodes' search items."""

    random: Random
    parents: dict[str, str | None] = field(default_factory=dict)
    moved: dict[str, Item] = field(default_factory=dict)
    written: dict[str, tuple[Lineage, int]] = field(default_factory=dict)

    def ids(self, node: str) -> list[str]:
        """The ids from the root to a node."""
        parent = self.parents[node]
        return [*(self.ids(parent) if parent else []), node]

    def line(self, node: str) -> Lineage:
        return lineage(self.ids(node))

    def has_children(self, node: str) -> bool:
        return node in self.parents.values()

    def write(self, node: str) -> None:
        self.written[node] = self.line(node), len(self.ids(node)) - 1

    def create(self) -> None:
        node = f"n:{len(self.parents)}"
        places = [one for one in self.parents if len(self.ids(one)) < 12]
        self.parents[node] = self.random.choice([None, *places])
        self.write(node)

    def move(self) -> None:
        node = self.random.choice(list(self.parents))
        places = [one for one in self.parents if node not in self.ids(one) and len(self.ids(one)) < 12]
        before = self.line(node)
        former = [self.moved[one] for one in self.ids(node) if one in self.moved]
        self.parents[node] = self.random.choice([None, *places])
        if before == self.line(node):
            return
        if self.has_children(node):
            self.moved[node] = MovedNode.after(node, before, self.line(node), former).item("n")
        else:
            self.moved.pop(node, None)
        self.write(node)

    def update(self) -> None:
        self.write(self.random.choice(list(self.parents)))

    def act(self) -> None:
        self.random.choice([self.create, self.create, self.move, self.move, self.move, self.update])()


@settings(max_examples=200)
@given(st.integers(0, 1 << 32), st.integers(1, 80))
def test_former_lineages_lead_to_where_nodes_are(seed: int, length: int) -> None:
    forest = Forest(Random(seed))  # noqa: S311
    forest.create()
    for _ in range(length):
        forest.act()
    moves = Moves([MovedNode.of(item) for item in forest.moved.values()])
    for node, (line, depth) in forest.written.items():
        ids = forest.ids(node)
        assert moves.depth(line) == len(ids) - 1
        assert depth - (len(ids) - 1) <= moves.rise
        assert moves.present(line) == lineage(ids)
        assert moves.present(lineage(ids)) == lineage(ids)


def test_hashes_are_read_back_from_a_lineage() -> None:
    assert steps(lineage(["a:1", "a:2"])) == [id_hash("a:1"), id_hash("a:2")]
    assert len(id_hash("a:1")) == STEP


def test_a_node_that_leaves_a_moved_one_has_its_former_depths() -> None:
    upper = MovedNode.after("n:b", lineage(["n:a", "n:x", "n:y", "n:b"]), lineage(["n:z", "n:b"]), [])
    assert upper.deepest == 3
    left = MovedNode.after("n:c", lineage(["n:z", "n:b", "n:c"]), lineage(["n:w", "n:c"]), [upper.item("n")])
    assert left.deepest == 4


def test_a_lineage_that_contains_itself_ends() -> None:
    one = MovedNode("n:a", lineage(["n:b", "n:a"]), 1)
    other = MovedNode("n:b", lineage(["n:a", "n:b"]), 1)
    assert Moves([one, other]).depth(lineage(["n:a", "n:b"])) <= 64


def test_moves_of_one_tree_are_those_of_its_nodes() -> None:
    moves = Moves([MovedNode("n:b", lineage(["n:r", "n:b"]), 2), MovedNode("n:c", lineage(["n:s", "n:c"]), 2)])
    lines = [lineage(["n:r", "n:a", "n:b"]), lineage(["n:r", "n:a", "n:c"])]
    assert [moves.in_tree(id_hash("n:r")).depth(line) for line in lines] == [1, 2]
