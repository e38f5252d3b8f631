"""Objects that stay after an edit, and a tenant that leaves."""

from typing import Any

import pytest

from rayhelm.check.diff.compare import compare_sides
from rayhelm.check.diff.kept import list_kept_objects
from rayhelm.check.diff.page import format_markdown
from rayhelm.check.diff.read_fleet import build_side
from rayhelm.check.diff.report import DiffReport, ReleaseReport
from rayhelm.deploy.render.files import render_plan
from rayhelm.errors import FleetError
from rayhelm.planner.planner import plan_fleet
from shared.fleets import load

FLEET = """\
fleet: small
clusters:
  main:
    kuberay: 1.7.0
    apiServer: {cidrs: [10.0.0.1/32]}
    weights: {storageClass: nfs}
    gateway: {replicas: 1, allowedClients: [apps]}
pools:
  gpu: {gpu: L4-24GB, nodes: 4, price: 1.00 USD/h}
models:
  chat: {source: Qwen/Qwen3-8B, unpinnedReason: only rendered, context: 8192, replicas: 1}
  draft: {source: Qwen/Qwen3-0.6B, unpinnedReason: only rendered, context: 4096, replicas: 1}
services:
  chat: {tenant: stays}
  draft: {tenant: leaves}
tenants:
  stays: {models: [chat], requestsPerMinute: 60, gpus: 3}
  leaves: {models: [draft], requestsPerMinute: 60, gpus: 1}
"""
LEFT = "".join(line for line in FLEET.splitlines(keepends=True) if "draft" not in line and "leaves" not in line)
HANDED_OVER = (
    "".join(line for line in FLEET.splitlines(keepends=True) if "  leaves:" not in line)
    .replace("draft: {tenant: leaves}", "draft: {tenant: stays}")
    .replace("models: [chat]", "models: [chat, draft]")
)
KEEP = {"helm.sh/resource-policy": "keep"}
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"


def compare(new: str) -> DiffReport:
    old_side, new_side = (build_side("fleet.yaml", render_plan(plan_fleet(load(text)))) for text in (FLEET, new))
    return compare_sides(old_side, new_side)


@pytest.fixture(scope="module")
def leaving() -> dict[tuple[str, str], ReleaseReport]:
    return {(each.chart, each.release): each for each in compare(LEFT).releases}


def test_tenant_that_leaves_keeps_its_namespace_and_quotas(leaving: dict[tuple[str, str], ReleaseReport]) -> None:
    tenant = leaving["tenant", "leaves"]
    kept = {each.object for each in tenant.kept_objects}
    assert {"Namespace leaves", "ResourceQuota leaves"} <= kept
    assert not kept & {*tenant.pruned_objects}
    assert all(each.kept_by == ("Helm", "Argo CD") for each in tenant.kept_objects)


def test_weights_that_stay_are_named_with_their_cost_and_removal(
    leaving: dict[tuple[str, str], ReleaseReport],
) -> None:
    (claim,) = leaving["ray-service", "draft"].kept_objects
    assert claim.object == "PersistentVolumeClaim draft-weights"
    assert claim.costs.endswith("Gi of storage class `nfs`")
    assert claim.removal == "kubectl delete pvc draft-weights -n leaves"
    assert claim.object not in leaving["ray-service", "draft"].pruned_objects


def test_model_that_is_handed_over_moves_to_another_namespace() -> None:
    report = compare(HANDED_OVER)
    moved = next(each for each in report.releases if each.release == "draft" and each.effect == "uninstall")
    assert "it moves to namespace stays" in moved.reasons[-1]
    assert "remove draft from namespace leaves" in moved.advice[0]
    assert "goes on costing" in format_markdown(report)


def test_model_of_a_tenant_that_left_can_be_removed_or_handed_over() -> None:
    with pytest.raises(FleetError) as error:
        load(HANDED_OVER.replace("models: [chat, draft]", "models: [chat]"))
    (problem,) = error.value.problems
    assert problem.fix.value == ["chat", "draft"]
    assert [fix.is_removal for fix in problem.alternatives] == [True]


@pytest.mark.parametrize(
    ("annotations", "is_uninstalled", "kept_by"),
    [
        ({}, True, None),
        (KEEP, True, ("Helm", "Argo CD")),
        (KEEP, False, ("Helm",)),
        ({SYNC_OPTIONS: "PruneLast=true, Delete=false"}, True, ("Argo CD",)),
        ({SYNC_OPTIONS: "Delete=false"}, False, None),
        ({SYNC_OPTIONS: "Prune=false"}, False, ("Argo CD",)),
        (KEEP | {SYNC_OPTIONS: "Prune=false"}, False, ("Helm", "Argo CD")),
    ],
)
def test_object_is_kept_by_the_tools_whose_annotation_it_has(
    annotations: dict[str, str], is_uninstalled: bool, kept_by: tuple[str, ...] | None
) -> None:
    item: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "keys", "annotations": annotations}}
    found = list(list_kept_objects([item], "apps", is_uninstalled=is_uninstalled))
    assert [each.kept_by for each in found] == ([kept_by] if kept_by else [])
