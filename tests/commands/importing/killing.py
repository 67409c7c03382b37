"""Imports that kill themselves at chosen calls, as by SIGKILL of the operating system."""

import os
import signal
import subprocess
import sys
from pathlib import Path

RUN_SECONDS = 300
INTERRUPTING = Path(__file__).parents[1] / "interrupting.py"


def killed(store_url: str, moment: str, *words: str | Path) -> None:
    """Run a command that ends by SIGKILL at a moment of tests/commands/interrupting.py."""
    ended = subprocess.run(
        [sys.executable, INTERRUPTING, f"{moment}!", *words],
        env={**os.environ, "CLADE_STORE": store_url}, capture_output=True, timeout=RUN_SECONDS,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended


def before_commit(store_url: str, number: int) -> str:
    """The moment before so many-th commit of a process."""
    store = "sqlite.store:SQLiteStore" if store_url.startswith("sqlite") else "dynamodb.store:DynamoDBStore"
    return f"store.{store}.commit*{number}"
