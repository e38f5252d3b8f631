"""Consistency of values, files and README of chart gateway."""

import re
from typing import Any, get_args

import yaml

from charts.kit import only, over, parsed
from rayhelm.check.admission.evaluate import evaluate_policies, find_namespace
from rayhelm.check.admission.policy import read_policies
from rayhelm.deploy.charts.helm import charts_dir, render, template
from rayhelm.deploy.charts.shape import default_of
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.models import Model
from rayhelm.facts.tasks import Task, load_tasks
from rayhelm.facts.versions import versions

CHART = charts_dir() / "gateway"
README = (CHART / "README.md").read_text()
TEMPLATES = "\n".join(
    path.read_text() for path in sorted(CHART.rglob("templates/**/*")) if path.is_file() and path.parent.name != "lib"
)


def rendered(values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return parsed(render("gateway", "main-gateway", "models", values, **options))


def readme_values() -> dict[str, Any]:
    """The first block of YAML in the README."""
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", README, re.DOTALL)
    return dict(yaml.safe_load(values))


def test_chart_and_values_have_the_haproxy_version_of_versions_yaml() -> None:
    image = versions().images["haproxy"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == image.tag
    assert default_of(GatewayValues)["image"].items() >= image.model_dump(exclude={"vendors", "architectures"}).items()


def test_every_task_is_a_value_of_the_chart_and_has_paths() -> None:
    assert set(load_tasks()) == set(get_args(Task)) == set(get_args(Model.model_fields["task"].annotation))
    assert all(path.startswith("/") for task in load_tasks().values() for path in task.operations)


def test_templates_use_each_error_of_the_errors_file() -> None:
    errors = yaml.safe_load((CHART / "files/errors.yaml").read_text())
    known = {*errors["gateway"], *errors["remote"]}
    assert set(re.findall(r'answers "([a-z-]+)"', TEMPLATES)) <= known
    assert {each for each in known if f'"{each}"' not in TEMPLATES} == set()
    codes = [error["code"] for kind in errors.values() for error in kind.values()]
    assert len(codes) == len(set(codes))


def test_readme_documents_every_status_of_the_errors_file() -> None:
    errors = yaml.safe_load((CHART / "files/errors.yaml").read_text())
    statuses = {error["status"] for error in errors["gateway"].values()} | {*errors["haproxy"]} - {500, 501}
    (table,) = re.findall(r"\| status \| when \|\n(.*?)\n\n", README, re.DOTALL)
    documented = {int(number) for row in table.splitlines()[1:] for number in re.findall(r"\d{3}", row.split("|")[1])}
    assert documented == statuses - {500}


def test_readme_values_render() -> None:
    assert "qwen3-8b" in only(rendered(readme_values()), "ConfigMap")["data"]["routes.map"]
    (more,) = re.findall(r"## Versions\n\n```yaml\n(.*?)```", README, re.DOTALL)
    assert rendered(over(readme_values(), yaml.safe_load(more)))


def test_readme_values_pass_the_default_policies_of_platform() -> None:
    policies = list(read_policies(template("platform", "platform", "rayhelm-system", {})))
    assert policies
    objects = template("gateway", "gateway", "gateway", readme_values())
    template_of_pods = only(objects, "Deployment")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template_of_pods}
    for item in [*objects, pod]:
        assert not evaluate_policies(policies, item, find_namespace(item, {})), item["kind"]
