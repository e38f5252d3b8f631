"""Validation renders before every other template, and one refusal names all rules that are broken."""

import json
import subprocess

import pytest

from charts.each_chart import CHARTS, Chart
from charts.kit import HELMS, over
from rayhelm.errors import FleetError

each_chart = pytest.mark.parametrize("chart", CHARTS, ids=str)


@each_chart
def test_validation_is_the_first_template(chart: Chart) -> None:
    """By Helm's order: most slashes first, then the reverse alphabet (sortTemplates in pkg/engine/engine.go)."""
    files = [str(path.relative_to(chart.folder)) for path in chart.folder.rglob("templates/**/[!_]*") if path.is_file()]
    assert max(files, key=lambda path: (path.count("/"), path)) == "templates/validate/first/values.yaml"


@pytest.mark.parametrize("helm", HELMS)
@each_chart
def test_refusal_names_the_validation_template(chart: Chart, helm: str) -> None:
    name, rule = next((name, rule) for name, rule in chart.rules.items() if "chart" in rule.layers and not rule.release)
    values = json.dumps(over(chart.smallest(), rule.bad[0]))
    command = [HELMS[helm], "template", chart.release, chart.folder, "--values=-"]
    done = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
    assert f"({chart.name}/templates/validate/first/values.yaml:" in done.stderr
    assert f": {name}: " in done.stderr
    assert "\nfix:\n  " in done.stderr


@each_chart
def test_refusals_are_reported_together(chart: Chart) -> None:
    name, rule = next(
        (name, rule) for name, rule in chart.rules.items() if "chart" in rule.layers and not (rule.release or rule.ends)
    )
    values = over(chart.smallest(), over(rule.bad[0], {"commonLabels": {"helm.sh/chart": "mine"}}))
    with pytest.raises(FleetError) as caught:
        chart.objects(values)
    problems = {problem.rule: problem for problem in caught.value.problems}
    assert {name, "common-label"} <= problems.keys()
    assert all(problem.fix and "fix:" not in problem.message for problem in problems.values())
