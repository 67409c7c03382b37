"""An application that remembers each operation that it was sent, and what its answer read from the store."""

import json
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class Operation:
    """One request: its document, its variables, and `extensions.reads` of its answer."""

    query: str
    variables: dict[str, Any]
    reads: dict[str, Any]

    @property
    def representations(self) -> list[list[dict[str, Any]]]:
        """The representations of each of its `_entities`."""
        return [value for value in self.variables.values() if isinstance(value, list)]


@dataclass
class Recorder:
    """Asks for the reads of every operation and keeps them; everything else passes as it is."""

    app: ASGIApp
    operations: list[Operation] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent, answered = bytearray(), bytearray()

        async def receiving() -> Message:
            message = await receive()
            sent.extend(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            answered.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._keep(json.loads(sent), json.loads(answered))  # before the client has the response
            await send(message)

        await self.app({**scope, "headers": [*scope["headers"], (b"clade-reads", b"1")]}, receiving, sending)

    def _keep(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        reads = answer.get("extensions", {}).get("reads", {})
        self.operations.append(Operation(parameters["query"], parameters.get("variables") or {}, reads))
