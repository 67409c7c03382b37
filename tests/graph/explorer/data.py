"""Stores and servers for tests of the explorer in a browser, whose event loop is that of the tests' thread."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt

from graph.hierarchies.node import Node
from store.connect import open_store
from tests.systems.asking import plant

SECRET = "a secret of the tests with 32 bytes or more"


def planted(file: Path, hierarchy: type[Node], rows: Sequence[tuple[Any, ...]]) -> str:
    """The URL of a new store with these nodes: path, level, and perhaps name and attributes."""
    url = f"sqlite:///{file}"

    async def fill() -> None:
        async with open_store(url) as store:
            await store.create()
            await plant(store, hierarchy, rows)

    with ThreadPoolExecutor() as threads:
        threads.submit(asyncio.run, fill()).result()
    return url


def token(*grants: str) -> str:
    """A token that a server with SECRET accepts."""
    return jwt.encode({"sub": "somebody", "exp": int(time.time()) + 600, "grants": grants}, SECRET, "HS256")
