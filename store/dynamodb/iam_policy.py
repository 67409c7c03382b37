"""IAM policies: the minimum permissions for each use of a table."""

from enum import StrEnum

from store.dynamodb.codec import Json
from store.model.keys import Index, index_name

POLICY_LANGUAGE = "2012-10-17"  # the version of IAM's policy language

_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}  # all other regions are in "aws"


class Use(StrEnum):
    """The uses of a table; each has the permissions of those before it too."""

    READING = "reading"  # a server that does not write, `clade tree`, `clade export`
    WRITING = "writing"  # a server that writes, `clade import`, `clade demo`
    ADMIN = "admin"  # `clade table`, `clade check`, `clade repair`, `clade copy`


_READS = ("BatchGetItem", "GetItem", "Query")
_WRITES = ("DeleteItem", "PutItem")
_ADMINISTERS = (
    "ConditionCheckItem", "CreateTable", "DescribeContinuousBackups", "DescribeTable", "DescribeTimeToLive",
    "ListTagsOfResource", "Scan", "TagResource", "UpdateContinuousBackups", "UpdateTimeToLive",
)  # fmt: skip

ACTIONS: dict[Use, frozenset[str]] = {
    Use.READING: frozenset(_READS),
    Use.WRITING: frozenset((*_READS, *_WRITES)),
    Use.ADMIN: frozenset((*_READS, *_WRITES, *_ADMINISTERS)),
}


def policy(use: Use, table: str, *, region: str | None = None, account: str | None = None) -> Json:
    """A policy document that allows one use of a table; None: any region, any account."""
    arn = f"arn:{_partition(region)}:dynamodb:{region or '*'}:{account or '*'}:table/{table}"
    indexes = [f"{arn}/index/{index_name(index)}" for index in Index if index is not Index.TABLE]
    return {
        "Version": POLICY_LANGUAGE,
        "Statement": [
            {"Sid": "Table", "Effect": "Allow", "Action": _named(ACTIONS[use]), "Resource": arn},
            {"Sid": "Indexes", "Effect": "Allow", "Action": _named({"Query"}), "Resource": indexes},
        ],
    }


def _named(actions: frozenset[str] | set[str]) -> list[str]:
    return [f"dynamodb:{action}" for action in sorted(actions)]


def _partition(region: str | None) -> str:
    return next((name for start, name in _PARTITIONS.items() if (region or "").startswith(start)), "aws")
