"""A large move: every response while it runs has to be wholly that of before or wholly that of after."""

import json
import threading
import time
from collections import Counter

from tests.outside.failures import Wrong
from tests.outside.processes import EXTREMES, Place, Server, command

PROMISE = (
    "writing.md",
    "Requests during a move see the state before or after the commit in the whole response: lists, pages, counts, ids "
    "and former paths alike.",
)
# "In SQLite a transaction moves or deletes up to 10,000 nodes of at most 20 MB" (writing.md).
NODES = {"sqlite": 10_050, "dynamodb": 60}
QUERY = (
    '{ old: thing(path: "from/big") { id path } new: thing(path: "to/big") { id path } '
    'from: thing(path: "from") { childCount descendantCount children { nodes { id } } } '
    'to: thing(path: "to") { childCount descendantCount children { nodes { id } } } }'
)


def large_move(place: Place) -> Counter[str]:
    """Move a subtree that no transaction holds, and look at both of its places from two servers until it is done."""
    store = place.new_store()
    size = NODES[place.kind]
    rows = [{"path": path, "level": "BOX", "name": path} for path in ("from", "to", "from/big")]
    rows += [{"path": f"from/big/{n}", "level": "CARD", "name": "x", "title": ""} for n in range(size)]
    file = place.folder / "large.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command("import", "thing", str(file), store=store, hierarchies=str(EXTREMES))
    settings = {"request_seconds": "4", "settle_seconds": "0.2"}
    servers = [place.server(store, **settings) for _ in range(2)]
    counts: Counter[str] = Counter()
    id = str(servers[0].ask(QUERY).data["old"]["id"])
    moving = threading.Thread(target=_move, args=(servers[0],))
    moving.start()
    state = ""
    while state != "DONE":
        for server in servers:
            _look(server, id, size, counts)
        time.sleep(0.02)
        moves = servers[1].ask("{ moves(hierarchy: THING) { state } }").data["moves"]
        state = moves[0]["state"] if moves else ""
    moving.join()
    _look(servers[1], id, size, counts)
    for server in servers:
        server.stop()
    return counts


def _move(server: Server) -> None:
    server.ask('mutation { moveThing(input: {node: {path: "from/big"}, to: {parent: {path: "to"}}}) { move { id } } }')


def _look(server: Server, id: str, size: int, counts: Counter[str]) -> None:
    """ "A former path leads to the node that was there last" (writing.md)."""
    got = server.ask(QUERY).data
    full = {"childCount": 1, "descendantCount": size + 1, "children": {"nodes": [{"id": id}]}}
    none = {"childCount": 0, "descendantCount": 0, "children": {"nodes": []}}
    node = {"id": id, "path": "from/big"}
    moved = {"id": id, "path": "to/big"}
    before = {"old": node, "new": None, "from": full, "to": none}
    after = {"old": moved, "new": moved, "from": none, "to": full}
    counts["responses during a large move"] += 1
    if got not in (before, after):
        raise Wrong(": ".join(PROMISE), [f"moveThing of {size + 1} nodes", QUERY], "before or after", got)
