"""Tree: what a hierarchy holds by the docs, as plain paths, with the answers that follow from it."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

Path = tuple[str, ...]
CODED = 20  # each such card has a unique value


@dataclass(frozen=True)
class Item:
    """A node: its id without the hierarchy, its level and its name; `sku` is a unique value."""

    id: str
    level: str
    name: str
    note: str = ""
    sku: str = ""


@dataclass
class Tree:
    """Nodes by path, and the ids that former paths lead to."""

    nodes: dict[Path, Item] = field(default_factory=dict)
    former: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paths = {item.id: path for path, item in self.nodes.items()}
        self.codes = {item.sku: path for path, item in self.nodes.items() if item.sku}
        self._order = sorted(self.nodes)
        self._children: dict[Path, list[Path]] = defaultdict(list)
        for path in self._order:
            self._children[path[:-1]].append(path)

    def find(self, path: Path) -> Path | None:
        """Where the node of a path is now; "a former path of a node that was moved or renamed still finds it"."""
        return path if path in self.nodes else self.paths.get(self.former.get(path, ""))

    def below(self, path: Path) -> list[Path]:
        """Descendants in path order."""
        after = (*path, chr(0x10FFFF))
        return self._order[bisect_right(self._order, path) : bisect_left(self._order, after)]

    def children(self, path: Path) -> list[Path]:
        return self._children.get(path, [])

    def ancestors(self, path: Path) -> list[Path]:
        return [path[:length] for length in range(1, len(path))]

    def coded(self, path: Path, sku: str) -> "Tree":
        """This tree after a node has got a unique value."""
        return Tree({**self.nodes, path: replace(self.nodes[path], sku=sku)}, self.former)

    def moved(self, old: Path, new: Path) -> "Tree":
        """This tree after a move or a rename."""
        size = len(old)
        taken = [(path, item) for path, item in self.nodes.items() if path[:size] == old]
        kept = {path: item for path, item in self.nodes.items() if path[:size] != old}
        former = {**self.former, **{path: item.id for path, item in taken}}
        return Tree({**kept, **{new + path[size:]: item for path, item in taken}}, former)

    def deleted(self, old: Path) -> "Tree":
        size = len(old)
        kept = {path: item for path, item in self.nodes.items() if path[:size] != old}
        gone = self.nodes.keys() - kept.keys()
        return Tree(kept, {path: item for path, item in self.former.items() if path not in gone})

    def restored(self, gone: "Tree", old: Path, new: Path) -> "Tree":
        """This tree after the subtree at `old` of an earlier one has come back at `new`."""
        back = [(path, item) for path, item in gone.nodes.items() if path[: len(old)] == old]
        former = {path: item.id for path, item in back if old != new}
        return Tree({**self.nodes, **{new + path[len(old) :]: item for path, item in back}}, {**self.former, **former})

    def lines(self) -> Iterator[dict[str, object]]:
        """The lines of a file that `clade import` reads."""
        for path, item in sorted(self.nodes.items()):
            title = {"title": "t"} if item.level == "CARD" else {}
            sku = {"sku": item.sku} if item.sku else {}
            note = {"note": item.note} if item.note else {}
            yield {"path": list(path), "level": item.level, "name": item.name, "id": item.id, **title, **note, **sku}


def text(path: Path | None) -> str | None:
    """A path as GraphQL has it."""
    return None if path is None else "/".join(part.replace("%", "%25").replace("/", "%2F") for part in path)


def with_subtree(boxes: int, cards: int, note: int = 0) -> Tree:
    """T, T/dest with two nodes, and T/big with boxes * (cards + 1) nodes; a second tree V."""
    nodes: dict[Path, Item] = {(name,): Item(name.lower(), "BOX", f"Root {name}") for name in ("T", "V")}
    nodes |= {("T", name): Item(f"t-{name}", "BOX", f"Top {name}top") for name in ("big", "dest", "rest")}
    nodes |= {("T", "dest", name): Item(f"t-dest-{name}", "CARD", f"Old {name}") for name in ("a", "z")}
    for box in range(boxes):
        nodes["T", "big", f"{box:03}"] = Item(f"b{box:03}", "BOX", f"Crate {box:03} crate{box:03}z")
        for card in range(cards):
            name = f"Slip {box:03} word{box * cards + card:05}z"
            sku = "" if (box * cards + card) % CODED else f"code {box:03} {card:03}"
            nodes["T", "big", f"{box:03}", f"{card:03}"] = Item(f"c{box:03}{card:03}", "CARD", name, "x" * note, sku)
    return Tree(nodes)
