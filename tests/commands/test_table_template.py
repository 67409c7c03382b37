"""`clade table template`: both formats are made on an engine and compared with the table of `clade table create`.

moto makes the CloudFormation stack; its tables get neither time to live nor recovery, so both settings are applied as
the template has them. Terraform does not run here: python-hcl2 parses the configuration, and each attribute of the
resources is turned into the call that the provider makes for it.
"""

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
from commands.templates.alarms import OPERATIONS
from store.dynamodb.iam_policy import ACTIONS, Use, policy
from store.errors import BadInput
from tests import engines
from tests.cloudformation import Linter, linting
from tests.readme import ROOT

REGION, ACCOUNT = "eu-west-1", "123456789012"
TTL, RECOVERY = "TimeToLiveSpecification", "PointInTimeRecoverySpecification"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
PER_TABLE = {"TableId", "CreationDateTime", "LastUpdateToPayPerRequestDateTime"}
OPTIONS = [
    [],
    ["--no-recovery", "--no-protection"],
    ["--units", "50:10", "--index-units", "20:5", "--tag", "team=maps", "--tag", 'note=${a} "b" %{c}'],
]
CALLS = {"hash_key": "HASH", "range_key": "RANGE"}


@pytest.fixture(scope="module")
def findings() -> Iterator[Linter]:
    with linting() as findings:
        yield findings


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The URL of the engine that has CloudFormation and IAM as well."""
    try:
        found = engines.moto()
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    with found:
        yield found.url


@pytest.fixture(autouse=True)
def aws(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and commands go to the engine as if it were AWS."""
    for name, value in {
        "AWS_ENDPOINT_URL": moto, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": REGION,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


def table() -> str:
    return f"clade-{uuid.uuid4().hex[:8]}"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app_of(), ["table", *arguments])
    if result.exception:
        raise result.exception
    return result.output


def template(form: str, name: str, *options: str) -> str:
    return run("template", "--format", form, "--store", f"dynamodb://{name}?region={REGION}", *options)


def described(name: str) -> dict[str, Any]:
    """The table as DynamoDB describes it, with its time to live, recovery and tags, without what differs by table."""
    client = boto3.client("dynamodb")
    found = client.describe_table(TableName=name)["Table"]
    backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    facts = {
        "table": {key: value for key, value in found.items() if key not in PER_TABLE},
        "ttl": client.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
        "recovery": backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"],
        "tags": sorted(client.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"], key=str),
    }
    facts["table"]["AttributeDefinitions"].sort(key=str)
    facts["table"]["GlobalSecondaryIndexes"].sort(key=str)
    # clade table create has written the layout version
    facts["table"]["ItemCount"] = facts["table"]["TableSizeBytes"] = 0
    return json.loads(json.dumps(facts, default=str).replace(name, "NAME"))


def created(*options: str) -> dict[str, Any]:
    name = table()
    run("create", "--store", f"dynamodb://{name}?region={REGION}", *options)
    return described(name)


def apply_settings(name: str, settings: dict[str, Any]) -> None:
    """Time to live and recovery, which are calls of their own."""
    client = boto3.client("dynamodb")
    client.update_time_to_live(TableName=name, TimeToLiveSpecification=settings[TTL])
    if RECOVERY in settings:
        client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=settings[RECOVERY])


# -- CloudFormation ----------------------------------------------------------------------------------------------------


def stack(text: str) -> dict[str, str]:
    """Make the stack; its outputs."""
    client, name = boto3.client("cloudformation"), f"stack-{uuid.uuid4().hex[:8]}"
    client.create_stack(StackName=name, TemplateBody=text, Capabilities=["CAPABILITY_IAM"])
    (found,) = client.describe_stacks(StackName=name)["Stacks"]
    assert found["StackStatus"] == "CREATE_COMPLETE"
    return {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_cloudformation_template_makes_the_table_that_create_makes(options: list[str]) -> None:
    name = table()
    text = template("cloudformation", name, *options)
    assert stack(text)["TableName"] == name
    resource = json.loads(text)["Resources"]["Table"]
    apply_settings(name, resource["Properties"])
    assert described(name) == created(*options)
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_cloudformation_policies_are_those_of_clade_table_policy() -> None:
    name = table()
    outputs, client = stack(template("cloudformation", name)), boto3.client("iam")
    for use in Use:
        arn = outputs[f"{use.value.title()}PolicyArn"]
        version = client.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        found = client.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        assert found == policy(use, name, region=REGION, account=ACCOUNT)


@pytest.mark.parametrize(
    "options",
    [*OPTIONS[:1], *(pytest.param(one, marks=pytest.mark.thorough) for one in [*OPTIONS[1:], ["--kms-key", KEY]])],
    ids=str,
)
def test_the_cloudformation_template_has_no_finding_of_its_linter(options: list[str], findings: Linter) -> None:
    assert findings(template("cloudformation", table(), *options)) == []


def test_the_linter_finds_a_mistake(findings: Linter) -> None:
    assert findings(template("cloudformation", table()).replace('"PAY_PER_REQUEST"', '"FREE"'))


def test_create_marks_a_table_of_the_template_and_changes_nothing_else() -> None:
    name = table()
    text = template("cloudformation", name, "--no-recovery", "--no-protection")
    stack(text)
    apply_settings(name, json.loads(text)["Resources"]["Table"]["Properties"])
    before, url = described(name), f"dynamodb://{name}?region={REGION}"
    assert run("create", "--store", url) == f"{url}: the table exists.\n"
    assert described(name) == before
    assert "layout" in run("describe", "--store", url)


# -- Terraform ---------------------------------------------------------------------------------------------------------


def parsed(text: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The resources of a configuration by type and name."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for resource in plain(hcl2.loads(text))["resource"]:
        for kind, named in resource.items():
            found.setdefault(kind, {}).update(named)
    return found


def plain(value: Any) -> Any:
    """The parser's values without its marks, and texts without their quotes and escapes."""
    match value:
        case dict():
            return {plain(key): plain(item) for key, item in value.items() if not key.startswith("__")}
        case list():
            return [plain(item) for item in value]
        case str() if value.startswith('"'):
            return json.loads(value).replace("$${", "${").replace("%%{", "%{")
        case _:
            return value


def keys(block: dict[str, Any]) -> list[dict[str, str]]:
    return [{"AttributeName": block[name], "KeyType": kind} for name, kind in CALLS.items()]


def throughput(block: dict[str, Any]) -> dict[str, Any]:
    if "read_capacity" not in block:
        return {}
    units = {"ReadCapacityUnits": block["read_capacity"], "WriteCapacityUnits": block["write_capacity"]}
    return {"ProvisionedThroughput": units}


def make(resource: dict[str, Any]) -> None:
    """What the provider does with a resource aws_dynamodb_table."""
    tags = {"Tags": [{"Key": key, "Value": value} for key, value in resource.get("tags", {}).items()]}
    boto3.client("dynamodb").create_table(
        TableName=resource["name"],
        BillingMode=resource["billing_mode"],
        DeletionProtectionEnabled=resource["deletion_protection_enabled"],
        AttributeDefinitions=[
            {"AttributeName": one["name"], "AttributeType": one["type"]} for one in resource["attribute"]
        ],
        KeySchema=keys(resource),
        GlobalSecondaryIndexes=[
            {
                "IndexName": one["name"], "KeySchema": keys(one),
                "Projection": {"ProjectionType": one["projection_type"]}, **throughput(one),
            }
            for one in resource["global_secondary_index"]
        ],
        **throughput(resource),
        **(tags if tags["Tags"] else {}),
    )  # fmt: skip
    (ttl,), (recovery,) = resource["ttl"], resource["point_in_time_recovery"]
    settings: dict[str, Any] = {TTL: {"AttributeName": ttl["attribute_name"], "Enabled": ttl["enabled"]}}
    if recovery["enabled"]:
        settings[RECOVERY] = {"PointInTimeRecoveryEnabled": True}
    apply_settings(resource["name"], settings)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_terraform_configuration_makes_the_table_that_create_makes(options: list[str]) -> None:
    name = table()
    make(parsed(template("terraform", name, *options))["aws_dynamodb_table"]["clade"])
    assert described(name) == created(*options)


def test_the_terraform_policies_are_those_of_clade_table_policy() -> None:
    name = table()
    text = template("terraform", name)
    assert parsed(text)["aws_iam_policy"].keys() == set(Use)
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"
    documents = re.findall(r'"aws_iam_policy" "(\w+)".*?jsonencode\((.*?)\)\n', text, re.DOTALL)
    for use, document in documents:
        resolved = document.replace("${aws_dynamodb_table.clade.arn}", arn)
        resolved = resolved.replace("aws_dynamodb_table.clade.arn", f'"{arn}"')
        value = plain(hcl2.loads(f"policy = {resolved}\n"))["policy"]
        assert value == policy(Use(use), name, region=REGION, account=ACCOUNT)


def test_terraform_needs_the_arn_of_a_key() -> None:
    text = template("terraform", table(), "--kms-key", KEY)
    (block,) = parsed(text)["aws_dynamodb_table"]["clade"]["server_side_encryption"]
    assert block == {"enabled": True, "kms_key_arn": KEY}
    with pytest.raises(BadInput, match="the ARN of the key, not alias/clade"):
        template("terraform", table(), "--kms-key", "alias/clade")


# -- both --------------------------------------------------------------------------------------------------------------


def test_both_formats_have_the_same_alarms() -> None:
    name = table()
    resources = json.loads(template("cloudformation", name))["Resources"]
    there = {
        one["Properties"]["AlarmDescription"]: [
            (stat["Metric"]["MetricName"], *sorted(str(place["Value"]) for place in stat["Metric"]["Dimensions"]))
            for stat in (metric["MetricStat"] for metric in one["Properties"]["Metrics"][1:])
        ]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Alarm"
    }
    alarms = parsed(template("terraform", name))["aws_cloudwatch_metric_alarm"]
    table_ref, reference = "${aws_dynamodb_table.clade.name}", str({"Ref": "Table"})
    here = {
        one["alarm_description"]: [
            (metric["metric_name"], *sorted(reference if v == table_ref else v for v in metric["dimensions"].values()))
            for query in one["metric_query"][1:]
            for metric in query["metric"]
        ]
        for one in alarms.values()
    }
    assert here == there
    assert len(here) == 3


def test_the_alarms_watch_every_call_that_reads_or_writes_items() -> None:
    text = "".join(file.read_text() for file in (ROOT / "store" / "dynamodb").glob("*.py"))
    called = set(re.findall(r'\.call\(\s*"(\w+)"', text))
    tables = {action for action in ACTIONS[Use.ADMIN] if re.match("(Create|Describe|Update|List|Tag)", action)}
    assert called - tables == set(OPERATIONS)


def test_a_template_is_of_a_table_in_dynamodb() -> None:
    with pytest.raises(BadInput, match="is not a DynamoDB table"):
        run("template", "--format", "terraform", "--store", "sqlite:///clade.db")
