"""Moving subtree: one that is moved while clients read it, and the check of each response."""

from collections.abc import Iterator
from typing import Any

from graph.hierarchies.categories import CategoryNode
from store.engine import Store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row

HERE, THERE = "r/here/moving", "r/there/moving"

_NODES = "nodes { path"
_WATCH = f"""query($id: ID!, $inner: ID!, $here: Path!, $there: Path!) {{
  flat: categoryNode(path: "r") {{ descendantCount descendants {{ totalCount {_NODES} }} }} }}
  nested: categoryNode(path: "r") {{
    children {{ {_NODES} descendantCount
      children {{ {_NODES} children {{ {_NODES} children {{ {_NODES} }} }} }} }} }} }} }} }}
  }}
  top: node(id: $id) {{ ... on CategoryNode {{ path parent {{ childCount children {{ {_NODES} }} }} }} }} }}
  inner: node(id: $inner) {{ ... on CategoryNode {{ path ancestors {{ path }} }} }}
  here: categoryNode(path: $here) {{ path }}
  there: categoryNode(path: $there) {{ path }}
}}"""


class MovingSubtree:
    """Groups of parts below one node, which is at HERE at first."""

    def __init__(self, groups: int, parts: int) -> None:
        self.inner = [f"/g{g}" for g in range(groups)]
        self.inner += [f"{group}/p{p}" for group in self.inner for p in range(parts)]

    async def plant(self, store: Store) -> None:
        """Write its tree into a store, with fixed ids."""
        wanted = ImportPlan(CategoryNode.definition())
        paths = ["r", "r/here", "r/there", "r/there/other", *self.at(HERE)]
        for number, path in enumerate(paths):
            part = Part("CATEGORY", id=path.replace("/", "."))
            wanted.take(Row(number, tuple(path.split("/")), [part]))
        await load(store, wanted, LoadResult())

    def at(self, place: str) -> list[str]:
        """The paths of all its nodes at a place."""
        return [place, *(place + path for path in self.inner)]

    def below_root(self, place: str) -> list[str]:
        return sorted(["r/here", "r/there", "r/there/other", *self.at(place)])

    def watch(self) -> tuple[str, dict[str, str]]:
        """A query with every field that leads to it, and its variables."""
        here, there = HERE + self.inner[-1], THERE + self.inner[-1]
        return _WATCH, {"id": _id(HERE), "inner": _id(here), "here": here, "there": there}

    def place_in(self, data: dict[str, Any]) -> str:
        """The place at which one response shows it, by every field that leads to it; fails if there are several."""
        flat = data["flat"]["descendants"]["nodes"]
        paths = [one["path"] for one in flat]
        place = HERE if HERE in paths else THERE
        assert sorted(paths) == self.below_root(place)
        assert data["flat"]["descendantCount"] == data["flat"]["descendants"]["totalCount"] == len(paths)
        assert sorted(_paths(data["nested"])) == self.below_root(place)
        for parent in data["nested"]["children"]["nodes"]:
            below = [path for path in paths if path.startswith(parent["path"] + "/")]
            assert parent["descendantCount"] == len(below), parent["path"]
        inner = {"path": place + self.inner[-1]}
        family = [one["path"] for one in data["top"]["parent"]["children"]["nodes"]]
        assert data["top"]["path"] == place
        assert (family.count(place), data["top"]["parent"]["childCount"]) == (1, len(family))
        assert data["inner"]["path"] == inner["path"]
        assert data["inner"]["ancestors"][2] == {"path": place}
        assert data["here"] == inner  # by its path, or by a redirect
        assert data["there"] in ([inner] if place == THERE else [inner, None])
        return place


def _paths(node: dict[str, Any]) -> Iterator[str]:
    for child in node.get("children", {}).get("nodes", ()):
        yield child["path"]
        yield from _paths(child)


def _id(path: str) -> str:
    return f"category:{path.replace('/', '.')}"
