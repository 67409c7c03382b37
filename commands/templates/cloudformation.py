"""CloudFormation template of a table: the table, its alarms and its policies, from the parameters of CreateTable."""

import json
from typing import Any

from commands.templates.alarms import BREACHING_PERIODS, NAMESPACE, PERIOD_SECONDS, PERIODS, Alarm, Metric, alarms
from store.dynamodb.iam_policy import Use, policy_document
from store.dynamodb.table import RECOVERY, TTL, table_definition
from store.engine.protocol import TableOptions
from store.model.keys import Index, index_name

Json = dict[str, Any]

_TABLE = "Table"
_HAS_TOPIC = "HasAlarmTopic"


def cloudformation(table: str, options: TableOptions) -> str:
    """The template as JSON, which CloudFormation takes like YAML; unset options are those of a new table in AWS."""
    resources: Json = {_TABLE: _table(table, options)}
    resources |= {alarm.name: _alarm(alarm) for alarm in alarms()}
    resources |= {_policy_name(use): _policy(use) for use in Use}
    outputs = {"TableName": {"Ref": _TABLE}, "TableArn": _arn()} | {
        f"{_policy_name(use)}Arn": {"Ref": _policy_name(use)} for use in Use
    }
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Table {table} of Clade, with its alarms and policies",
        "Parameters": {
            "AlarmTopic": {
                "Type": "String",
                "Default": "",
                "Description": "ARN of the SNS topic that gets the alarms; none by default",
            }
        },
        "Conditions": {_HAS_TOPIC: {"Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmTopic"}, ""]}]}},
        "Resources": resources,
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    return json.dumps(template, indent=2)


def _table(table: str, options: TableOptions) -> Json:
    """The table, which stays when it is taken out of the stack. Its properties have the names of CreateTable."""
    properties = table_definition(table, options)
    properties["DeletionProtectionEnabled"] = options.protection is not False
    properties["TimeToLiveSpecification"] = TTL
    if options.recovery is not False:
        properties["PointInTimeRecoverySpecification"] = RECOVERY
    if encryption := properties.get("SSESpecification"):
        properties["SSESpecification"] = {"SSEEnabled": encryption.pop("Enabled"), **encryption}
    return {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": properties,
    }


def _alarm(alarm: Alarm) -> Json:
    metrics: list[Json] = [{"Id": "total", "Expression": "SUM(METRICS())", "Label": alarm.name, "ReturnData": True}]
    metrics += [_metric(number, metric) for number, metric in enumerate(alarm.metrics, start=1)]
    properties = {
        "AlarmDescription": alarm.description,
        "Metrics": metrics,
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 0,
        "EvaluationPeriods": PERIODS,
        "DatapointsToAlarm": BREACHING_PERIODS,
        "TreatMissingData": "notBreaching",
        "AlarmActions": {"Fn::If": [_HAS_TOPIC, [{"Ref": "AlarmTopic"}], {"Ref": "AWS::NoValue"}]},
    }
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}


def _metric(number: int, metric: Metric) -> Json:
    dimensions = {"TableName": {"Ref": _TABLE}, "GlobalSecondaryIndexName": metric.index, "Operation": metric.operation}
    return {
        "Id": f"m{number}",
        "ReturnData": False,
        "MetricStat": {
            "Metric": {
                "Namespace": NAMESPACE,
                "MetricName": metric.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items() if value],
            },
            "Period": PERIOD_SECONDS,
            "Stat": "Sum",
        },
    }


def _policy(use: Use) -> Json:
    indexes = [{"Fn::Sub": f"${{{_TABLE}.Arn}}/index/{index_name(one)}"} for one in Index if one is not Index.TABLE]
    return {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Description": f"Table of Clade: {use.value}",
            "PolicyDocument": policy_document(use, _arn(), indexes),
        },
    }


def _policy_name(use: Use) -> str:
    return f"{use.value.title()}Policy"


def _arn() -> Json:
    return {"Fn::GetAtt": [_TABLE, "Arn"]}
