"""Users of the golden hierarchies: requests by HTTP to the application, and the command line, in this process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from typer.testing import CliRunner

from commands.main import app_of
from graph.app import create_app
from graph.settings import Settings
from tests.golden.promises import CLASSES


class Client:
    """Asks as clients do, with the API keys that have these names."""

    def __init__(self, http: httpx.AsyncClient, keys: Mapping[str, str]) -> None:
        self._http, self._keys = http, keys

    async def ask(self, query: str, variables: Mapping[str, Any] | None = None, key: str | None = None) -> Any:
        """The response. Of its errors there are path and code, since their wording is not promised."""
        headers = {} if key is None else {"authorization": f"Bearer {self._keys[key]}"}
        body = {"query": query, "variables": variables or {}}
        reply = (await self._http.post("/graphql", json=body, headers=headers)).json()
        if "errors" in reply:
            reply["errors"] = [
                {"path": error.get("path"), "code": error["extensions"]["code"]} for error in reply["errors"]
            ]
            reply["errors"].sort(key=str)
        return reply


@asynccontextmanager
async def asking(url: str, keys: Mapping[str, str], **settings: Any) -> AsyncIterator[Client]:
    """A client of the application with these settings, which runs until the block ends."""
    app = create_app(Settings(store=url, hierarchies=CLASSES, **settings))
    async with (
        app.lifespan(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://golden", timeout=60) as http,
    ):
        yield Client(http, keys)


def command(url: str, *words: str, classes: str = CLASSES, **settings: Any) -> str:
    """The output of a command for the store at a URL, which succeeds."""
    environment = {f"CLADE_{name.upper()}": str(value) for name, value in settings.items()}
    found = CliRunner().invoke(app_of(), [*words, "--store", url], env={"CLADE_HIERARCHIES": classes, **environment})
    assert found.exit_code == 0, (words, found.output, found.exception)
    return found.stdout
