"""Golden data: tables that releases wrote, put into an engine as they were."""

import json
import os
from pathlib import Path
from typing import Any

import boto3

TABLE = "golden"
CHUNK = 25  # of BatchWriteItem


def dynamodb(endpoint: str) -> Any:
    """AWS's client of an engine, which knows nothing of Clade."""
    keys = [os.environ.get(name, "local") for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="eu-west-1",
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
    )


def load_table(endpoint: str, folder: Path, table: str) -> None:
    """Make the table of a release in an engine, with its definition and its items."""
    client = dynamodb(endpoint)
    client.create_table(**json.loads((folder / "table.json").read_text("utf-8")) | {"TableName": table})
    puts = [
        {"PutRequest": {"Item": json.loads(line)}} for line in (folder / "table.jsonl").read_text("utf-8").splitlines()
    ]
    for start in range(0, len(puts), CHUNK):
        answer = client.batch_write_item(RequestItems={table: puts[start : start + CHUNK]})
        assert not answer["UnprocessedItems"]
