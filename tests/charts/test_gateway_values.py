"""Values, files and documents of the chart gateway say the same, beside what is so of each chart."""

import re
from typing import Any, get_args

import yaml

from charts.kit import only, over, parsed
from rayhelm.catalog.tasks import Task, load_tasks
from rayhelm.charts.helm import charts_dir, render
from rayhelm.charts.shape import default_of
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.models import Model
from rayhelm.versions import versions

CHART = charts_dir() / "gateway"
TEMPLATES = "\n".join(
    path.read_text() for path in sorted(CHART.rglob("templates/**/*")) if path.is_file() and path.parent.name != "lib"
)


def rendered(values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return parsed(render("gateway", "main-gateway", "models", values, **options))


def test_the_chart_and_its_values_name_the_one_haproxy() -> None:
    image = versions().images["haproxy"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == image.tag
    assert default_of(GatewayValues)["image"].items() >= image.model_dump().items()


def test_every_task_is_a_value_of_the_chart_and_opens_paths_below_v1() -> None:
    assert set(load_tasks()) == set(get_args(Task)) == set(get_args(Model.model_fields["task"].annotation))
    assert all(path.startswith("/v1/") for task in load_tasks().values() for path in task.operations)


def test_every_error_has_its_rule_and_every_rule_its_error() -> None:
    errors = yaml.safe_load((CHART / "files/errors.yaml").read_text())
    used = set(re.findall(r'"gateway\.error" \(list [.$] "([a-z-]+)"', TEMPLATES))
    used |= set(re.findall(r'"([a-z-]+)"', re.findall(r"range (list .*model-duplicate.*) }}", TEMPLATES)[0]))
    assert used == set(errors["gateway"])
    codes = [error["code"] for kind in errors.values() for error in kind.values()]
    assert len(codes) == len(set(codes))


def test_the_readme_tells_every_status_that_an_error_has() -> None:
    errors = yaml.safe_load((CHART / "files/errors.yaml").read_text())
    statuses = {error["status"] for error in errors["gateway"].values()} | {*errors["haproxy"]} - {500, 501}
    (table,) = re.findall(r"\| status \| when \|\n(.*?)\n\n", (CHART / "README.md").read_text(), re.DOTALL)
    told = {int(number) for row in table.splitlines()[1:] for number in re.findall(r"\d{3}", row.split("|")[1])}
    assert told == statuses - {500}


def test_the_values_of_the_readme_render() -> None:
    readme = (CHART / "README.md").read_text()
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert "qwen3-8b" in only(rendered(yaml.safe_load(values)), "ConfigMap")["data"]["routes.map"]
    (more,) = re.findall(r"## Versions\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert rendered(over(yaml.safe_load(values), yaml.safe_load(more)))
