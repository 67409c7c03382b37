"""Stand-in of AWS Lambda: the runtime API over HTTP, execution environments that freeze, and the adapter's protocol.

The runtime API is that which AWS documents for custom runtimes and extensions. The adapter in an environment is the
binary that CLADE_TEST_LAMBDA_ADAPTER names; else `Adapter` below, which follows the documentation of the Lambda Web
Adapter. No package registry has the binary.
"""

import base64
import json
import os
import queue
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import httpx

from tests.engines import free_port

START_SECONDS = 60.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 900.0  # the longest time of a function
RUNTIME, EXTENSION = "/2018-06-01/runtime", "/2020-01-01/extension"

Json = dict[str, Any]


class FunctionError(Exception):
    """A failed invocation, with what the runtime posted as its error."""


class RuntimeApi:
    """The API that Lambda offers inside an environment: the next event, and its result."""

    def __init__(self) -> None:
        self.waiting = Event()  # the runtime has asked for an event: the environment is initialised
        self.events: queue.Queue[tuple[str, Json]] = queue.Queue()
        self.results: queue.Queue[tuple[str, str, bytes]] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == f"{EXTENSION}/event/next":
                    Event().wait()  # until the environment ends
                assert self.path == f"{RUNTIME}/invocation/next"
                api.waiting.set()
                number, event = api.events.get()
                self._answer(200, event, {
                    "Lambda-Runtime-Aws-Request-Id": number,
                    "Lambda-Runtime-Deadline-Ms": str(int((time.time() + 30) * 1000)),
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:123456789012:function:clade",
                })  # fmt: skip

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == f"{EXTENSION}/register":
                    return self._answer(200, {}, {"Lambda-Extension-Identifier": str(uuid.uuid4())})
                kind, number, outcome = self.path.removeprefix(f"{RUNTIME}/").split("/")
                assert (kind, outcome in ("response", "error")) == ("invocation", True)
                api.waiting.clear()
                self._answer(202, {}, {})
                api.results.put((number, outcome, body))

            def _answer(self, status: int, body: Json, headers: dict[str, str]) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class Environment:
    """One execution environment of a function. Between two invocations all its processes are stopped."""

    def __init__(self, folder: Path, command: Sequence[str], variables: dict[str, str]) -> None:
        self.port = int(variables["AWS_LWA_PORT"])
        self.log = folder / f"{uuid.uuid4().hex}.log"
        self._command = command
        self._variables = variables
        self._api = RuntimeApi()
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """The init phase: until the runtime asks for its first event."""
        self._api.__enter__()
        variables = {"PATH": os.environ["PATH"], "AWS_LAMBDA_RUNTIME_API": self._api.address, **self._variables}
        binary = os.environ.get("CLADE_TEST_LAMBDA_ADAPTER")
        commands = [self._command, [binary]] if binary else [self._command]
        with self.log.open("wb") as log:
            self._processes = [
                subprocess.Popen(command, env=variables, cwd=self.log.parent, stdout=log, stderr=log)
                for command in commands
            ]
        if not binary:
            Thread(target=Adapter(self._api.address, self._variables).run, daemon=True).start()
        ready = self._api.waiting.wait(START_SECONDS)
        assert ready, f"The function is not initialised: {self.log.read_text()}"
        self._signal(signal.SIGSTOP)
        return self

    def __exit__(self, *_: object) -> None:
        self._signal(signal.SIGCONT)
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_SECONDS)
        self._api.__exit__()

    def invoke(self, event: Json, seconds: float = 60.0) -> Json:
        """The result of one invocation, for which the environment is thawed. Raises FunctionError."""
        number = str(uuid.uuid4())
        self._signal(signal.SIGCONT)
        self._api.events.put((number, event))
        answered, outcome, body = self._api.results.get(timeout=seconds)
        assert self._api.waiting.wait(START_SECONDS)  # the adapter asks for the next event, then it is frozen
        self._signal(signal.SIGSTOP)
        assert answered == number
        if outcome == "error":
            raise FunctionError(body.decode())
        result: Json = json.loads(body)
        return result

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(number)


class Adapter:
    """What the Lambda Web Adapter does in its buffered mode, with its variables for ports, paths and statuses."""

    def __init__(self, api: str, variables: dict[str, str]) -> None:
        self._api = f"http://{api}{RUNTIME}/invocation"
        self._application = f"http://127.0.0.1:{variables['AWS_LWA_PORT']}"
        self._check = variables.get("AWS_LWA_READINESS_CHECK_PATH", "/")
        self._events = variables.get("AWS_LWA_PASS_THROUGH_PATH", "/events")
        self._errors = variables.get("AWS_LWA_ERROR_STATUS_CODES", "")

    def run(self) -> None:
        """Wait until the application is ready, then forward each event to it, until the environment ends."""
        with httpx.Client(timeout=ANSWER_SECONDS) as client:
            while not self._is_ready(client):
                time.sleep(0.01)
            while True:
                try:
                    event = client.get(f"{self._api}/next")
                except httpx.TransportError:
                    return
                number = event.headers["Lambda-Runtime-Aws-Request-Id"]
                answer = self._forward(client, event.json())
                is_error = self._errors and answer.status_code in _statuses(self._errors)
                path, body = ("error", {"errorMessage": answer.text}) if is_error else ("response", _result(answer))
                client.post(f"{self._api}/{number}/{path}", json=body)

    def _is_ready(self, client: httpx.Client) -> bool:
        try:
            return 100 <= client.get(self._application + self._check).status_code < 500
        except httpx.TransportError:
            return False

    def _forward(self, client: httpx.Client, event: Json) -> httpx.Response:
        context = event.get("requestContext", {})
        if "http" not in context:
            return client.post(self._application + self._events, json=event)
        body = event.get("body", "").encode()
        headers = {**event["headers"], "x-amzn-request-context": json.dumps(context), "x-amzn-lambda-context": "{}"}
        return client.request(
            context["http"]["method"],
            f"{self._application}{event['rawPath']}?{event['rawQueryString']}".removesuffix("?"),
            headers=headers,
            content=base64.b64decode(body) if event.get("isBase64Encoded") else body,
        )


def _result(answer: httpx.Response) -> Json:
    """The result of a function with an HTTP response; JSON and texts are passed on as they are."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    is_text = "content-encoding" not in answer.headers and (kind.startswith("text/") or kind.endswith(("json", "+xml")))
    return {
        "statusCode": answer.status_code,
        "headers": dict(answer.headers),
        "body": answer.text if is_text else base64.b64encode(answer.content).decode(),
        "isBase64Encoded": not is_text,
    }


def _statuses(ranges: str) -> set[int]:
    """The statuses of `500-599,429`."""
    found = set[int]()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def function_variables() -> dict[str, str]:
    """The variables that the adapter reads, with a free port."""
    return {"AWS_LWA_PORT": str(free_port()), "AWS_LWA_READINESS_CHECK_PATH": "/healthz"}
