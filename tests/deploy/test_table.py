"""Table of `deploy/`: CloudFormation, Terraform and the Lambda's template have the table and policies of the code.

moto makes the stack of CloudFormation. Terraform's provider does not run here: its configuration is compared as parsed.
"""

import functools
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import hcl2
import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.dynamodb.table import RECOVERY, TTL, Use, policy, table_definition
from tests import engines
from tests.deploy.templates import DEPLOY, parameters, template
from tests.readme import ROOT

Json = dict[str, Any]
REGION, ACCOUNT = "eu-west-1", "123456789012"
OPTIONAL = {
    "TableName", "BillingMode", "DeletionProtectionEnabled", "PointInTimeRecoverySpecification", "SSESpecification",
}  # fmt: skip
PER_TABLE = {"TableId", "CreationDateTime", "LastUpdateToPayPerRequestDateTime", "ItemCount", "TableSizeBytes"}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app_of(), ["table", *arguments])
    if result.exception:
        raise result.exception
    return result.output


def terraform(block: str) -> Json:
    """The resources or locals of the configuration; expressions are texts."""
    return {key: value for one in configuration()[block] for key, value in unmarked(one).items()}


@functools.cache
def configuration() -> Json:
    found: Json = hcl2.loads((DEPLOY / "table.tf").read_text())
    return found


def unmarked(value: Any) -> Any:
    """The parser's values without its marks, and texts without their quotes."""
    match value:
        case dict():
            return {unmarked(key): unmarked(item) for key, item in value.items() if not key.startswith("__")}
        case list():
            return [unmarked(item) for item in value]
        case str() if value.startswith('"'):
            return json.loads(value)
        case _:
            return value


# -- table -------------------------------------------------------------------------------------------------------------


def terraform_table() -> Json:
    found = terraform("resource")["aws_dynamodb_table"]["clade"]
    assert "stream_enabled" not in found
    (ttl,) = found["ttl"]
    return {
        "AttributeDefinitions": [
            {"AttributeName": one["name"], "AttributeType": one["type"]} for one in found["attribute"]
        ],
        "KeySchema": keys(found),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": one["name"], "KeySchema": keys(one),
                "Projection": {"ProjectionType": one["projection_type"]},
            }
            for one in found["global_secondary_index"]
        ],
        "TimeToLiveSpecification": {"AttributeName": ttl["attribute_name"], "Enabled": ttl["enabled"]},
    }  # fmt: skip


def keys(block: Json) -> list[Json]:
    names = {"hash_key": "HASH", "range_key": "RANGE"}
    return [{"AttributeName": block[name], "KeyType": kind} for name, kind in names.items()]


def stack_properties(file: str) -> Json:
    resource = template(file)["Resources"]["Table"]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    properties: Json = resource["Properties"]
    return properties


def stack_table(file: str) -> Json:
    found = stack_properties(file)
    for one in (found, *found["GlobalSecondaryIndexes"]):
        one.pop("ProvisionedThroughput", None)
    return {name: value for name, value in found.items() if name not in OPTIONAL}


@pytest.mark.parametrize("file", ["table.tf", "table.yaml", "lambda/template.yaml"])
def test_a_file_has_the_keys_indexes_and_time_to_live_of_the_table(file: str) -> None:
    wanted = table_definition("clade") | {"TimeToLiveSpecification": TTL}
    found = terraform_table() if file.endswith(".tf") else stack_table(file)
    assert found == {name: value for name, value in wanted.items() if name not in OPTIONAL}


def test_tables_are_on_demand_protected_and_recoverable_by_default() -> None:
    fixed = stack_properties("lambda/template.yaml")
    assert fixed.items() >= {"BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": True}.items()
    assert fixed["PointInTimeRecoverySpecification"] == RECOVERY
    given = parameters(template("table.yaml"))
    assert (given["ReadUnits"], given["DeletionProtection"], given["PointInTimeRecovery"]) == ("0", "true", "true")
    recovery = stack_properties("table.yaml")["PointInTimeRecoverySpecification"]
    assert recovery == {"PointInTimeRecoveryEnabled": {"Ref": "PointInTimeRecovery"}}
    variables = terraform("variable")
    names = ("units", "deletion_protection", "point_in_time_recovery")
    assert [variables[name]["default"] for name in names] == [None, True, True]


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine that has CloudFormation as well, for clients and commands."""
    try:
        found = engines.moto()
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    with found:
        for name, value in {
            "AWS_ENDPOINT_URL": found.url, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": REGION,
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        yield


def described(name: str) -> Json:
    """The table as DynamoDB describes it, without what differs by table."""
    found = boto3.client("dynamodb").describe_table(TableName=name)["Table"]
    found = {key: value for key, value in found.items() if key not in PER_TABLE}
    for named in ("AttributeDefinitions", "GlobalSecondaryIndexes"):
        found[named].sort(key=str)
    text = json.dumps(found, default=str).replace(name, "NAME")
    return json.loads(re.sub(r'"(true|false|\d+)"', r"\1", text))  # moto stores parameters of a stack as texts


@pytest.mark.thorough
@pytest.mark.usefixtures("moto")
def test_a_stack_makes_the_table_that_create_makes_which_then_changes_nothing() -> None:
    client = boto3.client("cloudformation")
    units = {"ReadUnits": "50", "WriteUnits": "10", "IndexReadUnits": "20", "IndexWriteUnits": "5"}
    for given, options in (
        ({}, ["--protection"]),
        ({"DeletionProtection": "false", **units}, ["--units", "50:10", "--index-units", "20:5"]),
    ):
        name, other = (f"clade-{uuid.uuid4().hex[:8]}" for _ in range(2))
        chosen = [{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()]
        client.create_stack(
            StackName=name,
            TemplateBody=run("template", "--format", "cloudformation"),
            Parameters=[*chosen, {"ParameterKey": "TableName", "ParameterValue": name}],
            Capabilities=["CAPABILITY_IAM"],
        )
        run("create", "--recovery", "--store", f"dynamodb://{other}?region={REGION}", *options)
        before = described(name)
        assert before == described(other)
        url = f"dynamodb://{name}?region={REGION}"
        assert run("create", "--store", url) == f"{url}: the table exists.\n"
        assert described(name) == before


# -- policies and alarms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", Use)
def test_the_policies_of_all_files_are_those_of_clade_table_policy(use: Use) -> None:
    wanted = policy(use, "clade", region=REGION, account=ACCOUNT)
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/clade"
    for file in ("table.yaml", "lambda/template.yaml") if use is not Use.ADMIN else ("table.yaml",):
        found = template(file)["Resources"][f"{use.value.title()}Policy"]["Properties"]["PolicyDocument"]
        text = json.dumps(found).replace('{"Fn::GetAtt": ["Table", "Arn"]}', f'"{arn}"')
        assert json.loads(re.sub(r'\{"Fn::Sub": "\$\{Table\.Arn\}([^"]*)"\}', rf'"{arn}\1"', text)) == wanted
    assert terraform("locals")["policies"][use.value] == wanted["Statement"][0]["Action"]


def test_terraform_has_policies_on_the_table_and_its_indexes_and_units_and_a_key_of_variables() -> None:
    text = terraform("resource")["aws_iam_policy"]["clade"]["policy"]
    assert re.findall(r"Effect\W+(\w+)", text) == ["Allow", "Allow"]
    assert re.findall(r"Action\W+([\w.:]+)", text) == ["each.value", "dynamodb:Query"]
    assert re.findall(r'"(by_\w+)"', text) == [
        one["IndexName"] for one in table_definition("")["GlobalSecondaryIndexes"]
    ]
    assert text.count("aws_dynamodb_table.clade.arn") == 2
    found = terraform("resource")["aws_dynamodb_table"]["clade"]
    indexes = [(one, "local.index_units") for one in found["global_secondary_index"]]
    for block, units in ((found, "var.units"), *indexes):
        for name in ("read", "write"):
            assert block[f"{name}_capacity"] == f"${{try({units}.{name}, null)}}"
    assert "var.units" in found["billing_mode"]
    assert "var.kms_key_arn" in json.dumps(found["dynamic"])


def test_both_files_have_alarms_of_the_indexes_and_of_every_call_that_reads_or_writes_items() -> None:
    text = "".join(file.read_text() for file in (ROOT / "store" / "dynamodb").glob("*.py"))
    called = set(re.findall(r'\.call\(\s*"(\w+)"', text))
    calls = {one for one in called if not re.match("(Create|Describe|Update|List|Tag)", one)}
    indexes = [
        {},
        *({"GlobalSecondaryIndexName": one["IndexName"]} for one in table_definition("")["GlobalSecondaryIndexes"]),
    ]
    wanted = {
        "ReadThrottleEvents": indexes,
        "WriteThrottleEvents": indexes,
        "SystemErrors": [{"Operation": name} for name in sorted(calls)],
    }
    there: dict[str, list[Json]] = {}
    for one in template("table.yaml")["Resources"].values():
        if one["Type"] == "AWS::CloudWatch::Alarm":
            for metric in one["Properties"]["Metrics"][1:]:
                found = metric["MetricStat"]["Metric"]
                table, *dimensions = found["Dimensions"]
                assert table == {"Name": "TableName", "Value": {"Ref": "Table"}}
                there.setdefault(found["MetricName"], []).append({each["Name"]: each["Value"] for each in dimensions})
    assert there == wanted
    assert {one["metric"]: one["dimensions"] for one in terraform("locals")["alarms"].values()} == wanted


@pytest.mark.parametrize(("form", "file"), [("cloudformation", "table.yaml"), ("terraform", "table.tf")])
def test_clade_table_template_prints_the_file(form: str, file: str) -> None:
    assert run("template", "--format", form) == (DEPLOY / file).read_text()
