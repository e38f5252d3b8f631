"""Values, schema, documents and templates of each chart say the same."""

import itertools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.fields import FieldInfo

from charts.each_chart import CHARTS, Chart, named
from charts.kit import HELMS, HERE, example, over, parsed
from ci.chart_files import BEGIN, smallest_values, stale
from rayhelm.deploy.charts.docs import readme_table
from rayhelm.deploy.charts.helm import render
from rayhelm.deploy.charts.models import CHARTS as MODELS
from rayhelm.deploy.charts.rules import POD_PATHS
from rayhelm.deploy.charts.shape import default_of, entry_models, keys

SHARED = {"global", "global.imageRegistry", "global.imagePullSecrets", "global.imagePullSecrets.name"}
"""Helm hands them to every chart; templates of charts/lib read them."""


each_chart = pytest.mark.parametrize("chart", CHARTS, ids=str)
each_example = pytest.mark.parametrize(
    ("chart", "name"), [pytest.param(chart, name, id=f"{chart}-{name}") for chart in CHARTS for name in chart.examples]
)


def test_every_chart_is_tested() -> None:
    assert {chart.name for chart in CHARTS} == set(MODELS)


@each_chart
def test_generated_files_are_fresh(chart: Chart) -> None:
    assert stale(chart.name) == [], "run `make generate`"


@each_chart
def test_values_yaml_holds_every_default(chart: Chart) -> None:
    assert yaml.safe_load((chart.folder / "values.yaml").read_text()) == default_of(chart.model)


@each_example
def test_example_matches_the_model(chart: Chart, name: str) -> None:
    values = chart.model.model_validate(example(name))
    dumped = values.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert chart.model.model_validate(dumped) == values


@each_example
def test_completed_by_the_model_or_by_the_chart_is_the_same(chart: Chart, name: str) -> None:
    """The defaults of entries are in Python and in `files/defaults.json`: both have to mean one thing."""
    written = example(name)
    completed = chart.model.model_validate(written).model_dump(by_alias=True, exclude_none=True, mode="json")
    assert chart.objects(written) == chart.objects(completed)


@each_chart
def test_every_value_is_used_by_a_template(chart: Chart) -> None:
    """The tests of every value change each."""
    unused = {
        path
        for path, name in named(chart.model)
        if name not in chart.walked and not re.search(rf"[.\" ]{name}\b", chart.templates)
    }
    assert unused <= SHARED


@each_chart
def test_every_use_of_a_value_exists(chart: Chart) -> None:
    known = {name for _, name in named(chart.model)} | {"Chart", "Release"}
    uses = re.findall(r"(?:\.Values|\$v)\.((?!root\b)[A-Za-z.]+)", chart.templates)
    assert len(uses) > 4
    for use in uses:
        assert set(use.split(".")) <= known, use


@each_chart
def test_every_rule_that_the_chart_claims_has_its_condition(chart: Chart) -> None:
    call = rf'"{chart.name}\.refuse(?:Entries)?" \(dict "v" (?:\S+|\(index \S+ 0\)) "id" "([a-z0-9-]+)"'
    used = set(re.findall(call, chart.templates))
    if chart.name in POD_PATHS:
        used |= set(re.findall(r'refusePod" \(dict "args" \S+ "id" "([a-z0-9-]+)"', chart.templates))
    if not re.search(r'"scraped" (?:true|\()', chart.templates):  # pods of this chart are not scraped by annotations
        used.discard("scrape-annotation")
    assert used == {name for name, rule in chart.rules.items() if "chart" in rule.layers}


@each_chart
def test_readme_lists_every_value(chart: Chart) -> None:
    table = chart.readme.partition(BEGIN)[2]
    assert readme_table(chart.model) in table
    assert len(re.findall(r"^\| `", table, re.MULTILINE)) == len(list(named(chart.model)))


def described(model: Any, path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for key in keys(model):
        yield f"{path}{key.name}", key.field
        if key.section:
            yield from described(key.section, f"{path}{key.name}.")


@each_chart
def test_every_key_has_a_meaning(chart: Chart) -> None:
    for model in (chart.model, *entry_models(chart.model).values()):
        for path, field in described(model):
            assert field.description, path


@each_chart
def test_smallest_values_render_what_the_golden_file_shows(chart: Chart) -> None:
    parts = chart.text(chart.smallest()).split("---\n")
    text = "---\n".join(part for part in parts if not chart.apart or chart.apart not in part.partition("\n")[0])
    golden = HERE / f"golden/{chart.name}.yaml"
    if os.environ.get("RAYHELM_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert parsed(text) == parsed(golden.read_text()), "RAYHELM_UPDATE_GOLDEN=1 writes it again"


@each_chart
@pytest.mark.parametrize("helm", HELMS)
def test_values_yaml_begins_with_an_example_that_renders(chart: Chart, helm: str, tmp_path: Path) -> None:
    head = (chart.folder / "values.yaml").read_text().partition("\n\n")[0]
    _, _, commented = head.partition("# A working example, for a file of your own:\n#\n")
    example = re.sub("^# ?", "", commented, flags=re.MULTILINE)
    assert yaml.safe_load(example or "{}") == yaml.safe_load(smallest_values(chart.name))
    file = tmp_path / "values.yaml"
    file.write_text(example)
    subprocess.run([HELMS[helm], "lint", "--strict", chart.folder, f"--values={file}"], check=True, capture_output=True)
    assert {item["kind"] for item in chart.objects(yaml.safe_load(example) or {}, helm)} >= chart.shows


@each_chart
def test_values_yaml_shows_an_accepted_entry_of_each_empty_map(chart: Chart) -> None:
    filled, opened = [], False
    for line in (chart.folder / "values.yaml").read_text().splitlines():
        found = re.fullmatch(r"( *[\w.-]+:) (\{\}|\[\])(?:  # (.+))?", line)
        is_entry = opened and re.match(" *# (?!-- )", line)
        opened = bool(found and not found[3]) or bool(is_entry)
        filled.append(line.replace("# ", "", 1) if is_entry else f"{found[1]} {found[3] or ''}" if found else line)
    values = yaml.safe_load("\n".join(filled))
    assert chart.model.model_validate(values)
    assert list(_list_empty(values)) == []


def _list_empty(values: Any, path: str = "") -> Iterator[str]:
    if values in ({}, [], None):
        yield path
    for key, below in values.items() if isinstance(values, dict) else ():
        yield from _list_empty(below, f"{path}.{key}")


@each_chart
def test_values_yaml_has_one_comment_line_for_each_key(chart: Chart) -> None:
    lines = (chart.folder / "values.yaml").read_text().partition("\n\n")[2].splitlines()
    for above, line in itertools.pairwise(lines):
        if re.match(" *[A-Za-z]+:", line):
            assert above.lstrip().startswith("# -- "), line
            assert len(above) <= 120, above


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("chart", "setting"),
    [pytest.param(chart, setting, id=f"{chart}-{setting}") for chart in CHARTS for setting in chart.settings],
)
def test_option_and_file_accept_the_same_numbers(chart: Chart, setting: str, helm: str) -> None:
    """Helm reads `--set` as int64 and files as float64, and templates compare neither with the other."""
    path, _, value = setting.partition("=")
    keys_ = path.split(".")
    written = value if value.isdigit() else json.dumps(value)
    overlay = json.loads("".join(f'{{"{key}": ' for key in keys_) + written + "}" * len(keys_))
    smallest = chart.smallest()
    assert chart.objects(smallest, helm, options=("--set", setting)) == chart.objects(over(smallest, overlay), helm)


@each_chart
@pytest.mark.parametrize("helm", HELMS)
def test_it_works_as_a_dependency_of_another_chart(chart: Chart, tmp_path: Path, helm: str) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts" / chart.name).symlink_to(chart.folder)
    below = [{"name": chart.name, "version": "0.1.0", "repository": ""}]
    about = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": below}
    parent.joinpath("Chart.yaml").write_text(json.dumps(about))
    values = {"global": {"of": "the parent"}, chart.name: chart.smallest()}
    nested = parsed(render(str(parent), chart.release, chart.namespace, values, helm=HELMS[helm]))
    assert nested == chart.objects(chart.smallest(), helm)
