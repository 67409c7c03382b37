"""Files of `deploy/`: valid for their linters, with settings that exist."""

import json
import os
import re
import subprocess
from http.server import BaseHTTPRequestHandler
from unittest import mock

import kubernetes_validate
import pytest

from commands.protocol import HTTPProtocol
from commands.server import uvicorn_config
from graph.settings import Settings
from store.dynamodb.table import ACTIONS, Use
from tests.deploy import templates
from tests.deploy.templates import ECS, KUBERNETES, function_environment, manifests, pod, task_environment, template
from tests.ports import closed_port
from tests.readme import ROOT
from tests.serving import handling

GIVEN = {"Store": "dynamodb://clade?region=eu-west-1", "Writes": "granted"}
ENVIRONMENTS = {
    "the function": lambda: function_environment("Server", **GIVEN) | {"CLADE_STORE": GIVEN["Store"]},
    "the repair": lambda: function_environment("Repair", **GIVEN) | {"CLADE_STORE": GIVEN["Store"]},
    "the task": lambda: task_environment(**GIVEN),
    "the pod": templates.pod_environment,
}


def settings(name: str) -> Settings:
    with mock.patch.dict(os.environ, ENVIRONMENTS[name]()):
        return Settings()


# -- linters -----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("file", [templates.LAMBDA, ECS, templates.TABLE], ids=lambda file: file.parent.name)
def test_a_template_has_no_finding_of_its_linter(file) -> None:
    from cfnlint.api import lint_all  # whose import takes a second, also where no test of the file runs

    found = lint_all(file.read_text())
    assert [str(one) for one in found if one.rule.id[0] in "EW"] == []  # errors and warnings


def test_manifests_match_the_schema_of_kubernetes() -> None:
    kinds = {"ServiceAccount", "ConfigMap", "Deployment", "Service", "PodDisruptionBudget"}
    assert manifests().keys() == kinds
    for manifest in manifests().values():
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


# -- policy of the repair ----------------------------------------------------------------------------------------------


def test_the_policy_of_the_repair_allows_items_of_the_table_and_nothing_else() -> None:
    resources = template("lambda/template.yaml")["Resources"]
    (found,) = resources["Repair"]["Properties"]["Policies"]
    table, indexes = found["Statement"]
    allowed = {action.removeprefix("dynamodb:") for action in table["Action"]}
    assert ACTIONS[Use.WRITING] < allowed < ACTIONS[Use.ADMIN]
    assert table["Resource"] == {"Fn::GetAtt": ["Table", "Arn"]}
    assert indexes == resources["ReadingPolicy"]["Properties"]["PolicyDocument"]["Statement"][1]


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_setting_exists_and_has_a_valid_value(name: str) -> None:
    ours = {key.removeprefix("CLADE_").lower() for key in ENVIRONMENTS[name]() if key.startswith("CLADE_")}
    assert ours <= Settings.model_fields.keys()
    assert settings(name).store == GIVEN["Store"]


def test_the_function_answers_before_lambda_gives_up() -> None:
    found = settings("the function")
    function = template("lambda/template.yaml")["Resources"]["Server"]["Properties"]
    assert found.request_seconds + 5 < function["Timeout"]
    assert 2 * found.max_response_bytes + 100_000 < 6 * 1024 * 1024, "Lambda's limit; a JSON string doubles quotes"


def test_the_repair_has_the_timing_of_the_server() -> None:
    assert settings("the repair").move_timing == settings("the function").move_timing


def test_platforms_wait_longer_than_a_server_takes_to_stop() -> None:
    (task,) = template("ecs.yaml")["Resources"]["Task"]["Properties"]["ContainerDefinitions"]
    waits = {"the task": task["StopTimeout"], "the pod": pod()["terminationGracePeriodSeconds"]}
    for name, seconds in waits.items():
        found = settings(name)
        assert found.drain_seconds + found.stop_seconds + 2 < seconds, name


def test_servers_drain_until_their_balancer_has_seen_it() -> None:
    targets = template("ecs.yaml")["Resources"]["Targets"]["Properties"]
    seen = targets["HealthCheckIntervalSeconds"] * targets["UnhealthyThresholdCount"]
    assert float(task_environment()["CLADE_DRAIN_SECONDS"]) > seen
    probe = pod()["containers"][0]["readinessProbe"]
    assert (
        float(templates.pod_environment()["CLADE_DRAIN_SECONDS"]) > probe["periodSeconds"] * probe["failureThreshold"]
    )


def test_servers_keep_idle_connections_longer_than_their_balancers() -> None:
    config = uvicorn_config(Settings(), "127.0.0.1", 8000, 1)
    assert (config.http, config.timeout_keep_alive) == (HTTPProtocol, 75)
    attributes = template("ecs.yaml")["Resources"]["LoadBalancer"]["Properties"]["LoadBalancerAttributes"]
    (balancer,) = [int(one["Value"]) for one in attributes if one["Key"] == "idle_timeout.timeout_seconds"]
    assert 5 < balancer < config.timeout_keep_alive
    for file in (ECS, KUBERNETES, ROOT / "docs/deploy.md", ROOT / "docs/operation.md", ROOT / "docs/security.md"):
        assert f"{config.timeout_keep_alive} s" in file.read_text(), file


# -- containers --------------------------------------------------------------------------------------------------------


def test_containers_have_no_rights_and_a_read_only_root() -> None:
    (task,) = template("ecs.yaml")["Resources"]["Task"]["Properties"]["ContainerDefinitions"]
    assert (task["User"], task["ReadonlyRootFilesystem"]) == ("10001", True)
    (container,) = pod()["containers"]
    rights = pod()["securityContext"]
    assert (rights["runAsNonRoot"], rights["runAsUser"]) == (True, 10001)
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert re.search(r"--uid 10001 clade\b", (ROOT / "Dockerfile").read_text())


def test_two_replicas_are_never_stopped_together() -> None:
    found = manifests()
    assert found["Deployment"]["spec"]["replicas"] == 2
    assert found["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] == 1
    assert found["Service"]["spec"]["selector"] == found["Deployment"]["spec"]["selector"]["matchLabels"]


class Unavailable(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()


def test_health_checks_run_without_python_and_fail_unless_the_server_answers_200(demo_server: str) -> None:
    def status(command: list[str], port: int | str) -> int:
        assert command[0] == "bash"
        words = [word.replace("/8000", f"/{port}") for word in command]
        return subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, capture_output=True, timeout=60).returncode

    (task,) = template("ecs.yaml")["Resources"]["Task"]["Properties"]["ContainerDefinitions"]
    (image,) = re.findall(r"^HEALTHCHECK .*CMD \\\n +(\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    with handling(Unavailable) as stopping:
        ports = [url.rpartition(":")[2] for url in (demo_server, stopping)]
        for command in (json.loads(image), task["HealthCheck"]["Command"][1:]):
            assert [status(command, port) == 0 for port in (*ports, closed_port())] == [True, False, False]
