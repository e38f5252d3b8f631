"""Fourth round: values that would take a security setting away, or reach beyond the release, are refused."""

import pytest
import yaml

from attacks.kit.fourth_round import Attempt, read_attempts
from charts.kit import Object, over
from charts.test_pod_settings import below, chart_of, smallest
from rayhelm.errors import FleetError


@pytest.mark.parametrize("attempt", read_attempts("charts"), ids=str)
def test_values_of_an_attempt_are_refused_by_their_rule(attempt: Attempt) -> None:
    row = attempt.row
    chart = chart_of(row["chart"])
    with pytest.raises(FleetError) as caught:
        chart.text(over(smallest(chart), below(row.get("path", ""), row["values"])))
    (problem,) = caught.value.problems
    assert problem.rule == row.get("rule", "")
    if not problem.rule:
        assert "don't meet the specifications of the schema" in problem.message


def test_text_with_line_breaks_stays_one_object() -> None:
    """Helm writes what the values have as quoted text."""
    text = "ConfigMap\n---\napiVersion: v1\nkind: Secret"
    chart = chart_of("gateway")
    plain = chart.text(smallest(chart))
    written = {"apiVersion": "v1", "kind": text, "metadata": {"name": text}}
    found = chart.text(over(smallest(chart), {"extraObjects": [written]}))
    objects: list[Object] = [item for item in yaml.safe_load_all(found) if item]
    assert len(objects) == len([item for item in yaml.safe_load_all(plain) if item]) + 1
    assert [item["kind"] for item in objects if item["metadata"]["name"] == text] == [text]


def test_object_of_the_tenant_s_namespace_is_rendered() -> None:
    chart = chart_of("tenant")
    for settings, namespace in (({}, "research"), ({"namespace": {"manage": True, "name": "team"}}, "team")):
        mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": namespace}}
        assert "name: notes" in chart.text(over(smallest(chart), {"extraObjects": [mine], **settings}))


def test_token_for_another_service_is_rendered() -> None:
    source = {"serviceAccountToken": {"path": "token", "audience": "vault"}}
    chart = chart_of("gateway")
    values = {"extraVolumes": [{"name": "v", "projected": {"sources": [source]}}]}
    assert "audience: vault" in chart.text(over(smallest(chart), values))
