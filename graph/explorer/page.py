"""Explorer page: the routes of `/` and of its files, under a policy that allows only scripts and styles of this server.

The page itself is a client of the API like any other; nothing here reads data.
"""

import posixpath
import re
from functools import cached_property
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graph.asset_files import EACH_TIME, AssetFiles, tagged

FILES = AssetFiles(Path(__file__).parent / "assets")

# Trusted Types: a browser that knows them refuses to make HTML or scripts of text, wherever the text comes from.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_PRELOAD = '    <link rel="modulepreload" href="explorer/static/{}">\n'
_SCRIPT = re.compile(r'<script type="module"[^>]* src="explorer/static/([^"]+)">')
_IMPORT = re.compile(r'^import [^;"]*"(\.[^"]+)";$', re.MULTILINE)


def first_modules(page: str) -> list[str]:
    """The modules of a page and what they import before they run, without what `import()` loads later.

    The order is that in which a browser finds them.
    """
    found = _SCRIPT.findall(page)
    for module in found:
        for path in _IMPORT.findall(FILES.content(module).decode()):
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(module), path))
            if imported not in found:
                found.append(imported)
    return found


class Explorer:
    """The page; with `graphiql` its queries have links to GraphiQL."""

    def __init__(self, *, graphiql: bool) -> None:
        self._graphiql = graphiql

    def routes(self) -> list[Route]:
        """The page at `/`, and its files."""
        return [Route("/", self.page), Route("/explorer/static/{digest}/{name:path}", FILES.serve)]

    async def page(self, request: Request) -> Response:
        """The page: it names the other files with their digest, so that a browser asks for it each time."""
        headers = {"content-security-policy": POLICY, "cache-control": EACH_TIME}
        return tagged(request, Response(self.html, media_type="text/html", headers=headers))

    @cached_property
    def html(self) -> str:
        """The text of the page; it names the modules that it begins with, so that they load at the same time."""
        text = FILES.content("index.html").decode()
        modules = "".join(_PRELOAD.format(name) for name in first_modules(text))
        text = text.replace("    <!-- modules -->\n", modules)
        text = text.replace("/static/", f"/static/{FILES.digest}/")
        return text.replace('data-graphiql=""', f'data-graphiql="{"graphql" if self._graphiql else ""}"')
