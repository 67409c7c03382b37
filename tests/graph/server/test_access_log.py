"""Access log: one line for each request, without secrets, and no request waits for the log's reader."""

import asyncio
import contextlib
import json
import logging
import os
import re
import select
import subprocess
import sys

import httpx
import pytest

from graph.app import create_app
from graph.observability.logs import Handler, JSONFormatter, RequestLog, TextFormatter
from graph.settings import Settings
from store.api_keys import add_key, new_key
from store.connect import open_store
from tests.graph.small_app import asking
from tests.serving import serving
from tests.waiting import eventually

WAIT_SECONDS = 60
json_line, text_line = JSONFormatter().format, TextFormatter().format
SECRET = "a-secret-that-is-in-the-variables"
QUERY = "query Greeting($name: String!) { hello(name: $name) }"


@pytest.fixture(scope="module")
def client():
    with asking(observers=[RequestLog(slow_seconds=30.0)]) as client:
        yield client


@pytest.fixture
def lines(caplog):
    """So many lines of the log, as the server writes them: a client may have its response before its line is there."""
    caplog.set_level("INFO", "clade")

    def lines(number=1):
        def found():
            written = [json.loads(json_line(one)) for one in caplog.records if one.name.startswith("clade")]
            # The event stream of an earlier test in this process may end only now.
            return [line for line in written if line.get("how") != "streamed"]

        eventually(lambda: len(found()) >= number)
        return found()

    return lines


def plain(line):
    """A line without what differs each time, after a look at that."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line.pop("time"))
    assert 0 <= line.pop("ms") < 30_000
    return line


def test_a_request_is_one_line_with_operation_and_reads(client, lines):
    client.post(
        "/graphql?token=1",
        json={"query": QUERY, "variables": {"name": SECRET}},
        headers={"x-request-id": "abc-1", "cookie": "token=secret"},
    )
    (line,) = lines()
    assert SECRET not in str(line)
    assert plain(line) == {
        "level": "info", "logger": "clade.request", "message": "request", "id": "abc-1", "method": "POST",
        "path": "/graphql", "status": 200, "client": "127.0.0.1", "operation": "Greeting", "kind": "query",
        "how": "executed", "requests": 2, "rounds": 1, "items": 7, "units": 1,
    }  # fmt: skip


def test_a_line_says_which_setting_a_preflight_lacks_since_no_page_can_read_the_response(client, lines):
    asked = {"origin": "http://localhost:5173", "access-control-request-method": "POST"}
    client.options("/graphql", headers=asked)
    (line,) = lines()
    assert (line["status"], line["codes"]) == (405, ["BAD_REQUEST"])
    assert line["reason"].endswith("start the server with CLADE_CORS_ORIGINS=http://localhost:5173.")


def test_a_line_names_the_caller_and_no_secret(tmp_path, lines):
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    key, text = new_key("shop", ["read:location"], None)

    async def give_out():
        async with open_store(url) as opened:
            await opened.create()
            await add_key(opened, key)

    asyncio.run(give_out())
    with asking(open_store(url), observers=[RequestLog(slow_seconds=5.0)]) as client:
        for sent in (text, f"{text[:-43]}{'A' * 43}", None):
            headers = {} if sent is None else {"authorization": f"Bearer {sent}"}
            client.post("/graphql", json={"query": "{ hello }"}, headers=headers)
    told = lines(3)
    assert [(line["status"], line.get("caller"), line.get("credential")) for line in told] == [
        (200, "shop", f"key:{key.id}"), (401, None, None), (200, None, None),
    ]  # fmt: skip
    assert text[-43:] not in str(told)


def test_a_line_of_a_mutation_has_its_reads_and_no_number_of_rounds(tmp_path, lines):
    url = f"sqlite:///{tmp_path / 'clade.db'}"

    async def made():
        async with open_store(url) as opened:
            await opened.create()

    asyncio.run(made())
    values = '{key: "a", name: "A", attributes: {category: {}}}'
    create = f"mutation {{ createCategoryNode(input: {values}) {{ node {{ path }} }} }}"
    with serving(create_app(Settings(store=url, writes="on"))) as url:
        answers = [
            httpx.post(f"{url}/graphql", json={"query": query}).json()
            for query in (create, '{ category(path: "a") { path } }')
        ]
    assert [[*one["data"].values()] for one in answers] == [[{"node": {"path": "a"}}], [{"path": "a"}]]
    mutation, query = [line for line in lines(2) if line["message"] == "request"]
    assert (mutation["kind"], mutation["requests"] > 0) == ("mutation", True)
    assert ("rounds" in mutation, query["rounds"]) == (False, 1)


def test_a_failure_without_a_fault_of_the_client_is_a_warning(client, lines):
    told = [
        ("{ refused }", "info", 200, "BAD_PATH"),
        ("{ unwritable }", "warning", 500, "INTERNAL_SERVER_ERROR"),
        (None, "info", 400, "BAD_REQUEST"),
    ]
    for query, *_ in told:
        client.post("/graphql", json={"query": query})
    found = [line for line in lines(4) if line["message"] == "request"]  # the second has a line of its own
    assert [(line["level"], line["status"], *line["codes"]) for line in found] == [(*one,) for _, *one in told]


def test_a_slow_request_is_a_warning_and_probes_are_not_logged(client, lines):
    for path in ("/nothing", "/healthz", "/readyz", "/"):
        client.get(path)
    assert [(line["path"], line["status"]) for line in lines(2)] == [("/nothing", 404), ("/", 200)]
    with asking(observers=[RequestLog(slow_seconds=0.0)]) as slow:
        slow.post("/graphql", json={"query": "{ hello }"})
    assert lines(3)[-1]["level"] == "warning"


def test_long_documents_and_names_are_shortened_and_documents_logged_at_debug_only(client, lines, caplog):
    name, long = "N" * 30_000, "{ hello } #" + "x" * 3_000
    client.post("/graphql", json={"query": f"query {name} {{ hello }}"})
    client.get(f"/{'p' * 30_000}")
    client.post("/graphql", json={"query": "{ hello }"}, headers={"x-forwarded-for": "f" * 30_000})
    caplog.set_level("DEBUG", "clade")
    client.post("/graphql", json={"query": long})
    named, elsewhere, forwarded, with_query = lines(4)
    assert named["operation"] == f"{name[:200]}…"
    assert {len(json.dumps(line)) < 1_000 for line in (named, elsewhere, forwarded)} == {True}
    assert "document" not in named
    assert with_query["document"] == long[:2_000]
    assert max(len(json_line(record("m" * 30_000))), len(text_line(record("m" * 30_000)))) < 3_000


def test_a_valid_request_id_of_the_client_is_used(client):
    for sent, kept in (("id-1:a/b=", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ('a"b', False)):
        answer = client.post("/graphql", json={"query": "{ hello }"}, headers={"x-request-id": sent})
        assert re.fullmatch(re.escape(sent) if kept else r"[0-9a-f]{32}", answer.headers["x-request-id"]), sent


def record(message, **more):
    return logging.makeLogRecord({"name": "clade", "levelname": "WARNING", "levelno": 30, "msg": message, **more})


def test_a_line_has_no_line_breaks_and_an_internal_error_the_end_of_its_traceback():
    evil = "first\nsecond\x1b[31m \udcff"
    assert "\n" not in json_line(record(evil))
    assert json.loads(json_line(record(evil)))["message"].startswith("first\nsecond")
    assert text_line(record(evil)).isprintable()
    for message, told in (("what \x1b[31m", None), ("what \x1b[31m" + "\u2028" * 30_000, "\u2028" * 20_000)):
        try:
            raise ValueError(message)
        except ValueError:
            logged = record("An unexpected error.", exc_info=sys.exc_info())
        exception = json.loads(json_line(logged))["exception"]
        assert exception == told if told else exception.endswith("ValueError: what \x1b[31m")
        first, *_, last = text_line(logged).split("\n")
        assert first[9:] == "warning An unexpected error."
        assert told or last == r"ValueError: what \x1b[31m"


@pytest.mark.parametrize(("size", "kept"), [(1, 9_803), (2_000_000, 0)])
def test_a_blocked_reader_delays_nothing_and_what_waits_is_bounded_in_bytes(size, kept):
    reading, writing = os.pipe()
    left = fill(writing) + kept * (size + 1)
    sink = Handler(writing, logging.Formatter(), max_bytes=1_000_000)
    for _ in range(2 * kept + 10):
        sink.handle(record("x" * size))
    while left:
        left -= len(os.read(reading, left))
    sink.flush()  # what was read counts until the writer knows that it is written
    sink.handle(record("last"))
    sink.flush()
    assert os.read(reading, 100) == b"last\n"


def test_a_warning_is_written_at_once_with_the_lines_before_it(monkeypatch):
    monkeypatch.setattr("graph.observability.logs.WRITE_AFTER_SECONDS", 10 * WAIT_SECONDS)
    reading, writing = os.pipe()
    sink = Handler(writing, logging.Formatter())
    sink.handle(record("one"))
    sink.handle(logging.makeLogRecord({"msg": "two", "levelno": logging.WARNING}))
    text = b""
    while text != b"one\ntwo\n" and select.select([reading], [], [], WAIT_SECONDS)[0]:
        text += os.read(reading, 100)
    assert text == b"one\ntwo\n"


LOG = """
import logging.config
from graph.observability import logs
logging.config.dictConfig(logs.config("info", "json"))
for number in range({}):
    logging.getLogger("clade").info("%d " + "x" * 1_000, number)
"""


def test_a_process_writes_its_lines_before_it_ends_but_does_not_wait_for_a_blocked_reader():
    ended = subprocess.run([sys.executable, "-c", LOG.format(3)], stderr=subprocess.PIPE, timeout=WAIT_SECONDS)
    assert [json.loads(line)["message"][:2] for line in ended.stderr.splitlines()] == ["0 ", "1 ", "2 "]
    with subprocess.Popen([sys.executable, "-c", LOG.format(1_000)], stderr=subprocess.PIPE) as blocked:
        assert blocked.wait(WAIT_SECONDS) == 0


def fill(pipe):
    """Write as much as a pipe holds, so that its writer waits; the number of bytes."""
    filled = 0
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(pipe, b"x" * 4_096)
    os.set_blocking(pipe, True)
    return filled


def test_a_closed_log_ends_nothing():
    reading, writing = os.pipe()
    sink = Handler(writing, logging.Formatter())
    os.close(reading)
    for _ in range(2):
        sink.handle(record("lost"))
        sink.flush()
    assert sink.queue.empty()
