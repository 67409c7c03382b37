"""Oracle: a process of Node.js that answers documents by graphql-js, and asks back what only Clade can know."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "oracle.mjs"
SAFE = 2**53 - 1
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


def node_command() -> str | None:
    """Node.js, or None where it or graphql-js is missing."""
    installed = (FILE.parents[2] / "node_modules/graphql").exists()
    return shutil.which("node") if installed else None


def exact(value: Any) -> Any:
    """Whole numbers that JavaScript would round become objects."""
    if isinstance(value, dict):
        return {key: exact(one) for key, one in value.items()}
    if isinstance(value, list):
        return [exact(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > SAFE:
        return {"$big": str(value)}
    return value


def plain(pairs: list[tuple[str, Any]]) -> Any:
    """The reverse of `exact`, as a hook of JSON."""
    if len(pairs) == 1 and pairs[0][0] == "$big":
        return int(pairs[0][1])
    return dict(pairs)


class Oracle:
    """One process for one data set."""

    def __init__(self, world: dict[str, Any], ask: Ask) -> None:
        node = node_command()
        assert node, "Node.js and tests/node_modules are needed: scripts/test installs them"
        self._ask = ask
        self._process = subprocess.Popen([node, str(FILE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send(world)
        self._receive()

    def know_cursors(self, cursors: list[dict[str, Any]]) -> None:
        self._send({"cursors": cursors})
        self._receive()

    def answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """What is right for a document, with the figures of its execution."""
        self._send({"id": 1, "query": query, "variables": variables})
        while True:
            message = self._receive()
            if "ask" not in message:
                return message
            self._send({"answer": message["ask"], "body": self._ask(message["query"], message["variables"])})

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(exact(message)).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the oracle ended"
        return dict(json.loads(line, object_pairs_hook=plain))
