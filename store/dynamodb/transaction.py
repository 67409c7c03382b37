"""Transactions: TransactWriteItems of a commit, sent until its outcome is known or the retries end; and the check that
an engine has them.
"""

import asyncio
import uuid
from collections.abc import Sequence

from store.concurrency import RetryPolicy
from store.dynamodb import codec
from store.dynamodb.client import IN_PROGRESS, THROTTLED, UNKNOWN_OPERATION, Attempts, DynamoDBClient, Refused
from store.errors import BadValue, Conflict, Rule, Unavailable, WrongTable
from store.model.keys import Key
from store.model.records import Change, Check, Delete, Put, canonical_item, checked_item_size

MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
RETRIES = RetryPolicy(0.05, 1.0, attempts=8)  # of throttled and unprocessed calls; the client retries those that fail

_REJECTED = "DynamoDB rejects a value of this change: it is too large, or of a kind that cannot be stored."
_CONFLICT = "TransactionConflict"
_NOTHING = Key("!", "nothing")  # where no item is ever stored
_THROTTLED = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})
_RETRIED = _THROTTLED | {_CONFLICT, IN_PROGRESS}


def overloaded(table: str) -> Unavailable:
    """The error after the last retry of a throttled call."""
    return Unavailable(f'The table "{table}" is overloaded; try again.')


async def transact(client: DynamoDBClient, changes: Sequence[Change], attempts: Attempts) -> None:
    """Make all changes in one transaction; `attempts` records each attempt.

    Raises BadValue where an item cannot be stored, Conflict where a condition is not fulfilled or others write to the
    same items all the time, Unavailable where DynamoDB does not carry it out.
    """
    items = transaction_items(client, changes)
    token = uuid.uuid4().hex  # makes attempts idempotent
    outcome: Conflict | Unavailable = overloaded(client.table)
    for delay in RETRIES.delays():
        await asyncio.sleep(delay)
        try:
            await client.call("TransactWriteItems", attempts=attempts, TransactItems=items, ClientRequestToken=token)
            return
        except Refused as error:
            if failed := tuple(i for i, reason in enumerate(error.reasons) if reason == "ConditionalCheckFailed"):
                raise Conflict.over(failed) from error
            if error.name in UNKNOWN_OPERATION:
                raise _lacking(client.table, error.name) from error
            if "ValidationError" in error.reasons:
                raise BadValue(_REJECTED, Rule.TOO_LARGE) from error
            codes = {error.name, *error.reasons}
            client.calls.throttled += bool(codes & _THROTTLED)
            if not codes & _RETRIED:
                raise
            if _CONFLICT in codes:
                outcome = Conflict.over()
            else:
                outcome = error if error.name == IN_PROGRESS else overloaded(client.table)
    raise outcome


async def check_transactions(client: DynamoDBClient) -> None:
    """Raise WrongTable where the engine has no transactions.

    The transaction is a deletion where there is no item, on the condition that there is one: it is always cancelled,
    and takes no permission that a writer does not need. Where it is throttled or not permitted, nothing is known; any
    other error is raised.
    """
    items = transaction_items(client, [Delete(_NOTHING, {"pk": _NOTHING.pk})])
    try:
        await client.call("TransactWriteItems", TransactItems=items)
    except Refused as error:
        if error.name in UNKNOWN_OPERATION | {"ValidationException"}:
            raise _lacking(client.table, error.name) from error
        if error.name not in THROTTLED | {"TransactionCanceledException", "AccessDeniedException"}:
            raise
    else:
        raise _lacking(client.table, "their conditions are ignored")


def _lacking(table: str, reason: str) -> WrongTable:
    return WrongTable(
        f'The table "{table}" has no transactions ({reason}), and Clade writes nothing without: use a table of one '
        "region, or an engine that has them; see docs/dynamodb.md."
    )


def transaction_items(client: DynamoDBClient, changes: Sequence[Change]) -> list[codec.Json]:
    """The TransactItems of changes; raises BadValue where they are too large."""
    now, size, items = int(client.now()), 0, []
    for change in changes:
        where = {"TableName": client.table, **codec.condition(change.when, now)}
        match change:
            case Put(item):
                canonical = canonical_item(item)
                size += checked_item_size(canonical)
                items.append({"Put": {**where, "Item": codec.encode(canonical)}})
            case Delete(key):
                items.append({"Delete": {**where, "Key": codec.encode_key(key)}})
            case Check(key):
                items.append({"ConditionCheck": {**where, "Key": codec.encode_key(key)}})
    if size > MAX_TRANSACTION_BYTES:
        text = f"One commit may have at most {MAX_TRANSACTION_BYTES} bytes (4 MB), not {size}; split it."
        raise BadValue(text, Rule.TOO_LARGE)
    return items
