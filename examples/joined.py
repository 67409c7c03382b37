"""Application with users and rows of its own around Clade: drives at /drives/graphql, invoices at /invoices.

Start it with: uvicorn --factory examples.joined:make_app

The user of the session decides what Clade shows, and no header of a client does. Without a user there is no data.
"""

import secrets
import time

import httpx
import jwt
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from clade import Settings, create_app

# Your own sessions, users and tables take the place of these three.
SESSIONS: dict[str, str] = {}  # the user of each session, by the value of its cookie
GRANTS: dict[str, list[str]] = {}  # what each user may read and write, as ["write:drive/a91"]
INVOICES: dict[str, list[tuple[str, str]]] = {}  # the invoices of each user: a number, and the id of its file

SECRET = secrets.token_hex(32)  # signs tokens within this process, so nobody else has to know it
FILES = "query Files($ids: [ID!]!) { nodes(ids: $ids) { id ... on TreeNode { path name } } }"


def user_of(connection: HTTPConnection) -> str | None:
    return SESSIONS.get(connection.cookies.get("session", ""))


def credential(user: str, grants: list[str]) -> str:
    """The value of the header Authorization by which Clade knows a user and its grants, for a minute."""
    claims = {"sub": user, "exp": int(time.time()) + 60, "grants": grants}
    return f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"


class OwnUsers:
    """Middleware before Clade that replaces the header Authorization by a credential of the session's user."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [header for header in scope["headers"] if header[0] != b"authorization"]
            if user := user_of(HTTPConnection(scope)):
                headers.append((b"authorization", credential(user, GRANTS.get(user, [])).encode()))
            scope = {**scope, "headers": headers}
        await self.app(scope, receive, send)


def make_app(store: str = "sqlite:///drives.db") -> Starlette:
    """The application over a store, whose table `clade table create` has made."""
    drives = create_app(
        Settings(
            store=store,
            hierarchies="examples.drive",
            reads="granted",
            writes="granted",
            jwt_secret=SECRET,
            production=True,  # no explorer, GraphiQL or introspection, which need no user
        )
    )
    clade = httpx.AsyncClient(transport=httpx.ASGITransport(drives), base_url="http://clade")

    async def invoices(request: Request) -> Response:
        """The invoices of the user, with the present path of each file, or null: by one request to Clade."""
        if not (user := user_of(request)):
            return Response(status_code=401)
        rows = INVOICES.get(user, [])
        reply = await clade.post(
            "/graphql",
            json={"query": FILES, "variables": {"ids": [file for _, file in rows]}},
            headers={"authorization": credential(user, GRANTS.get(user, []))},
        )
        body = reply.raise_for_status().json()
        if "errors" in body:
            raise RuntimeError(body["errors"][0]["message"])
        files = body["data"]["nodes"]
        return JSONResponse([{"number": row[0], "file": file} for row, file in zip(rows, files, strict=True)])

    return Starlette(
        routes=[Route("/invoices", invoices), Mount("/drives", OwnUsers(drives))],
        lifespan=drives.lifespan,
    )
