"""Runbooks name the key of a chart beside that of the fleet file."""

from pathlib import Path

import pytest

from rayhelm.observe.rules import load_alerts
from rayhelm.observe.rules.runbooks import build_runbooks, find_keys, load_keys

CHARTS = Path(__file__).parents[2] / "charts"


@pytest.mark.parametrize("name", load_keys())
def test_key_of_a_chart_exists(name: str) -> None:
    key = load_keys()[name]
    assert f"| `{key['key']}` " in (CHARTS / key["chart"] / "README.md").read_text()


def test_every_key_is_named_by_a_runbook() -> None:
    used = {key for alert in load_alerts().values() for key in find_keys(alert)}
    assert used == set(load_keys())


def test_runbook_names_the_key_of_the_chart() -> None:
    row = "| `replicas.max` | `ray-service` | `serve.applications.<name>.models.<name>.autoscaling.maxReplicas` |"
    assert row in build_runbooks()["QueueGrowing.md"]
