"""Payloads of mutations: a node in a payload is what a query for it says right afterwards."""

import random
import time
from typing import Any

from tests.outside.fuzzer import compare
from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.documents import Maker
from tests.outside.fuzzer.session import Session
from tests.waiting import eventually

NEW = {
    "thing": '{box: {state: CLOSED, size: LARGE, states: [null_, OPEN], parcel: {code: "p", size: SMALL}}}',
    "location": '{country: {iso3: "XYZ"}}',
    "category": "{category: {}}",
}
PROMISE = "docs/consistency.md: the node in a mutation's payload is as the mutation left it"
SETTLE_SECONDS = 2.5
MOVE_SECONDS = 60.0


def check(session: Session, random_: random.Random, maker: Maker, number: int) -> tuple[Document, Difference] | None:
    """One mutation with a random selection of its node, and the query for the same; None if both say the same."""
    hierarchy = random_.choice(session.snapshot.hierarchies)
    field, interface = hierarchy["fields"]["field"], hierarchy["interface"]
    selection, fragments, _ = maker.payload(interface)
    if number % 3 == 0:
        path = f"new {number}"
        given = f'key: "{path}", name: "new", attributes: {NEW[hierarchy["name"]]}'
        name = f"create{interface}"
    else:
        path = random_.choice(hierarchy["nodes"])["path"]
        given = f'node: {{path: {_text(path)}}}, name: "name {number}"'
        name = f"update{interface}"
    if number % 5 == 4 and (gone := _deleted(session, interface, path)) is not None:
        name, given = f"restore{interface}", f"id: {_text(gone)}"
    more = " move { id endedAt } userErrors { code message }" if name.startswith("restore") else ""
    sent = f"{name}(input: {{{given}}}) {{ node {{ {selection} }}{more} }}"
    if number % 2 and not name.startswith("restore"):
        # The same in a batch, after which another edit has changed the node once more.
        many = hierarchy["fields"]["listField"]
        verb, name = name.removesuffix(interface), f"edit{many[0].upper()}{many[1:]}"
        last = f"update: {{node: {{path: {_text(path)}}}, name: {_text(f'last {number}')}}}"
        sent = f"{name}(edits: [{{{verb}: {{{given}}}}}, {{{last}}}]) {{ nodes {{ {selection} }} }}"
    write = Document(f"mutation {{ {sent} }} {fragments}")
    read = Document(f"{{ {field}(path: {_text(path)}) {{ {selection} }} }} {fragments}")
    said = session.client.ask(write)
    found = compare.internal(said)
    if found:
        return write, found
    if "GRAPHQL_VALIDATION_FAILED" in said.codes:
        return write, Difference("payload", name, "the documents of the suite match the schema", None, said.json)
    if "data" not in said.json or compare.BUDGETS & set(said.codes):
        return None
    payload = said.json["data"][name] or {}
    _wait(session, payload)
    if (move := payload.get("move")) and move["endedAt"] is None:  # so what is below the node was still gone then
        session.counts["payloads of moves that went on"] += 1
        return None
    session.counts["payloads compared"] += 1
    made = payload["node"] if "node" in payload else (payload.get("nodes") or [None])[0]
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        answer = session.client.ask(read)
        now = answer.json.get("data", {}).get(field)
        if now == made or compare.BUDGETS & set(answer.codes):
            return None
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return write, Difference("payload", name, PROMISE, {"query": read.query, "data": now}, said.json)


def _deleted(session: Session, interface: str, path: str) -> str | None:
    """The id of the node at a path, which is deleted with its subtree; None if it is damaged, or not there."""
    given = f"input: {{node: {{path: {_text(path)}}}, policy: CASCADE}}"
    sent = f"mutation {{ made: delete{interface}({given}) {{ node {{ id }} move {{ id }} }} }}"
    made = (session.client.ask(Document(sent)).json.get("data") or {}).get("made") or {}
    _wait(session, made)
    session.counts["nodes deleted and restored"] += made.get("node") is not None
    return made["node"]["id"] if made.get("node") else None


def _wait(session: Session, made: dict[str, Any]) -> None:
    """Wait for the end of a large move, if a payload has one."""
    if move := made.get("move"):
        ended = Document(f"{{ move(id: {_text(move['id'])}) {{ endedAt }} }}")
        eventually(lambda: session.client.ask(ended).json["data"]["move"]["endedAt"], MOVE_SECONDS)


def _text(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
