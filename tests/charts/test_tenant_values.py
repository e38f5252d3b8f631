"""Values, schema, documents and templates of the chart tenant say the same."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import HELMS, HERE, VALUES, example, over, parsed
from rayhelm.catalog import catalog
from rayhelm.charts.docs import readme_table
from rayhelm.charts.generate import BEGIN
from rayhelm.charts.helm import charts_dir, render
from rayhelm.charts.rules import rules
from rayhelm.charts.shape import default_of, entry_models, keys
from rayhelm.values.tenant import TenantValues
from rayhelm.values.tenant.quota import CARDS

CHART = charts_dir() / "tenant"
EXAMPLES = sorted(f"tenant/{path.stem}" for path in (VALUES / "tenant").glob("*.yaml"))
TEMPLATES = "\n".join(
    path.read_text()
    for path in sorted(CHART.rglob("templates/**/*"))
    if path.is_file() and path.name not in ("_defaults.tpl", "_rules.tpl")
)
UNUSED = {"global": "Helm hands it to every chart; this one has no use for it"}


def rendered(values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return parsed(render("tenant", "research", "tenants", values, **options))


def named(model: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every key as its path and its last part."""
    for key in keys(model):
        yield f"{path}{key.name}", key.name
        if below := key.section or key.entry:
            yield from named(below, f"{path}{key.name}.")


def test_values_yaml_holds_every_default() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text()) == default_of(TenantValues)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_model_takes_and_gives(name: str) -> None:
    values = TenantValues.model_validate(example(name))
    dumped = values.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert TenantValues.model_validate(dumped) == values


@pytest.mark.parametrize("name", EXAMPLES)
def test_completed_by_the_model_or_by_the_chart_is_the_same(name: str) -> None:
    """The defaults of entries are in Python and in `_defaults.tpl`: both have to mean one thing."""
    written = example(name)
    completed = TenantValues.model_validate(written).model_dump(by_alias=True, exclude_none=True, mode="json")
    assert rendered(written) == rendered(completed)


def test_every_value_is_used_by_a_template() -> None:
    """Those of `quota.objects` and `access` are walked through; test_tenant_every_value.py changes each."""
    walked = {*default_of(TenantValues)["access"]["viewers"], "cpu", "memory"}
    unused = {
        path
        for path, name in named(TenantValues)
        if name not in walked and not re.search(rf"[.\" ]{name}\b", TEMPLATES)
    }
    assert unused == set(UNUSED)


def test_every_use_of_a_value_exists() -> None:
    known = {name for _, name in named(TenantValues)} | {"Chart", "Release"}
    uses = re.findall(r"\.Values\.([A-Za-z.]+)", TEMPLATES) + re.findall(r"\$v\.([A-Za-z.]+)", TEMPLATES)
    assert len(uses) > 20
    for use in uses:
        assert set(use.split(".")) <= known, use


def test_every_rule_that_the_chart_claims_has_its_condition() -> None:
    used = set(re.findall(r'"tenant\.refuse" \(list "([a-z0-9-]+)"', TEMPLATES))
    assert used == {name for name, rule in rules("tenant").items() if "chart" in rule.layers}


def test_the_readme_tells_every_value() -> None:
    table = (CHART / "README.md").read_text().partition(BEGIN)[2]
    assert readme_table(TenantValues) in table
    assert len(re.findall(r"^\| `", table, re.MULTILINE)) == len(list(named(TenantValues)))


def test_every_key_has_a_meaning() -> None:
    for model in (TenantValues, *entry_models(TenantValues).values()):
        for key in keys(model):
            assert key.field.description, key.name


def test_every_card_of_the_catalogue_is_denied_where_it_is_not_given() -> None:
    assert {gpu.resource for gpu in catalog().gpus()} <= set(CARDS)
    (denied,) = [item for item in rendered(example("tenant/minimal")) if item["metadata"]["name"] == "research-denied"]
    given = {"nvidia.com/gpu"}
    for resource in set(CARDS) - given:
        assert denied["spec"]["hard"][f"requests.{resource}"] == "0"
    assert not [name for name in denied["spec"]["hard"] if name.removeprefix("requests.") in given]


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    "setting",
    ["quota.pods.steady=7", "quota.objects.loadBalancers=2", "podSecurity.version=v1.36", "namespace.name=other"],
)
def test_a_number_of_the_command_line_is_the_number_of_a_file(setting: str, helm: str) -> None:
    """Helm reads `--set` as int64 and files as float64, and templates compare neither with the other."""
    path, _, value = setting.partition("=")
    value = value if value.isdigit() else json.dumps(value)
    overlay = json.loads("".join(f'{{"{key}": ' for key in path.split(".")) + value + "}" * len(path.split(".")))
    minimal = example("tenant/minimal")
    assert rendered(minimal, options=("--set", setting), helm=HELMS[helm]) == rendered(
        over(minimal, overlay), helm=HELMS[helm]
    )


def test_cards_of_the_command_line_are_those_of_a_file() -> None:
    key = "quota.gpus.nvidia\\.com/gpu"
    values = {"quota": {"gpus": {"nvidia.com/gpu": {"planned": 2, "steady": 3, "surge": 4}}}}
    settings = (f"--set={key}.planned=2,{key}.steady=3,{key}.surge=4",)
    assert rendered({}, options=settings) == rendered(values)


def test_the_smallest_values_render_what_the_golden_file_shows() -> None:
    text = render("tenant", "research", "tenants", example("tenant/minimal"))
    golden = HERE / "golden/tenant.yaml"
    if os.environ.get("RAYHELM_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert parsed(text) == parsed(golden.read_text()), "RAYHELM_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("helm", HELMS)
def test_it_works_as_a_dependency_of_another_chart(tmp_path: Path, helm: str) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts/tenant").symlink_to(CHART)
    below = [{"name": "tenant", "version": "0.1.0", "repository": ""}]
    about = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": below}
    parent.joinpath("Chart.yaml").write_text(json.dumps(about))
    values = {"global": {"of": "the parent"}, "tenant": example("tenant/minimal")}
    nested = parsed(render(str(parent), "research", "tenants", values, helm=HELMS[helm]))
    assert nested == rendered(example("tenant/minimal"), helm=HELMS[helm])


def test_the_smallest_values_of_the_readme_render() -> None:
    readme = (CHART / "README.md").read_text()
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert {item["kind"] for item in rendered(yaml.safe_load(values))} >= {"Namespace", "ResourceQuota", "RoleBinding"}
