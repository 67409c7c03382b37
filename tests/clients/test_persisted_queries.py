"""Persisted queries of real clients: urql and Apollo Client go on with the text where the server lacks the hash."""

import asyncio
import hashlib
import json
from contextlib import ExitStack

from graph.app import create_app
from graph.hierarchies.locations import Location
from graph.settings import Settings
from store.connect import opened
from tests.clients.programs import HERE, needs_node, run
from tests.serving import serving
from tests.systems.asking import plant

KNOWN = """query Known($path: Path!) {
  location(path: $path) {
    name
    __typename
  }
}"""
"""As both clients print it, so that they send the hash of this text."""

MODES = ("none", "prefer", "only")
NOT_SUPPORTED, NOT_FOUND = "200 PERSISTED_QUERY_NOT_SUPPORTED", "200 PERSISTED_QUERY_NOT_FOUND"


def requests_of(mode: str, client: str, by_get: bool | None, turn: int) -> list[str]:
    """The requests of a client for a document that it asks for twice, then for an unknown one twice."""
    hashed = "GET" if by_get or (client == "urql" and by_get is None) else "POST"
    text = hashed if client == "urql" else "POST"
    if turn < 2 and mode != "none":
        return [f"{hashed} extensions: 200 data"]
    if mode == "none" and turn > 0:  # the client has learned that it need not send hashes
        return ["GET query: 200 data" if client == "urql" else "POST query+extensions: 200 data"]
    refusal = NOT_SUPPORTED if mode == "none" else NOT_FOUND
    answer = "200 FORBIDDEN" if mode == "only" else "200 data"
    return [f"{hashed} extensions: {refusal}", f"{text} query+extensions: {answer}"]


@needs_node
async def test_clients_get_data_by_their_defaults_and_send_a_text_that_is_refused_once(tmp_path):
    store = f"sqlite:///{tmp_path / 'clade.db'}"
    async with opened(store, make=True) as made:
        await plant(made, Location, [(("US",), "COUNTRY")])
    documents = tmp_path / "documents.json"
    documents.write_text(json.dumps({hashlib.sha256(KNOWN.encode()).hexdigest(): KNOWN}))
    with ExitStack() as servers:
        urls = []
        for mode in MODES:
            trusted = {} if mode == "none" else {"trusted_documents": str(documents), "trusted_mode": mode}
            urls.append(servers.enter_context(serving(create_app(Settings(store=store, **trusted)))) + "/graphql")
        printed = await asyncio.to_thread(run, "node", HERE / "persisted.mjs", KNOWN, *urls)
    *lines, complaints = [json.loads(line) for line in printed.splitlines()]
    assert complaints == []
    assert len(lines) == 3 * 2 * 3 * 4
    for number, (at, client, by_get, _, shown, requests) in enumerate(lines):
        mode, turn = MODES[at], number % 4
        assert requests == requests_of(mode, client, by_get, turn), (mode, client, by_get, turn)
        if mode == "only" and turn > 1:
            assert shown.endswith("Unknown document; only persisted documents are accepted.")
        else:
            assert shown == "US"
