"""Search engine that speaks the part of Typesense's API which writes documents, with faults on demand.

Collections are created with fields; documents are imported as JSON lines with `action=upsert`, each answered by a line
of its own; they are deleted by `filter_by`, of which it supports `:=` with a list of quoted values, `:<` with a number,
`&&`, `||` and parentheses.
"""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

KEY = "engine-key"
MAX_QUERY = 4_000
TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "string[]": lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    "int64": lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63,
}
TOKEN = re.compile(r"\s*(?:(\(|\)|&&|\|\|)|(\w+):=\[((?:`[^`]*`,?)+)\]|(\w+):<(\d+))")


class Typesense:
    """The engine: its collections by their names, with the documents of each by id.

    `fault` is called for each request and says what goes wrong: "refuse" and "lose" answer 503, before or after the
    request was carried out; "cut" ends the response half-way, "hang" sends none until `closed` is set, as it has to be
    before the server ends. None is no fault.
    """

    def __init__(self) -> None:
        self.fields: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.fault: Callable[[], str | None] = lambda: None
        self.closed = threading.Event()
        self.app = Starlette(
            routes=[
                Route("/collections", self._serve(self._collections), methods=["GET", "POST"]),
                Route("/collections/{name}/documents/import", self._serve(self._import), methods=["POST"]),
                Route("/collections/{name}/documents", self._serve(self._delete), methods=["DELETE"]),
            ]
        )

    def _serve(self, answer: Callable[[Request, bytes], Response]) -> Callable[[Request], Any]:
        async def serve(request: Request) -> Response:
            body = await request.body()
            self.requests.append(f"{request.method} {request.url.path}")
            if request.headers.get("x-typesense-api-key") != KEY:
                return JSONResponse({"message": "Forbidden - a valid `x-typesense-api-key` header must be sent."}, 401)
            fault = await asyncio.to_thread(self.fault)
            if fault == "refuse":
                return JSONResponse({"message": "Not Ready or Lagging"}, 503)
            if fault == "hang":
                await asyncio.to_thread(self.closed.wait)
            response = answer(request, body)
            if fault == "lose":
                return JSONResponse({"message": "Not Ready or Lagging"}, 503)
            return StreamingResponse(half(bytes(response.body))) if fault == "cut" else response

        return serve

    def _collections(self, request: Request, body: bytes) -> Response:
        if request.method == "GET":
            return JSONResponse([{"name": name} for name in self.fields])
        schema = json.loads(body)
        if schema["name"] in self.fields:
            return JSONResponse({"message": f"A collection with name `{schema['name']}` already exists."}, 409)
        self.fields[schema["name"]] = {one["name"]: one for one in schema["fields"]}
        return JSONResponse(schema, 201)

    def _import(self, request: Request, body: bytes) -> Response:
        if (name := request.path_params["name"]) not in self.fields:
            return JSONResponse({"message": "Not found."}, 404)
        assert request.query_params["action"] == "upsert"
        lines = []
        for line in body.decode().split("\n"):
            document = json.loads(line)
            error = self._wrong(name, document)
            lines.append({"success": error is None} | ({} if error is None else {"error": error, "document": line}))
            if error is None:
                self.documents[document["id"]] = document
        return PlainTextResponse("\n".join(json.dumps(line) for line in lines))

    def _wrong(self, name: str, document: dict[str, Any]) -> str | None:
        if not isinstance(document.get("id"), str):
            return "Document's `id` field should be a string."
        for field, one in self.fields[name].items():
            if document.get(field) is None:
                if not one.get("optional"):
                    return f"Field `{field}` has been declared in the schema, but is not found in the document."
            elif not TYPES[one["type"]](document[field]):
                return f"Field `{field}` must be {one['type']}."
        return None

    def _delete(self, request: Request, body: bytes) -> Response:
        condition = request.query_params["filter_by"]
        if len(condition) > MAX_QUERY:
            return JSONResponse({"message": "Query string exceeds max allowed length of 4000."}, 400)
        matches = parsed(condition)
        gone = [key for key, document in self.documents.items() if matches(document)]
        for key in gone:
            del self.documents[key]
        return JSONResponse({"num_deleted": len(gone)})


async def half(body: bytes) -> AsyncIterator[bytes]:
    """The first half of a body; then the connection is closed."""
    yield body[: len(body) // 2]
    raise ConnectionResetError("cut")


def parsed(condition: str) -> Callable[[dict[str, Any]], bool]:
    """A condition of `filter_by` as a function of a document."""
    tokens: list[Any] = []
    place = 0
    while place < len(condition):
        found = TOKEN.match(condition, place)
        assert found, f"not understood: {condition[place:]}"
        place = found.end()
        sign, field, values, number_field, number = found.groups()
        if sign:
            tokens.append(sign)
        elif field:
            tokens.append(equals(field, set(re.findall("`([^`]*)`", values))))
        else:
            tokens.append(lambda one, field=number_field, bound=int(number): one[field] < bound)
    result = either(tokens)
    assert not tokens
    return result


def equals(field: str, values: set[str]) -> Callable[[dict[str, Any]], bool]:
    return lambda one: not values.isdisjoint(one[field] if isinstance(one[field], list) else [one[field]])


def either(tokens: list[Any]) -> Callable[[dict[str, Any]], bool]:
    """Conditions joined by `||`, taken off the front of the tokens."""
    parts = [both(tokens)]
    while tokens and tokens[0] == "||":
        tokens.pop(0)
        parts.append(both(tokens))
    return lambda one: any(part(one) for part in parts)


def both(tokens: list[Any]) -> Callable[[dict[str, Any]], bool]:
    """Conditions joined by `&&`."""
    parts = [single(tokens)]
    while tokens and tokens[0] == "&&":
        tokens.pop(0)
        parts.append(single(tokens))
    return lambda one: all(part(one) for part in parts)


def single(tokens: list[Any]) -> Callable[[dict[str, Any]], bool]:
    token: Any = tokens.pop(0)
    if token != "(":
        return token  # type: ignore[no-any-return]
    inner = either(tokens)
    assert tokens.pop(0) == ")"
    return inner
