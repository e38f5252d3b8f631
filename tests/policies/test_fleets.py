"""A policy that would refuse our own charts is none: the reference fleets and the examples pass what they bring."""

import copy
from functools import cache
from typing import Any

import pytest

from charts import kit
from charts.kit import EXAMPLES, FLEETS, pods
from policies.kit.cases import namespace
from rayhelm.check.admission.evaluate import PolicyViolation, evaluate_policies, index_namespaces
from rayhelm.check.admission.policy import AdmissionPolicy, load_chart_policies, read_policies
from rayhelm.deploy.charts.helm import charts_dir, template
from rayhelm.deploy.render.files import Rendered, render_fleet, render_plan
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.planner import plan_fleet

Object = dict[str, Any]

FOLDERS = sorted(file.parent.name for file in (charts_dir().parent / "values").glob("*/fleet.yaml"))


@cache
def fleet(name: str) -> Rendered:
    return render_fleet(charts_dir().parent / "values" / name / "fleet.yaml")


def objects(release: Release) -> list[Object]:
    return template(
        release.chart, release.name, release.namespace, select_changed(release.values), kube_version=release.kubernetes
    )


def clusters() -> list[Any]:
    return [(name, cluster) for name in FOLDERS for cluster in fleet(name).plan.declared.clusters]


@cache
def made(name: str, cluster: str) -> tuple[Object, ...]:
    """All that a fleet brings to a cluster, its pods among it."""
    found: list[Object] = []
    for one in (one for one in fleet(name).releases if one.cluster == cluster):
        rendered = objects(one)
        for pod in (rendered_pods := pods(rendered)):
            pod["metadata"]["namespace"] = one.namespace
        found += rendered + rendered_pods
    return tuple(found)


def violations(found: tuple[Object, ...], policies: list[AdmissionPolicy]) -> list[PolicyViolation]:
    known = {name: namespace(name, **_noted(item)) for name, item in index_namespaces(found).items()}
    return [
        violation
        for item in found
        for violation in evaluate_policies(
            policies, item, known.get(where(item), namespace(where(item))), by_tenant=is_by_tenant(item)
        )
    ]


def is_by_tenant(item: Object) -> bool:
    """Whether a member of the tenant installs it. Controllers create the pods, and administrators the rest."""
    labels = item["metadata"].get("labels") or {}
    return bool(labels.get("app.kubernetes.io/name") == "ray-service" and item["kind"] != "Pod")


def _noted(item: Any) -> dict[str, Object]:
    return {key: item["metadata"].get(key) or {} for key in ("labels", "annotations")}


def where(item: Object) -> str:
    return str(item["metadata"].get("namespace", "default"))


@pytest.mark.parametrize(("name", "cluster"), clusters())
def test_reference_fleet_passes_the_policies_that_it_installs(name: str, cluster: str) -> None:
    found = made(name, cluster)
    policies = list(read_policies(found))
    assert len(policies) == len(load_chart_policies())
    assert {"RayService", "Pod"} <= {item["kind"] for item in found}
    assert violations(found, policies) == []


@pytest.mark.parametrize(("name", "cluster"), clusters())
def test_only_what_a_fleet_gives_a_reason_for_needs_more_than_the_defaults(name: str, cluster: str) -> None:
    assert {violation.rule for violation in violations(made(name, cluster), list(load_chart_policies()))} <= {
        *("model-revision", "image-source"),
        *(("gpu-tenant",) if "models" in {where(item) for item in made(name, cluster)} else ()),
    }


def test_model_without_a_commit_and_without_a_reason_is_refused() -> None:
    loaded = load_fleet(charts_dir().parent / "values/single-gpu/fleet.yaml")
    for model in loaded.fleet.models.values():
        model.__dict__["unpinned_reason"] = None
    rendered = render_plan(plan_fleet(loaded))
    found = tuple(item for one in rendered.releases for item in objects(one))
    assert {violation.rule for violation in violations(found, list(read_policies(found)))} == {"model-revision"}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in FLEETS])
def test_chart_example_breaks_only_its_own_rules(name: str) -> None:
    """Examples stand alone: no fleet gives them tenants, classes or reasons."""
    found = tuple(kit.rendered(base=name))
    about = {"gpu-tenant", "gpu-priority", "model-revision", "image-source", "trust-reason", "auth-reason"}
    assert {
        violation.rule for violation in violations(found + tuple(pods(list(found))), list(load_chart_policies()))
    } <= about


def test_edit_of_one_pod_template_is_seen() -> None:
    """So that the tests above do not pass because nothing is looked at."""
    found = copy.deepcopy(made("multi-node", "main"))
    (policies,) = [list(read_policies(found))]
    service = next(item for item in found if item["kind"] == "RayService")
    service["spec"]["rayClusterConfig"]["workerGroupSpecs"][-1]["template"]["spec"]["hostNetwork"] = True
    assert {violation.rule for violation in violations(found, policies)} == {"host-namespaces"}
