"""Templates of `deploy/` as values: resources, and the environment of a container or function."""

import functools
from typing import Any

import yaml

from tests.readme import ROOT

DEPLOY = ROOT / "deploy"
LAMBDA, ECS = DEPLOY / "lambda" / "template.yaml", DEPLOY / "ecs.yaml"
KUBERNETES, TABLE = DEPLOY / "kubernetes.yaml", DEPLOY / "table.yaml"

Json = dict[str, Any]


def template(name: str) -> Json:
    """A CloudFormation template with its short functions in their long form."""
    found: Json = plain(_loaded(name))
    return found


@functools.cache
def _loaded(name: str) -> Any:
    from cfnlint.decode.cfn_yaml import loads  # its import takes a second, also where no test of the file runs

    return loads((DEPLOY / name).read_text())


def plain(value: Any) -> Any:
    """Dictionaries, lists and scalars of Python instead of the linter's, which carry line numbers."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case str():
            return str(value)
        case _:
            return value


def parameters(found: Json) -> dict[str, str]:
    """The defaults of a template's parameters."""
    return {name: str(one.get("Default", "")) for name, one in found["Parameters"].items()}


def resolved(value: Any, given: dict[str, str]) -> str:
    """A value with its references to parameters; other expressions are left as they are."""
    return given.get(value["Ref"], "") if isinstance(value, dict) and "Ref" in value else str(value)


def function_environment(name: str, **given: str) -> dict[str, str]:
    """The environment of a function of the Lambda template, with these parameters."""
    found = template("lambda/template.yaml")
    values = parameters(found) | given
    variables = found["Globals"]["Function"]["Environment"]["Variables"]
    variables |= found["Resources"][name]["Properties"]["Environment"]["Variables"]
    return {key: resolved(value, values) for key, value in variables.items()}


def task_environment(**given: str) -> dict[str, str]:
    """The environment of the container of the ECS template."""
    found = template("ecs.yaml")
    values = parameters(found) | given
    (container,) = found["Resources"]["Task"]["Properties"]["ContainerDefinitions"]
    return {one["Name"]: resolved(one["Value"], values) for one in container["Environment"]}


def manifests() -> dict[str, Json]:
    """The resources of the Kubernetes manifest by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(KUBERNETES.read_text())}


def pod() -> Json:
    found: Json = manifests()["Deployment"]["spec"]["template"]["spec"]
    return found


def pod_environment() -> dict[str, str]:
    """The environment of the container of the Kubernetes manifest."""
    (container,) = pod()["containers"]
    return {one["name"]: one["value"] for one in container["env"]}
