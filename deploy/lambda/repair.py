"""`clade repair` on a schedule: a web application behind the Lambda Web Adapter, which posts each event to /events.

The status is 500 if the repair fails or leaves findings; with AWS_LWA_ERROR_STATUS_CODES the invocation then fails, and
the alarm of the template is raised.
"""

import json
import os
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer

TIMEOUT_SECONDS = 840  # a minute less than the longest time of a function
OUTPUT_CHARACTERS = 4_000


class RepairHandler(BaseHTTPRequestHandler):
    """Answers the readiness check, and runs a repair for each event."""

    def do_GET(self) -> None:
        self._answer(200, {"ready": True})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/events":
            return self._answer(404, {"error": "Events are sent to /events."})
        try:
            ended = subprocess.run(
                ["clade", "repair"],  # noqa: S607 - on the PATH of the image
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return self._answer(500, {"error": f"The repair took more than {TIMEOUT_SECONDS} s; run clade repair."})
        print(ended.stdout, end="", flush=True)
        answer = {"status": ended.returncode, "output": ended.stdout[-OUTPUT_CHARACTERS:]}
        self._answer(500 if ended.returncode else 200, answer)

    def _answer(self, status: int, body: dict[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log no requests: the adapter checks every 10 ms until the application is ready."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(os.environ["AWS_LWA_PORT"])), RepairHandler).serve_forever()
