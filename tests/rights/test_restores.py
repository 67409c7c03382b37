"""Restores by callers with grants: where stores differ in hidden nodes alone, no answer to a caller differs; and
a large restore is shown to those who see both of its places.
"""

from typing import Any

import pytest

from graph.hierarchies.categories import CategoryNode
from store.connect import open_store
from store.engine import Store
from store.metadata.moves import MoveState
from store.model.records import derived_id
from store.writing.edit import Named
from store.writing.restore import Restore
from tests.rights.asking import Server, caller, codes
from tests.store.writing.journaled import SMALL, SOON, halted, lapse, resume
from tests.stores import ReadRecorder
from tests.systems.asking import plant
from tests.user_errors import with_user_errors

ADMIN = caller("write:category", name="admin")
EDITOR = caller("write:category/T/s", "write:category/U", name="editor")
PLACES = ["H", "H/h", "T", "T/s", "T/s/p", "T/s/p/x", "T/s/p/x/y", "U", "U/u"]
MANY = [f"T/s/p/n{number}" for number in range(SMALL // 2)]
WHOLE = "node { id path } move { id from to } plan { nodes writeUnits transactions }"


def id_of(path: str) -> str:
    return f"category:{derived_id('category', tuple(path.split('/')))}"


def delete(path: str) -> str:
    return f'deleteCategoryNode(input: {{node: {{path: "{path}"}}, policy: CASCADE}})'


def move(path: str, parent: str, key: str = "moved") -> str:
    return f'moveCategoryNode(input: {{node: {{path: "{path}"}}, to: {{parent: {{path: "{parent}"}}}}, key: "{key}"}})'


def again(node: str, path: str) -> str:
    """The creation of a node with the id of a deleted one."""
    above, _, key = path.rpartition("/")
    given = f'parent: {{path: "{above}"}}, key: "{key}", name: "x", id: "{node.partition(":")[2]}"'
    return f"createCategoryNode(input: {{{given}, attributes: {{category: {{}}}}}})"


def restore(path: str, more: str = "", options: str = "") -> str:
    return f'restoreCategoryNode(input: {{id: "{id_of(path)}" {more}}} {options})'


async def made(server: Server, *mutations: str) -> None:
    """Let the administrator make these, each after the end of the one before."""
    for one in mutations:
        answer = await server.write(ADMIN, f"mutation {{ {one} {{ node {{ id }} }} }}")
        assert "errors" not in answer, (one, answer)
        await server.writer.move_worker.finished()


# What the editor is told the same of in all of these lists of changes by others.
WORLDS = {
    "the parent is in a hidden place, or deleted there, or what it is in": (
        ["T/s/p/x"],
        [
            [delete("T/s/p/x"), move("T/s/p", "H")],
            [delete("T/s/p/x"), move("T/s/p", "H"), delete("H/moved")],
            [delete("T/s/p/x"), move("T/s/p", "H/h"), delete("H")],
            [delete("T/s/p/x"), move("T/s/p", "H"), delete("H/moved"), again(id_of("T/s/p"), "H/h/back")],
        ],
    ),
    "the parent of what is granted is elsewhere, or deleted, or another node": (
        ["T/s"],
        [
            [delete("T/s"), move("T", "H")],
            [delete("T/s"), delete("T")],
            [delete("T/s"), delete("T"), again("x:other", "H/T")],
            [delete("T/s"), move("T", "H", "T"), delete("H")],
        ],
    ),
    "the parent was deleted with it, and is deleted still, or in a hidden place": (
        ["T/s", "T/s/p/x"],
        [[delete("T")], [delete("T"), again(id_of("T"), "H/T")], [delete("T"), again(id_of("T"), "H/T"), delete("H")]],
    ),
    "the node itself is deleted in a hidden place, or is there, or was never": (
        ["H/h", "H/none"],
        [[], [delete("H/h")], [delete("H")], [move("H/h", "H", "i"), delete("H/i")]],
    ),
}
ASKED = [
    "", 'key: "z"', 'key: " "', 'to: {parent: {path: "U"}}', 'to: {parent: {path: "U"}}, key: "u"', "to: {root: true}",
    'to: {parent: {path: "H/h"}}', 'to: {root: true}, key: "H"', f'to: {{parent: {{id: "{id_of("H/h")}"}}}}',
]  # fmt: skip
LAST = 'to: {parent: {path: "U"}}'


async def told(changes: list[str], named: list[str], is_large: bool) -> list[Any]:
    """What the editor is told of dry runs of restores, and at last of one that is made, with the reads of each."""
    found: list[Any] = []
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await plant(store, CategoryNode, [(tuple(one.split("/")), "CATEGORY") for one in PLACES + MANY])
        await made(Server(store, CategoryNode, timing=SOON), *changes)
        store.max_commit_changes = SMALL if is_large else None
        asked = [(restore(path, more, "dryRun: true"), path, more) for path in named for more in ASKED]
        asked += [(restore(named[0], LAST, 'idempotencyKey: "once"'), "", "")] * 2
        seen: Any = ReadRecorder(store)
        server = Server(seen, CategoryNode, timing=SOON)
        for mutation, *what in asked:
            seen.keys, seen.spans = [], []
            answer = await server.write(EDITOR, with_user_errors(f"mutation {{ {mutation} {{ {WHOLE} }} }}"))
            await server.writer.move_worker.finished()
            for payload in (answer["data"] or {}).values():
                if payload and payload.get("move"):
                    payload["move"].pop("id")  # which is random
            reads = [] if is_large and not what[0] else [len(seen.keys), len(seen.spans)]
            found.append((*what, answer, reads))
    return found


@pytest.mark.parametrize("is_large", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("case", WORLDS)
async def test_a_restore_tells_nothing_of_hidden_nodes(case: str, is_large: bool) -> None:
    named, worlds = WORLDS[case]
    first, *others = [await told(changes, named, is_large) for changes in worlds]
    for one in others:
        for own, expected in zip(one, first, strict=True):
            assert own == expected
    assert "INTERNAL" not in str(first)


FORMER, PLACE = caller("read:category/T/s"), caller("read:category/U")
BOTH = caller("read:category/T/s", "read:category/U")


async def test_a_large_restore_is_shown_to_whoever_sees_its_former_and_its_new_place(store: Store) -> None:
    await plant(store, CategoryNode, [(tuple(one.split("/")), "CATEGORY") for one in PLACES + MANY])
    server = Server(store, CategoryNode, timing=SOON)
    await made(server, delete("T/s/p"))
    store.max_commit_changes = SMALL
    edit = Restore(CategoryNode.definition(), (), id_of("T/s/p"), names=[
        Named("id", id=id_of("T/s/p")), Named("to", path=("U",)),
    ])  # fmt: skip
    found = await halted(store, edit, MoveState.COPYING)
    for is_running in (True, False):
        if not is_running:
            await lapse(store)
            await resume(store)
        asked = f"""{{ move(id: "{found.id}") {{ from to }} moves(hierarchy: CATEGORY) {{ from }}
            deletedNode(id: "{id_of("T/s/p")}") {{ path }} }}"""
        told = [await server.data(who, asked) for who in (ADMIN, BOTH, FORMER, PLACE, caller("read:category/H"))]
        assert [one["move"] and one["move"]["from"] for one in told] == ["T/s/p", "T/s/p", None, None, None]
        assert [len(one["moves"]) for one in told] == [1, is_running, 0, 0, 0]
        assert [one["deletedNode"] for one in told] == [None] * 5
        paths = '{ categoriesByPath(paths: ["U/p", "U/p/x/y", "U/u"]) { path } }'
        seen = [one and one["path"] for one in (await server.data(PLACE, paths))["categoriesByPath"]]
        assert seen == [None, None, "U/u"] if is_running else ["U/p", "U/p/x/y", "U/u"]
    taken = await server.write(EDITOR, f"mutation {{ {restore('T/s/p')} {{ node {{ id }} }} }}")
    assert codes(taken) == ["NOT_FOUND"]
