"""Values, schema, documents and templates of the chart gateway say the same."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml

from charts.kit import HELMS, VALUES, example, only, over, parsed
from rayhelm.catalog.model import Task
from rayhelm.charts.docs import readme_table
from rayhelm.charts.generate import BEGIN
from rayhelm.charts.helm import charts_dir, render
from rayhelm.charts.rules import rules
from rayhelm.charts.shape import default_of, entry_models, keys
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.models import Model
from rayhelm.versions import versions

CHART = charts_dir() / "gateway"
EXAMPLES = sorted(f"gateway/{path.stem}" for path in (VALUES / "gateway").glob("*.yaml"))
TEMPLATES = "\n".join(
    path.read_text()
    for path in sorted(CHART.rglob("templates/**/*"))
    if path.is_file() and path.name not in ("_defaults.tpl", "_rules.tpl")
)
UNUSED = {"global"}
"""Helm hands it to every chart; this one has no use for it."""


def rendered(values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return parsed(render("gateway", "door", "models", values, **options))


def named(model: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every key as its path and its last part."""
    for key in keys(model):
        yield f"{path}{key.name}", key.name
        if below := key.section or key.entry:
            yield from named(below, f"{path}{key.name}.")


def test_values_yaml_holds_every_default() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text()) == default_of(GatewayValues)


def test_the_chart_and_its_values_name_the_one_haproxy() -> None:
    image = versions().images["haproxy"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == image.tag
    assert default_of(GatewayValues)["image"].items() >= image.model_dump().items()


def test_every_task_of_the_catalogue_has_its_operations() -> None:
    operations = yaml.safe_load((CHART / "files/operations.yaml").read_text())
    assert set(operations) == set(get_args(Task)) == set(get_args(Model.model_fields["task"].annotation))
    for found in operations.values():
        for path, operation in found.items():
            assert path.startswith("/v1/")
            assert set(operation) == {"method", "body"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_model_takes_and_gives(name: str) -> None:
    values = GatewayValues.model_validate(example(name))
    dumped = values.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert GatewayValues.model_validate(dumped) == values


@pytest.mark.parametrize("name", EXAMPLES)
def test_completed_by_the_model_or_by_the_chart_is_the_same(name: str) -> None:
    """The defaults of entries are in Python and in `_defaults.tpl`: both have to mean one thing."""
    written = example(name)
    completed = GatewayValues.model_validate(written).model_dump(by_alias=True, exclude_none=True, mode="json")
    assert rendered(written) == rendered(completed)


def test_every_value_is_used_by_a_template() -> None:
    unused = {path for path, name in named(GatewayValues) if not re.search(rf"[.\" ]{name}\b", TEMPLATES)}
    assert unused == UNUSED


def test_every_use_of_a_value_exists() -> None:
    known = {name for _, name in named(GatewayValues)} | {"Chart", "Release"}
    uses = re.findall(r"\.Values\.([A-Za-z.]+)", TEMPLATES) + re.findall(r"\$v\.([A-Za-z.]+)", TEMPLATES)
    assert len(uses) > 20
    for use in uses:
        assert set(use.split(".")) <= known, use


def test_every_rule_that_the_chart_claims_has_its_condition() -> None:
    used = set(re.findall(r'"gateway\.refuse" \(list "([a-z0-9-]+)"', TEMPLATES))
    assert used == {name for name, rule in rules("gateway").items() if "chart" in rule.layers}


def test_every_error_has_its_rule_and_every_rule_its_error() -> None:
    errors = yaml.safe_load((CHART / "files/errors.yaml").read_text())
    used = set(re.findall(r'"gateway\.answer" \(list [.$] "([a-z-]+)"', TEMPLATES))
    used |= set(re.findall(r'"([a-z-]+)"', re.findall(r"range (list .*model-twice.*) }}", TEMPLATES)[0]))
    assert used == set(errors["own"])
    codes = [error["code"] for kind in errors.values() for error in kind.values()]
    assert len(codes) == len(set(codes))


def test_the_readme_tells_every_value() -> None:
    table = (CHART / "README.md").read_text().partition(BEGIN)[2]
    assert readme_table(GatewayValues) in table
    assert len(re.findall(r"^\| `", table, re.MULTILINE)) == len(list(named(GatewayValues)))


def test_the_readme_tells_every_status_that_an_error_has() -> None:
    errors = yaml.safe_load((CHART / "files/errors.yaml").read_text())
    statuses = {error["status"] for error in errors["own"].values()} | {*errors["process"]} - {500, 501}
    (table,) = re.findall(r"\| status \| when \|\n(.*?)\n\n", (CHART / "README.md").read_text(), re.DOTALL)
    told = {int(number) for row in table.splitlines()[1:] for number in re.findall(r"\d{3}", row.split("|")[1])}
    assert told == statuses - {500}


def test_every_key_has_a_meaning() -> None:
    for model in (GatewayValues, *entry_models(GatewayValues).values()):
        for key in keys(model):
            assert key.field.description, key.name


def test_the_smallest_values_of_the_readme_render() -> None:
    readme = (CHART / "README.md").read_text()
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert "qwen3-8b" in only(rendered(yaml.safe_load(values)), "ConfigMap")["data"]["routes.map"]
    (more,) = re.findall(r"## Versions\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert rendered(over(yaml.safe_load(values), yaml.safe_load(more)))


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    "setting",
    [
        "limits.bodyBytes=70000",
        "limits.connections=100",
        "tenants.acme.requestsPerMinute=7",
        "tenants.acme.concurrency=9",
        "autoscaling.minReplicas=3",
        "models.llama-8b.versions.stable.weight=100",
        "models.llama-8b.versions.stable.endpoints.here.port=8100",
        "timeouts.keyRefreshSeconds=1",
        "health.intervalSeconds=3",
        "drain.seconds=2000",
        "resources.cpu=1",
        "resources.memory=4294967296",
    ],
)
def test_a_number_of_the_command_line_is_the_number_of_a_file(setting: str, helm: str) -> None:
    """Helm reads `--set` as int64 and files as float64, and templates compare neither with the other."""
    path, _, value = setting.partition("=")
    overlay = json.loads("".join(f'{{"{key}": ' for key in path.split(".")) + value + "}" * len(path.split(".")))
    minimal = example("gateway/minimal")
    assert rendered(minimal, options=("--set", setting), helm=HELMS[helm]) == rendered(
        over(minimal, overlay), helm=HELMS[helm]
    )


@pytest.mark.parametrize("helm", HELMS)
def test_it_works_as_a_dependency_of_another_chart(tmp_path: Any, helm: str) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts/gateway").symlink_to(CHART)
    dependency = {"name": "gateway", "version": "0.1.0", "repository": ""}
    about = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": [dependency]}
    (parent / "Chart.yaml").write_text(json.dumps(about))
    values = {"global": {"team": "a"}, "gateway": example("gateway/everything")}
    nested = parsed(render(str(parent), "door", "models", values, helm=HELMS[helm]))
    assert only(nested, "ConfigMap") == only(rendered(example("gateway/everything")), "ConfigMap")
