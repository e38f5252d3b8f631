"""Values, schema, documents and templates of the chart platform say the same."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.kit import HELMS, HERE, VALUES, example, over, parsed
from rayhelm.charts.docs import readme_table
from rayhelm.charts.generate import BEGIN
from rayhelm.charts.helm import charts_dir, render
from rayhelm.charts.rules import rules
from rayhelm.charts.shape import default_of, entry_models, keys
from rayhelm.values.platform import PlatformValues

CHART = charts_dir() / "platform"
EXAMPLES = sorted(f"platform/{path.stem}" for path in (VALUES / "platform").glob("*.yaml"))
TEMPLATES = "\n".join(
    path.read_text()
    for path in sorted(CHART.rglob("templates/**/*"))
    if path.is_file() and path.name not in ("_defaults.tpl", "_rules.tpl")
)
UNUSED = {"global": "Helm hands it to every chart; this one has no use for it"}


def rendered(values: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return parsed(render("platform", "platform", "rayhelm-system", values, **options))


def named(model: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every key as its path and its last part."""
    for key in keys(model):
        yield f"{path}{key.name}", key.name
        if below := key.section or key.entry:
            yield from named(below, f"{path}{key.name}.")


def test_values_yaml_holds_every_default() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text()) == default_of(PlatformValues)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_model_takes_and_gives(name: str) -> None:
    values = PlatformValues.model_validate(example(name))
    dumped = values.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert PlatformValues.model_validate(dumped) == values


@pytest.mark.parametrize("name", EXAMPLES)
def test_completed_by_the_model_or_by_the_chart_is_the_same(name: str) -> None:
    """The defaults of entries are in Python and in `_defaults.tpl`: both have to mean one thing."""
    written = example(name)
    completed = PlatformValues.model_validate(written).model_dump(by_alias=True, exclude_none=True, mode="json")
    assert rendered(written) == rendered(completed)


def test_every_value_is_used_by_a_template() -> None:
    """test_platform_every_value.py changes each."""
    unused = {path for path, name in named(PlatformValues) if not re.search(rf"[.\" ]{name}\b", TEMPLATES)}
    assert unused == set(UNUSED)


def test_every_use_of_a_value_exists() -> None:
    known = {name for _, name in named(PlatformValues)} | {"Chart", "Release"}
    uses = re.findall(r"\.Values\.([A-Za-z.]+)", TEMPLATES) + re.findall(r"\$v\.([A-Za-z.]+)", TEMPLATES)
    assert len(uses) > 4
    for use in uses:
        assert set(use.split(".")) <= known, use


def test_every_rule_that_the_chart_claims_has_its_condition() -> None:
    used = set(re.findall(r'"platform\.refuse" \(list "([a-z0-9-]+)"', TEMPLATES))
    assert used == {name for name, rule in rules("platform").items() if "chart" in rule.layers}


def test_the_readme_tells_every_value() -> None:
    table = (CHART / "README.md").read_text().partition(BEGIN)[2]
    assert readme_table(PlatformValues) in table
    assert len(re.findall(r"^\| `", table, re.MULTILINE)) == len(list(named(PlatformValues)))


def test_every_key_has_a_meaning() -> None:
    for model in (PlatformValues, *entry_models(PlatformValues).values()):
        for key in keys(model):
            assert key.field.description, key.name


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("setting", ["priorityClasses.head.value=1500000", "priorityClasses.batch.value=7"])
def test_a_number_of_the_command_line_is_the_number_of_a_file(setting: str, helm: str) -> None:
    """Helm reads `--set` as int64 and files as float64, and templates compare neither with the other."""
    path, _, value = setting.partition("=")
    overlay = json.loads("".join(f'{{"{key}": ' for key in path.split(".")) + value + "}" * len(path.split(".")))
    minimal = example("platform/minimal")
    assert rendered(minimal, options=("--set", setting), helm=HELMS[helm]) == rendered(
        over(minimal, overlay), helm=HELMS[helm]
    )


def test_the_smallest_values_render_what_the_golden_file_shows() -> None:
    """Without the policies, which stand in files of their own."""
    text = "---\n".join(
        part
        for part in render("platform", "platform", "rayhelm-system", example("platform/minimal")).split("---\n")
        if "templates/policies/" not in part.partition("\n")[0]
    )
    golden = HERE / "golden/platform.yaml"
    if os.environ.get("RAYHELM_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert parsed(text) == parsed(golden.read_text()), "RAYHELM_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("helm", HELMS)
def test_it_works_as_a_dependency_of_another_chart(tmp_path: Path, helm: str) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts/platform").symlink_to(CHART)
    below = [{"name": "platform", "version": "0.1.0", "repository": ""}]
    about = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": below}
    parent.joinpath("Chart.yaml").write_text(json.dumps(about))
    values = {"global": {"of": "the parent"}, "platform": example("platform/minimal")}
    nested = parsed(render(str(parent), "platform", "rayhelm-system", values, helm=HELMS[helm]))
    assert nested == rendered(example("platform/minimal"), helm=HELMS[helm])


def test_the_smallest_values_of_the_readme_render() -> None:
    readme = (CHART / "README.md").read_text()
    (values,) = re.findall(r"## The smallest values\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert {item["kind"] for item in rendered(yaml.safe_load(values))} >= {"PriorityClass"}
