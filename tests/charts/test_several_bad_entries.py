"""Several bad entries of one map or list are refused once, and the fix has all the good ones and no bad one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.each_chart import Values, chart_of
from charts.kit import chat, over
from rayhelm.errors import FleetError

ROWS = yaml.safe_load((Path(__file__).parent / "data/several_bad_entries.yaml").read_text())


def pasted(values: Values, fix: Values) -> Values:
    """Values in which each list of the fix, and each map of it that is no section, is in place of the old one."""
    return {**values, **{key: _in_place_of(values.get(key), value) for key, value in fix.items()}}


def _in_place_of(old: Any, new: Any) -> Any:
    is_section = isinstance(old, dict) and isinstance(new, dict) and new and all(map(_is_section_or_list, new.values()))
    return pasted(old, new) if is_section else new


def _is_section_or_list(value: Any) -> bool:
    return isinstance(value, dict | list)


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row['rules'][0]}" for number, row in enumerate(ROWS)])
def test_bad_entries_are_refused_once_with_one_fix(row: dict[str, Any]) -> None:
    chart = chart_of(row["chart"])
    values = over(chart.smallest(), row["bad"])
    with pytest.raises(FleetError) as caught:
        chart.objects(values)
    problems = caught.value.problems
    assert [problem.rule for problem in problems] == row["rules"]
    assert problems[0].message.startswith(row["says"][0])
    said = "\n".join(problem.message for problem in problems)
    assert [text for text in row["says"] if text not in said] == []
    assert [yaml.safe_load(str(problem.fix)) for problem in problems] == [row["fix"]] * len(problems)
    chart.objects(pasted(values, row["fix"]))


def test_rules_of_minimum_and_maximum_replicas_have_the_same_fix() -> None:
    chart = chart_of("ray-service")
    values = over(chart.smallest(), chat(autoscaling={"minReplicas": 3, "maxReplicas": 5}))
    with pytest.raises(FleetError) as caught:
        chart.objects(values)
    fixes = {problem.rule: yaml.safe_load(str(problem.fix)) for problem in caught.value.problems}
    fix = {"workerGroups": {"gpu": {"maxReplicas": 5}}}
    assert fixes == {"capacity-gpu": fix, "capacity-limit": fix}
    chart.objects(over(values, fix))


def test_rules_of_gpus_and_of_ingress_deployments_have_the_same_fix() -> None:
    chart = chart_of("ray-service")
    values = over(chart.smallest(), chat(autoscaling={"minReplicas": 1, "maxReplicas": 3}))
    values = over(values, {"serve": {"applications": {"chat": {"ingress": {"workerGroup": "gpu", "maxReplicas": 33}}}}})
    with pytest.raises(FleetError) as caught:
        chart.objects(values)
    fixes = {problem.rule: yaml.safe_load(str(problem.fix)) for problem in caught.value.problems}
    fix = {"workerGroups": {"gpu": {"maxReplicas": 5}}}
    assert fixes == {"capacity-limit": fix, "capacity-ingress": fix}
    chart.objects(over(values, fix))


def test_models_of_three_stores_move_to_one() -> None:
    chart = chart_of("ray-service")
    stores = ("gs://bucket", "azure://models@account.blob.core.windows.net", "s3://bucket")
    values = over(
        chart.smallest(),
        {
            "networkPolicy": {"bucket": {"cidrs": ["0.0.0.0/0"]}},
            "serve": {
                "customApplications": {
                    f"app-{number}": {"importPath": "app:build", "hubModels": {f"{store}/{number}": "0" * 64}}
                    for number, store in enumerate(stores)
                }
            },
        },
    )
    with pytest.raises(FleetError) as caught:
        chart.objects(values)
    assert [problem.rule for problem in caught.value.problems] == ["bucket-stores"] * 2
    for problem in caught.value.problems:
        values = pasted(values, yaml.safe_load(str(problem.fix)))
    chart.objects(values)
