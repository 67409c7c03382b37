"""Cache of what earlier requests have read and decoded, as long as the store proves that nothing has changed since.

The proof is the store's version, a value that differs after any write by anyone; a store that cannot tell it without a
read (DynamoDB) keeps nothing here. A request that began at another version neither takes from here nor adds to it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

# What a record takes in memory with what was told of it: measured were 1,350 bytes after one query, 2,150 after three.
RECORD_BYTES = 2_000


class PageCache:
    """Answers by what was asked, those used last, up to so many bytes as `RECORD_BYTES` makes of their records."""

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes // RECORD_BYTES
        self._version: object = None
        self._answers: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._records = 0

    def renew(self, version: object) -> None:
        """Forget everything unless the store is still at this version."""
        if version != self._version:
            self._version = version
            self._answers.clear()
            self._records = 0

    def get(self, version: object, key: Hashable) -> Any:
        """The answer that was kept for this question at this version, or None."""
        if version != self._version:
            return None
        found = self._answers.get(key)
        if found is None:
            return None
        self._answers.move_to_end(key)
        return found[0]

    def put(self, version: object, key: Hashable, answer: Any, records: int) -> None:
        """Keep an answer of so many records, which was read at this version or later."""
        if version != self._version or records > self._most or key in self._answers:
            return
        self._answers[key] = answer, records + 1
        self._records += records + 1
        while self._records > self._most:
            _, (_, gone) = self._answers.popitem(last=False)
            self._records -= gone
