"""The attempts of the second round that a policy answers: `rayhelm lint` finds the same rule without a cluster."""

from collections import Counter
from pathlib import Path

import pytest

from attacks.kit.objects import Object
from attacks.kit.second_round import OBJECT_ROWS, ROWS, ObjectRow, fill
from charts.kit import example, over, rendered
from policies.kit.cases import policies
from rayhelm.check.admission.evaluate import evaluate_policies
from rayhelm.deploy.charts.helm import template

NAMESPACE = "second-round"
BY_MEMBER = {"viewer", "editor", "deployer", "autoscaler", "worker"}


@pytest.fixture(scope="module")
def namespace() -> Object:
    """The namespace of chart tenant, which has the annotations that the policies read."""
    objects = template("tenant", NAMESPACE, "tenants", over(example("tenant/minimal"), {}))
    return next(dict(item) for item in objects if item["kind"] == "Namespace")


@pytest.mark.parametrize("row", OBJECT_ROWS, ids=str)
def test_attempt_breaks_its_rule_and_no_other(row: ObjectRow, namespace: Object) -> None:
    item = None if row.verb == "delete" else fill(row.item, NAMESPACE)
    if item and "name" not in item["metadata"]:
        # The API server generates the name before admission.
        item["metadata"]["name"] = f"{item['metadata']['generateName']}x4x4x"
    before = fill(row.before, NAMESPACE)
    found = evaluate_policies(policies(), item, namespace, before, by_tenant=row.role in BY_MEMBER)
    assert {each.rule for each in found} == row.rules


@pytest.mark.parametrize("kind", ["PodMonitor", "ScrapeConfig"])
def test_monitor_of_the_chart_breaks_no_rule(kind: str, namespace: Object) -> None:
    monitors = [item for item in rendered({"scraping": {"kind": kind}}, namespace=NAMESPACE) if item["kind"] == kind]
    assert monitors
    assert [evaluate_policies(policies(), item, namespace) for item in monitors] == [[]] * len(monitors)


def test_network_plugin_may_annotate_the_pods_of_a_tenant(namespace: Object) -> None:
    row = next(row for row in OBJECT_ROWS if row.name == "network-of-the-node-for-a-waiting-pod")
    item, before = fill(row.item, NAMESPACE), fill(row.before, NAMESPACE)
    assert evaluate_policies(policies(), item, namespace, before, by_tenant=False) == []
    assert evaluate_policies(policies(), item, namespace, before) != []


def test_second_round_has_60_attempts_from_three_positions() -> None:
    assert len(ROWS) >= 60
    assert {row.role for row in ROWS} >= {"viewer", "editor", "deployer", "autoscaler", "worker"}


def test_readme_counts_the_attempts_and_what_refuses_them() -> None:
    text = " ".join((Path(__file__).parent / "README.md").read_text().split())
    refused = Counter(row.by for row in ROWS if row.first == "refused")
    accepted = [row for row in ROWS if row.first == "accepted"]
    for words in (
        f"has {len(ROWS)} more attempts",
        f"{refused.total()} were refused: {refused['RBAC']} by RBAC, {refused['rule']} by a rule of a policy, "
        f"{refused['Pod Security']} by Pod Security, {refused['quota']} by a quota, {refused['API server']} by the",
        f"{len(accepted)} were accepted",
        f"{sum(row.by == 'rule' for row in accepted)} of these are refused now",
        f"{sum(row.by == 'nothing' for row in ROWS)} are accepted still",
    ):
        assert words in text


def test_accepted_attempt_has_a_reason() -> None:
    assert [row.name for row in ROWS if row.by == "nothing" and not row.text] == []
