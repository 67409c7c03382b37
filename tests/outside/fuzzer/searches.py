"""Searches: every node is found by its name, its names in other languages, and its key."""

import re
from collections.abc import Iterator

from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.session import Session

PROMISE = (
    "docs/find-nodes.md: each word of `text` has to be the beginning of a word of the node: of its name, "
    "its names in other languages, its key, or an attribute with `search=True`"
)
MOST = 100
SIGN = re.compile(r"(?<=[A-Za-z])['’.-](?=[A-Za-z])")  # inside a word, which is found without it, too


def check(session: Session) -> Iterator[tuple[Document, Difference]]:
    """What is not found, or found without a reason."""
    for hierarchy in session.snapshot.hierarchies:
        field = hierarchy["fields"]["searchField"]
        for node in hierarchy["nodes"]:
            texts = {node["name"], node["key"], *(name["text"] for name in node["names"])}
            texts |= {SIGN.sub("", text) for text in texts if len(text) <= 100}
            for text in sorted(text for text in texts if re.search(r"[A-Za-z0-9]", text) and len(text.split()) <= 8):
                query = (
                    f"query($text: String!) {{ {field}(text: $text, first: {MOST}) {{ nodes {{ path }} complete }} }}"
                )
                document = Document(query, {"text": text})
                reply = session.client.ask(document)
                session.counts["searches compared"] += 1
                found = (reply.json.get("data") or {}).get(field)
                paths = [hit["path"] for hit in found["nodes"]] if found else []
                if node["path"] not in paths and len(paths) < MOST:
                    yield document, Difference("search", field, PROMISE, node["path"], reply.json)
