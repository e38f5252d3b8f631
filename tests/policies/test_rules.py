"""A rule of a chart that kubectl could break too has a policy of the same id, which the same bad values break."""

from pathlib import Path
from typing import Any

import pytest

from charts.kit import example, over, parsed, pods
from charts.unguarded import unguarded_chart
from policies.kit.cases import namespace, policies
from rayhelm.check.admission.evaluate import evaluate_policies
from rayhelm.deploy.charts.helm import render
from rayhelm.deploy.charts.rules import rules

Object = dict[str, Any]

NO_YAML = {"image": {"tag": ""}}
"""Past the refusals it renders `image: name:`, which Kubernetes cannot apply."""
ROWS = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, rule in rules("ray-service").items()
    if "policy" in rule.layers
    for number, bad in enumerate(rule.bad)
    if bad != NO_YAML
]


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(unguarded_chart(tmp_path_factory.mktemp("unguarded")))


def broken(chart: Path | str, values: Object) -> set[str]:
    objects = parsed(render(str(chart), "chat", "models", over(example("minimal"), values)))
    return {
        violation.rule
        for item in objects + pods(objects)
        for violation in evaluate_policies(policies(), item, namespace())
    }


@pytest.mark.parametrize(("name", "bad"), ROWS)
def test_policy_refuses_bad_values_of_the_chart_by_the_same_rule(unguarded: Path, name: str, bad: Object) -> None:
    assert name not in broken(unguarded, {})
    assert name in broken(unguarded, bad)


def test_rules_of_chart_and_policy_name_both_layers() -> None:
    shared = {rule for policy in policies() for rule in policy.fields} & rules("ray-service").keys()
    assert shared == {name for name, rule in rules("ray-service").items() if "policy" in rule.layers}
    assert len(shared) >= 3
