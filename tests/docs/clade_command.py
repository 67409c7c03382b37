"""A command `clade` for the pages: `clade serve` listens on a free port, and ends as soon as it is ready.

Imports only the standard library, since it starts often.
"""

import os
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path

CLADE = Path(sysconfig.get_path("scripts")) / "clade"
START_SECONDS = 60


def install(folder: Path) -> dict[str, str]:
    """Put the command into a new folder; returns the environment in which it is found."""
    folder.mkdir()
    command = folder / "clade"
    serve = f'"{sys.executable}" "{Path(__file__).resolve()}" "$@"'
    command.write_text(f'#!/bin/sh\nif [ "$1" = serve ]; then exec {serve}; fi\nexec "{CLADE}" "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def main(arguments: list[str]) -> int:
    """Run a server until it is ready; 0 if it became so."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([CLADE, *arguments, "--port", str(port)]) as process:
        ready = is_ready(process, f"http://127.0.0.1:{port}/readyz")
        process.send_signal(signal.SIGINT)
    return 0 if ready else 1


def is_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=START_SECONDS) as response:
                return bool(response.status == 200)
        except urllib.error.URLError:
            time.sleep(0.05)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
