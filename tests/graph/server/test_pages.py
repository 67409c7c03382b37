"""Pages of the explorer and of GraphiQL, and their files, over HTTP: policy, caching, compression, and settings."""

import gzip
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from graph.server.pages import EXPLORER_FILES, GRAPHIQL_FILES, AssetFiles
from tests.graph.small_app import asking

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Page(NamedTuple):
    """A page, and the folder of its vendored files, whose sums are beside them."""

    files: AssetFiles
    address: str
    folder: str
    script: str
    scripts: int
    policy: str
    vendor: str
    vendored: set[str]
    hidden: list[str]

    def file(self, name: str, digest: str = "") -> str:
        """The address of a file, under the digest of this page or another one."""
        return f"/{self.folder}/{digest or self.files.digest}/{name}"


PAGES = {
    "explorer": Page(
        EXPLORER_FILES, "/", "explorer/static", "main.js", 2,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "vendor/", {"preact.js", "LICENSE-htm", "LICENSE-preact"},
        ["index.html", "vendor/LICENSE-htm", "..%2fpage.py", "%2e%2e/page.py"],
    ),
    "graphiql": Page(
        GRAPHIQL_FILES, "/graphql", "graphql/static", "boot.js", 4,
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self' data:; img-src 'self' data:; "
        "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "", {"graphiql.min.css", "graphiql.min.js", "react-dom.production.min.js", "react.production.min.js",
             "LICENSE-graphiql", "LICENSE-react"},
        ["index.html", "SHA256SUMS", "..%2fapp.py", "%2e%2e/app.py"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def client():
    with asking() as found:
        yield found


@pytest.fixture(params=PAGES)
def page(request):
    return PAGES[request.param]


def test_a_page_has_exactly_the_agreed_policy_and_nothing_inline(client, page):
    answer = client.get(page.address, headers=BROWSER)
    assert answer.headers["content-security-policy"] == page.policy
    assert "<style" not in answer.text
    assert "style=" not in answer.text
    assert answer.text.count("<script") == answer.text.count("></script>") == page.scripts


def test_the_vendored_files_are_those_of_the_recorded_sums(page):
    sums = [line.split() for line in page.files.content(f"{page.vendor}SHA256SUMS").decode().splitlines()]
    assert {name for _, name in sums} == page.vendored
    for digest, name in sums:
        assert hashlib.sha256(page.files.content(f"{page.vendor}{name}")).hexdigest() == digest, name


def test_no_module_of_the_explorer_makes_html_or_code_of_text():
    for name in EXPLORER_FILES.names:
        text = "" if name.startswith("vendor/") else EXPLORER_FILES.content(name).decode()
        for word in ("innerHTML", "dangerouslySetInnerHTML", "insertAdjacentHTML", "eval(", "new Function", "Storage"):
            assert word not in text, f"{name} has {word}"


def imports(name):
    """The modules that a module imports before it runs."""
    found = re.findall(r'from "\./([^"]+\.js)"', EXPLORER_FILES.content(name).decode())
    return {str(Path(name).parent / path) for path in found}


def test_the_explorer_names_the_modules_that_it_begins_with_and_none_that_comes_later(client):
    named = re.findall(r'rel="modulepreload" href="explorer/static/\w+/([^"]+)"', client.get("/").text)
    assert set(named) == {"session.js", "main.js"}.union(*map(imports, named))
    assert len(named) == len(set(named)) >= 10
    assert "world.js" not in named


def test_files_are_cached_for_good_under_the_digest_of_the_page_only(client, page):
    assert f'src="{page.file(page.script)[1:]}"' in client.get(page.address, headers=BROWSER).text
    for name in (name for name in page.files.names if name.endswith(".js")):
        answer = client.get(page.file(name))
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    of_an_old_page = client.get(page.file(page.script, "0123456789abcdef"))
    assert of_an_old_page.headers["cache-control"] == "no-cache"
    assert of_an_old_page.content == page.files.content(page.script)


def test_files_are_compressed_for_who_takes_that(client, page):
    largest = max(page.files.names, key=lambda name: len(page.files.content(name)))
    zipped = client.get(page.file(largest), headers={"accept-encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) == len(page.files.zipped(largest)) < 400_000
    assert gzip.decompress(page.files.zipped(largest)) == page.files.content(largest)
    for refused in ("identity", "gzip;q=0", "*;q=0", "br"):
        assert "content-encoding" not in client.get(page.file(largest), headers={"accept-encoding": refused}).headers


@pytest.mark.parametrize("address", ["/", PAGES["explorer"].file("explorer.css")])
def test_what_a_browser_has_is_not_sent_again(client, address):
    tag = client.get(address).headers["etag"]
    strong = tag.removeprefix("W/")
    for sent in (strong, f"W/{strong}", f'"other", {tag}', f'W/"other" ,W/{strong}', "*"):
        again = client.get(address, headers={"if-none-match": sent})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), sent
    for sent in ('"other"', 'W/"other", "another"', strong.strip('"'), '"a,*,b"', f"{tag}x"):
        assert client.get(address, headers={"if-none-match": sent}).status_code == 200, sent


def test_the_forms_of_a_file_have_tags_of_their_own(client):
    address = PAGES["explorer"].file("explorer.css")
    plain, zipped = [
        client.get(address, headers={"accept-encoding": coding}).headers["etag"] for coding in ("identity", "gzip")
    ]
    for coding, own, other in (("identity", plain, zipped), ("gzip", zipped, plain)):
        for tag, status in ((own, 304), (other, 200), (f"{other}, {own}", 304)):
            headers = {"accept-encoding": coding, "if-none-match": tag}
            answer = client.get(address, headers=headers)
            assert (answer.status_code, answer.headers["vary"]) == (status, "accept-encoding")


def test_no_other_file_is_served(client, page):
    for name in ["nothing.js", f"{page.script}%00", *page.hidden]:
        assert client.get(page.file(name, "x")).status_code == 404, name


# -- where there is an explorer ----------------------------------------------------------------------------------------


def test_the_explorer_links_to_graphiql_where_that_is_on_and_is_there_in_production_where_it_is_set(client):
    assert 'data-graphiql="graphql"' in client.get("/").text
    with asking(settings={"graphiql": False}) as without:
        assert 'data-graphiql=""' in without.get("/").text
    with asking(settings={"production": True, "explorer": True}) as on:
        assert "<html" in on.get("/").text


@pytest.mark.parametrize("settings", [{"explorer": False}, {"production": True}])
def test_without_the_explorer_the_root_leads_to_graphql(settings):
    with asking(settings=settings) as off:
        answer = off.get("/")
        assert (answer.status_code, answer.headers["location"]) == (307, "graphql")  # below any prefix of a proxy
        assert off.get(PAGES["explorer"].file("main.js")).status_code == 404
