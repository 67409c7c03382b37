"""Questions about a tree, and the answers that follow from the docs, for every kind of read."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.outside.faults.tree import Path, Tree, text


@dataclass(frozen=True)
class Question:
    """A root field, the answer in each state, and how much of an answer has an order by the docs."""

    field: str
    answers: tuple[Any, ...]
    shape: Callable[[Any], Any]


def same(answer: Any) -> Any:
    return answer


def unordered(answer: Any) -> Any:
    """An answer whose lists of siblings are sorted, since the order of new siblings is not in the docs."""
    if isinstance(answer, list):
        return sorted((unordered(part) for part in answer), key=repr)
    return {name: unordered(part) for name, part in answer.items()} if isinstance(answer, dict) else answer


class Asking:
    """Questions about states of a tree: the answers of each are computed once."""

    def __init__(self, states: tuple[Tree, ...]) -> None:
        self.states = states

    def _ask(self, field: str, answer: Callable[[Tree], Any], shape: Callable[[Any], Any] = same) -> Question:
        return Question(field, tuple(shape(answer(state)) for state in self.states), shape)

    def by_path(self, path: Path) -> list[Question]:
        """A node by a path that is current in one state or another."""
        argument = f'path: "{text(path)}"'
        return self._node(argument, lambda state: state.find(path))

    def by_id(self, item: str) -> list[Question]:
        return self._node(f'id: "thing:{item}"', lambda state: state.paths.get(item))

    def by_code(self, code: str) -> list[Question]:
        """A node by a unique value, which it has in one state or another."""
        return self._node(f'sku: "{code}"', lambda state: state.codes.get(code))

    def _node(self, argument: str, find: Callable[[Tree], Path | None]) -> list[Question]:
        def node(read: Callable[[Tree, Path], Any]) -> Callable[[Tree], Any]:
            def answer(state: Tree) -> Any:
                path = find(state)
                return None if path is None else read(state, path)

            return answer

        made = [
            (_FIELDS, _fields, same),
            (_UPWARDS, _upwards, same),
            (_CHILDREN, _children, unordered),
            (_COUNTS, _counts, same),
            (_DESCENDANTS, _descendants, same),
            (_FILTERED, _filtered, same),
        ]
        return [self._ask(f"thing({argument}) {selection}", node(read), shape) for selection, read, shape in made]

    def many(self, paths: list[Path]) -> list[Question]:
        """Lists of paths and ids, former ones too, and the roots."""
        ids = [state.nodes[path].id for state in self.states for path in paths if path in state.nodes]
        named = ", ".join(f'"{text(path)}"' for path in paths)
        given = ", ".join(f'"thing:{item}"' for item in ids)
        return [
            self._ask(
                f"thingsByPath(paths: [{named}]) {{ id path }}",
                lambda state: [_place(state, state.find(path)) for path in paths],
            ),
            self._ask(
                f"nodes(ids: [{given}]) {{ id ... on Thing {{ path }} }}",
                lambda state: [_place(state, state.paths.get(item)) for item in ids],
            ),
            self._ask(
                "things { totalCount nodes { path childCount } }",
                lambda state: {
                    "totalCount": len(state.children(())),
                    "nodes": [_child(state, path) for path in state.children(())],
                },
                unordered,
            ),
        ]

    def search(self, word: str, under: Path | None = None) -> Question:
        """A word that one name has, in all of the hierarchy or below a node."""
        below = f', under: "{text(under)}"' if under else ""

        def answer(state: Tree) -> Any:
            top = state.find(under) if under else ()
            found = [
                path
                for path, item in state.nodes.items()
                if top is not None and word in item.name.split() and path[: len(top)] == top and path != top
            ]
            return {"nodes": [_place(state, path) for path in found]}

        return self._ask(f'searchThings(text: "{word}"{below}) {{ nodes {{ id path }} }}', answer)

    def fixed(self, field: str, answers: tuple[Any, ...], shape: Callable[[Any], Any] = same) -> Question:
        return Question(field, answers, shape)


_FIELDS = "{ id path key name level depth }"
_UPWARDS = "{ path levelName parent { path } ancestors { id path name } }"
_CHILDREN = "{ path childCount children { totalCount nodes { path childCount } } }"
_COUNTS = "{ descendantCount boxes: descendantCount(level: BOX) descendants(level: CARD) { totalCount } }"
_DESCENDANTS = """{ all: descendants { totalCount } first: descendants(first: 7) { nodes { path } }
 last: descendants(last: 5, level: CARD) { nodes { path parent { path } } } }"""
_FILTERED = '{ children(where: {name: {startsWith: "crate 00"}}, orderBy: [{field: NAME}]) { nodes { path name } } }'


def _place(state: Tree, path: Path | None) -> Any:
    return None if path is None else {"id": f"thing:{state.nodes[path].id}", "path": text(path)}


def _child(state: Tree, path: Path) -> Any:
    return {"path": text(path), "childCount": len(state.children(path))}


def _fields(state: Tree, path: Path) -> Any:
    item = state.nodes[path]
    place = {"id": f"thing:{item.id}", "path": text(path), "key": path[-1]}
    return {**place, "name": item.name, "level": item.level, "depth": len(path) - 1}


def _upwards(state: Tree, path: Path) -> Any:
    above = [{**_place(state, other), "name": state.nodes[other].name} for other in state.ancestors(path)]
    parent = {"path": text(path[:-1])} if path[:-1] else None
    return {"path": text(path), "levelName": state.nodes[path].level, "parent": parent, "ancestors": above}


def _children(state: Tree, path: Path) -> Any:
    nodes = [_child(state, other) for other in state.children(path)]
    return {"path": text(path), "childCount": len(nodes), "children": {"totalCount": len(nodes), "nodes": nodes}}


def _counts(state: Tree, path: Path) -> Any:
    below = [state.nodes[other].level for other in state.below(path)]
    return {
        "descendantCount": len(below),
        "boxes": below.count("BOX"),
        "descendants": {"totalCount": below.count("CARD")},
    }


def _descendants(state: Tree, path: Path) -> Any:
    below = state.below(path)
    cards = [{"path": text(other), "parent": {"path": text(other[:-1])}} for other in below if _is_card(state, other)]
    return {
        "all": {"totalCount": len(below)},
        "first": {"nodes": [{"path": text(other)} for other in below[:7]]},
        "last": {"nodes": cards[-5:]},
    }


def _filtered(state: Tree, path: Path) -> Any:
    found = [other for other in state.children(path) if state.nodes[other].name.startswith("Crate 00")]
    names = sorted((state.nodes[other].name, text(other)) for other in found)
    return {"children": {"nodes": [{"path": place, "name": name} for name, place in names]}}


def _is_card(state: Tree, path: Path) -> bool:
    return state.nodes[path].level == "CARD"


def draw(pool: list[Question], chance: random.Random) -> list[Question]:
    """Some of the questions, for one request, which may have 30 aliases."""
    return chance.sample(pool, min(len(pool), chance.choice((1, 2, 3, 5, 7))))


def document(questions: list[Question]) -> str:
    return "{ " + "\n  ".join(f"a{number}: {asked.field}" for number, asked in enumerate(questions)) + " }"
