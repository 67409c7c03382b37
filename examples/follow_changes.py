"""Follower of the change feed, which keeps a document for each place up to date in the search engine Typesense.

python -m examples.follow_changes --clade http://127.0.0.1:8000/graphql --engine http://127.0.0.1:8108

TYPESENSE_API_KEY is the engine's key, FOLLOWER_KEY a key of Clade that may read all places, where it needs one. Run one
follower for a collection.

A document holds what is the node's own, its path, and the ids of its ancestors. It does not hold their names: else a
country with a new name would be a new text in the documents of all its cities. Breadcrumbs come from Clade, by the ids
of the hits.

A change says which node to read again, never what to write: a created or updated node by its id, a moved or restored
one with all nodes below it. Each document has the time at which it was read. Documents below a node that was moved or
deleted which are older than that are removed. So changes may come late, or twice, and the documents still become
correct.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

NODE = """fragment Node on Location {
  id path level name population names { text } ancestors { id }
}"""
ROOTS = "query Roots($after: String) { page: locations(first: 500, after: $after) { nodes { id path } %s } }"
NODES = NODE + "query Nodes($ids: [ID!]!) { nodes(ids: $ids) { ...Node } }"
BELOW = (
    NODE
    + """query Below($id: ID!, $after: String) {
  location(id: $id) { ...Node page: descendants(first: 250, after: $after) { nodes { ...Node } %s } }
}"""
)
PAGE_INFO = "pageInfo { hasNextPage endCursor }"
CHANGES = """query Changes($tree: Path!, $after: String) {
  changes(hierarchy: LOCATION, tree: $tree, after: $after) { changes { event nodeId from to } cursor hasMore }
}"""
FIELDS = [
    {"name": "name", "type": "string"},
    {"name": "names", "type": "string[]"},
    {"name": "level", "type": "string", "facet": True},
    {"name": "path", "type": "string"},
    {"name": "ancestors", "type": "string[]", "facet": True},
    {"name": "population", "type": "int64", "optional": True},
    {"name": "read", "type": "int64"},
]
IDS_A_REQUEST = 50  # 50 ids of usual length make a filter of some 2,000 characters
RETRIED = {408, 425, 429, 500, 502, 503, 504}
RETRIED_CODES = {"OVERLOADED", "TIMEOUT", "UNAVAILABLE", "INTERNAL_SERVER_ERROR"}
PAUSES = (0.5, 1, 2, 4, 8, 16, 30, 30, 30)  # seconds before each further attempt: two minutes in all

Json = dict[str, Any]
T = TypeVar("T")


class Refused(Exception):
    """A request that no repetition makes right, with the way out where there is one."""


class Expired(Exception):
    """Changes after the cursor have expired, so the tree has to be read again."""


class Unavailable(Exception):
    """A request that may succeed when it is sent again."""


def send(url: str, body: bytes | None, headers: dict[str, str], method: str, seconds: float) -> bytes:
    """The body of a response. Raises Unavailable or Refused."""
    request = Request(url, body, headers, method=method)  # noqa: S310 - the addresses are the operator's
    try:
        with urlopen(request, timeout=seconds) as response:  # noqa: S310
            return bytes(response.read())
    except HTTPError as error:
        text = f"{method} {url.partition('?')[0]}: HTTP status {error.code}, {error.read(500).decode(errors='replace')}"
        raise (Unavailable if error.code in RETRIED else Refused)(text) from None
    except (OSError, HTTPException) as error:  # no connection, silence, or a response that was cut
        raise Unavailable(f"{method} {url.partition('?')[0]}: {error or type(error).__name__}") from None


def retried(call: Callable[[], T], pauses: Iterable[float]) -> T:
    """The result of a call that is repeated while the other side is unavailable."""
    for pause in pauses:
        try:
            return call()
        except Unavailable as error:
            print(f"{error}; the next attempt is in {pause} s.", file=sys.stderr)
            time.sleep(pause)
    return call()


class Clade:
    """Clade's API."""

    def __init__(self, url: str, key: str = "", *, seconds: float = 30, pauses: Iterable[float] = PAUSES) -> None:
        self._url, self._seconds, self._pauses = url, seconds, tuple(pauses)
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        self._headers |= {"authorization": f"Bearer {key}"} if key else {}

    def ask(self, query: str, **variables: Any) -> Json:
        """The data of a response without errors."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        return retried(lambda: self._ask(body), self._pauses)

    def _ask(self, body: bytes) -> Json:
        answer = json.loads(send(self._url, body, self._headers, "POST", self._seconds))
        if not (errors := answer.get("errors")):
            data: Json = answer["data"]
            return data
        code = errors[0].get("extensions", {}).get("code")
        if code in ("CURSOR_EXPIRED", "BAD_CURSOR"):
            raise Expired
        raise (Unavailable if code in RETRIED_CODES else Refused)(f"{self._url}: {errors[0]['message']}")

    def roots(self) -> dict[str, str]:
        """The ids of all roots by their paths."""
        found: dict[str, str] = {}
        after = None
        while True:
            page = self.ask(ROOTS % PAGE_INFO, after=after)["page"]
            found |= {node["path"]: node["id"] for node in page["nodes"]}
            if not page["pageInfo"]["hasNextPage"]:
                return found
            after = page["pageInfo"]["endCursor"]

    def nodes(self, ids: list[str]) -> Iterator[Json]:
        """Those of the nodes that exist."""
        for some in slices(ids, IDS_A_REQUEST):
            yield from filter(None, self.ask(NODES, ids=some)["nodes"])

    def subtree(self, node_id: str) -> Iterator[list[Json]]:
        """A node, then all below it, page by page; nothing where the node does not exist."""
        after = None
        while node := self.ask(BELOW % PAGE_INFO, id=node_id, after=after)["location"]:
            page = node.pop("page")
            yield ([node] if after is None else []) + page["nodes"]
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]

    def changes(self, tree: str, after: str | None) -> Json:
        """A page of a tree's changes. Raises Expired."""
        feed: Json = self.ask(CHANGES, tree=tree, after=after)["changes"]
        return feed


class Typesense:
    """One collection of Typesense."""

    def __init__(
        self, url: str, collection: str, key: str, *, seconds: float = 30, pauses: Iterable[float] = PAUSES
    ) -> None:
        self._url, self._name, self._seconds, self._pauses = url.rstrip("/"), collection, seconds, tuple(pauses)
        self._headers = {"x-typesense-api-key": key, "content-type": "application/json"}

    def create(self) -> None:
        """Create the collection, unless it exists."""
        if all(one["name"] != self._name for one in json.loads(self._send("GET", "/collections"))):
            self._send("POST", "/collections", {"name": self._name, "fields": FIELDS})

    def write(self, documents: list[Json]) -> None:
        """Create these documents, or replace those with their ids."""
        if not documents:
            return
        answer = self._send("POST", self._documents("/import?action=upsert"), *documents)
        lines = [json.loads(line) for line in answer.splitlines()]  # one for each document, also where it was rejected
        if wrong := [line for line in lines if not line["success"]]:
            raise Refused(f"{len(wrong)} of {len(documents)} documents were rejected, the first: {wrong[0]['error']}")

    def remove(self, ids: Iterable[str], before: int) -> None:
        """Remove the documents of these nodes, and of all that were below them, which were read before a time."""
        for some in slices([document_id(one) for one in ids], IDS_A_REQUEST):
            listed = ",".join(f"`{one}`" for one in some)
            condition = f"(id:=[{listed}] || ancestors:=[{listed}]) && read:<{before}"
            self._send("DELETE", self._documents(f"?{urlencode({'filter_by': condition})}"))

    def _documents(self, rest: str) -> str:
        return f"/collections/{quote(self._name, safe='')}/documents{rest}"

    def _send(self, method: str, path: str, *lines: Json) -> bytes:
        body = "\n".join(json.dumps(line) for line in lines).encode() or None
        call = lambda: send(self._url + path, body, self._headers, method, self._seconds)  # noqa: E731
        return retried(call, self._pauses)


class State:
    """The cursor of each tree by its path, and the last time of reading, in a file that is replaced as a whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        saved: Json = json.loads(file.read_text("utf-8")) if file.exists() else {}
        self.trees: dict[str, Json] = saved.get("trees", {})
        self.time: int = saved.get("time", 0)

    def save(self) -> None:
        new = self._file.with_name(f"{self._file.name}.new")
        new.write_text(json.dumps({"time": self.time, "trees": self.trees}), "utf-8")
        os.replace(new, self._file)

    def now(self) -> int:
        """A time in milliseconds that is later than all before, also where the clock was set back."""
        self.time = max(self.time + 1, time.time_ns() // 1_000_000)
        self.save()
        return self.time


class Follower:
    """Brings the changes of all trees to the engine."""

    def __init__(self, clade: Clade, engine: Typesense, state: State) -> None:
        self._clade, self._engine, self._state = clade, engine, state

    def follow(self) -> int:
        """Bring what has changed since the last time; the number of changes. Raises Refused, Unavailable."""
        trees, number = self._state.trees, 0
        roots = self._clade.roots()
        for path, node_id in roots.items():
            if path not in trees or trees[path]["cursor"] is None:
                self._read_tree(path, node_id)
        for path in list(trees):
            try:
                number += self._follow_tree(path)
            except Expired:
                self._read_tree(path, roots.get(path) or trees[path]["id"])
            if path not in roots:  # its last changes said where its nodes went
                del trees[path]
                self._state.save()
        return number

    def _follow_tree(self, path: str) -> int:
        tree, number, has_more = self._state.trees[path], 0, True
        while has_more:
            feed = self._clade.changes(path, tree["cursor"])
            if feed["changes"]:
                self._apply(feed["changes"])
                number += len(feed["changes"])
            if feed["cursor"] != tree["cursor"]:
                tree["cursor"] = feed["cursor"]
                self._state.save()  # after the engine has everything: what was not saved comes again
            has_more = feed["hasMore"]
        return number

    def _apply(self, changes: list[Json]) -> None:
        """Read what changes are about, write it, and remove what is gone."""
        if any(change["nodeId"] is None for change in changes):
            raise Refused("Changes without ids: the key of Clade does not read all places; grant it read:location.")
        read = self._state.now()
        touched = list(dict.fromkeys(change["nodeId"] for change in changes))
        restored = {one["nodeId"] for one in changes if one["event"] == "RESTORED"}
        moved = {one["nodeId"] for one in changes if one["event"] == "MOVED" and one["from"] != one["to"]}
        deleted = {one["nodeId"] for one in changes if one["event"] == "DELETED"}
        found = list(self._clade.nodes(touched))
        for some in slices(found, 500):
            self._engine.write([document(node, read) for node in some])
        for node_id in touched:
            if node_id in moved | restored:
                self._write_subtree(node_id, read)
        gone = set(touched) - {node["id"] for node in found}
        self._engine.remove([one for one in touched if one in moved | deleted | gone], before=read)

    def _read_tree(self, path: str, root: str) -> None:
        """Write all that is below the tree's root, and below its former one if that is another node.

        Changes from before are skipped, those that come meanwhile follow. The tree is saved first, without a cursor: if
        this is stopped and the tree is gone by then, its changes say what to remove.
        """
        tree = self._state.trees.setdefault(path, {"id": root, "cursor": None})
        self._state.save()
        cursor, has_more = None, True
        while has_more:
            feed = self._clade.changes(path, cursor)
            cursor, has_more = feed["cursor"], feed["hasMore"]
        read = self._state.now()
        roots = list(dict.fromkeys([root, tree["id"]]))
        for node_id in roots:
            self._write_subtree(node_id, read)
        self._engine.remove(roots, before=read)
        self._state.trees[path] = {"id": root, "cursor": cursor}
        self._state.save()

    def _write_subtree(self, node_id: str, read: int) -> None:
        for nodes in self._clade.subtree(node_id):
            self._engine.write([document(node, read) for node in nodes])


def document(node: Json, read: int) -> Json:
    """The document of a node that was read at a time."""
    return {
        "id": document_id(node["id"]),
        "name": node["name"],
        "names": [name["text"] for name in node["names"]],
        "level": node["level"],
        "path": node["path"],
        "ancestors": [document_id(one["id"]) for one in node["ancestors"]],
        "population": node.get("population"),
        "read": read,
    }


def document_id(node_id: str) -> str:
    """A node's id as one that needs no quotes in addresses and filters; most ids are as they are."""
    return quote(node_id, safe=":")


def slices(values: list[T], length: int) -> Iterator[list[T]]:
    return (values[start : start + length] for start in range(0, len(values), length))


def main() -> None:
    parser = argparse.ArgumentParser(description="Bring the places of Clade to a search engine, and their changes.")
    parser.add_argument("--clade", required=True, help="address of Clade's /graphql")
    parser.add_argument("--engine", required=True, help="address of the engine")
    parser.add_argument("--collection", default="places", help="name of the collection; places without it")
    parser.add_argument(
        "--state", type=Path, default="places.json", help="file with the cursors; places.json without it"
    )
    parser.add_argument("--every", type=float, default=2, help="seconds between two looks; 2 without it")
    parser.add_argument("--once", action="store_true", help="end when everything is written")
    options = parser.parse_args()
    clade = Clade(options.clade, os.environ.get("FOLLOWER_KEY", ""))
    engine = Typesense(options.engine, options.collection, os.environ.get("TYPESENSE_API_KEY", ""))
    try:
        engine.create()
        follower = Follower(clade, engine, State(options.state))
        while True:
            if number := follower.follow():
                print(f"{number} changes", flush=True)
            if options.once:
                return
            time.sleep(options.every)
    except (Refused, Unavailable) as error:
        sys.exit(f"{error}; correct that, then start it again.")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
