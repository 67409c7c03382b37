"""Terraform configuration of a table: the table, its alarms and its policies, from the parameters of CreateTable."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from commands.templates.alarms import BREACHING_PERIODS, NAMESPACE, PERIOD_SECONDS, PERIODS, Alarm, Metric, alarms
from store.dynamodb.iam_policy import Use, policy_document
from store.dynamodb.table import RECOVERY, TTL, table_definition
from store.engine.protocol import TableOptions
from store.errors import BadInput
from store.model.keys import Index, index_name

_INDENT = "  "


@dataclass(frozen=True)
class Expression:
    """An expression that is written as it is, such as `aws_dynamodb_table.clade.arn`."""

    text: str


@dataclass
class Block:
    """A block: its type with its labels, attributes in their order, and blocks inside."""

    header: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    blocks: list["Block"] = field(default_factory=list)

    def lines(self, indent: str = "") -> Iterator[str]:
        yield f"{indent}{self.header} {{"
        inner = indent + _INDENT
        width = max(map(len, self.attributes), default=0)
        for name, value in self.attributes.items():
            yield f"{inner}{name:<{width}} = {write(value, inner)}"
        for number, block in enumerate(self.blocks):
            if number or self.attributes:
                yield ""
            yield from block.lines(inner)
        yield f"{indent}}}"


def write(value: Any, indent: str = "") -> str:
    """A value: text, number, boolean, list, map or expression. Texts have no templates: `${` is escaped."""
    inner = indent + _INDENT
    match value:
        case Expression(text):
            return text
        case list() if value:
            items = "".join(f"{inner}{write(item, inner)},\n" for item in value)
            return f"[\n{items}{indent}]"
        case Mapping() if value:
            pairs = "".join(f"{inner}{_text(key)} = {write(item, inner)}\n" for key, item in value.items())
            return f"{{\n{pairs}{indent}}}"
        case str():
            return _text(value)
        case _:
            return json.dumps(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


Json = dict[str, Any]

_TABLE = "aws_dynamodb_table.clade"


def terraform(table: str, options: TableOptions) -> str:
    """The configuration in HCL; unset options are those of a new table in AWS. Raises BadInput for a key alias."""
    blocks = [
        Block("terraform", blocks=[_providers()]),
        Block('variable "alarm_topic"', {
            "type": Expression("string"), "default": None,
            "description": "ARN of the SNS topic that gets the alarms; none by default",
        }),
        _table(table, options),
        *(_alarm(table, alarm) for alarm in alarms()),
        *(_policy(table, use) for use in Use),
        Block('output "table_arn"', {"value": Expression(f"{_TABLE}.arn")}),
        *map(_policy_output, Use),
    ]  # fmt: skip
    return "\n\n".join("\n".join(block.lines()) for block in blocks)


def _policy_output(use: Use) -> Block:
    return Block(f'output "{use.value}_policy_arn"', {"value": Expression(f"aws_iam_policy.{use.value}.arn")})


def _providers() -> Block:
    return Block("required_providers", {"aws": {"source": "hashicorp/aws", "version": ">= 5.0, < 7.0"}})


def _table(table: str, options: TableOptions) -> Block:
    """The table, with the attributes of the provider's resource for each parameter of CreateTable."""
    definition = table_definition(table, options)
    attributes: Json = {
        "name": table,
        "billing_mode": definition["BillingMode"],
        **_keys(definition),
        **_throughput(definition),
        "deletion_protection_enabled": options.protection is not False,
    }
    if options.tags:
        attributes["tags"] = dict(options.tags)
    recovery = RECOVERY["PointInTimeRecoveryEnabled"] and options.recovery is not False
    blocks = [
        *(
            Block("attribute", {"name": one["AttributeName"], "type": one["AttributeType"]})
            for one in definition["AttributeDefinitions"]
        ),
        *map(_index, definition["GlobalSecondaryIndexes"]),
        Block("ttl", {"attribute_name": TTL["AttributeName"], "enabled": TTL["Enabled"]}),
        Block("point_in_time_recovery", {"enabled": recovery}),
    ]
    if encryption := definition.get("SSESpecification"):
        if not encryption["KMSMasterKeyId"].startswith("arn:"):
            raise BadInput(f"Terraform needs the ARN of the key, not {encryption['KMSMasterKeyId']}.")
        key = {"enabled": encryption["Enabled"], "kms_key_arn": encryption["KMSMasterKeyId"]}
        blocks.append(Block("server_side_encryption", key))
    return Block('resource "aws_dynamodb_table" "clade"', attributes, blocks)


def _index(definition: Json) -> Block:
    attributes = {
        "name": definition["IndexName"],
        **_keys(definition),
        "projection_type": definition["Projection"]["ProjectionType"],
        **_throughput(definition),
    }
    return Block("global_secondary_index", attributes)


def _keys(definition: Json) -> Json:
    names = {"HASH": "hash_key", "RANGE": "range_key"}
    return {names[one["KeyType"]]: one["AttributeName"] for one in definition["KeySchema"]}


def _throughput(definition: Json) -> Json:
    units = definition.get("ProvisionedThroughput")
    return {} if units is None else {
        "read_capacity": units["ReadCapacityUnits"], "write_capacity": units["WriteCapacityUnits"],
    }  # fmt: skip


def _alarm(table: str, alarm: Alarm) -> Block:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", alarm.name).lower()
    attributes = {
        "alarm_name": f"{table}-{name.replace('_', '-')}",
        "alarm_description": alarm.description,
        "comparison_operator": "GreaterThanThreshold",
        "threshold": 0,
        "evaluation_periods": PERIODS,
        "datapoints_to_alarm": BREACHING_PERIODS,
        "treat_missing_data": "notBreaching",
        "alarm_actions": Expression("var.alarm_topic == null ? [] : [var.alarm_topic]"),
    }
    total = {"id": "total", "expression": "SUM(METRICS())", "label": alarm.name, "return_data": True}
    queries = [Block("metric_query", total)]
    queries += [_metric(number, metric) for number, metric in enumerate(alarm.metrics, start=1)]
    return Block(f'resource "aws_cloudwatch_metric_alarm" "{name}"', attributes, queries)


def _metric(number: int, metric: Metric) -> Block:
    dimensions = {
        "TableName": Expression(f"{_TABLE}.name"), "GlobalSecondaryIndexName": metric.index,
        "Operation": metric.operation,
    }  # fmt: skip
    attributes = {
        "namespace": NAMESPACE,
        "metric_name": metric.name,
        "dimensions": {name: value for name, value in dimensions.items() if value},
        "period": PERIOD_SECONDS,
        "stat": "Sum",
    }
    return Block("metric_query", {"id": f"m{number}", "return_data": False}, [Block("metric", attributes)])


def _policy(table: str, use: Use) -> Block:
    indexes = [Expression(f'"${{{_TABLE}.arn}}/index/{index_name(one)}"') for one in Index if one is not Index.TABLE]
    document = policy_document(use, Expression(f"{_TABLE}.arn"), indexes)
    attributes = {
        "name": f"{table}-{use.value}",
        "description": f"Table of Clade: {use.value}",
        "policy": Expression(f"jsonencode({write(document, '  ')})"),
    }
    return Block(f'resource "aws_iam_policy" "{use.value}"', attributes)
