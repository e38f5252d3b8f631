"""`podSecurityContext`: a cluster that gives pods their users, as OpenShift does, and what it cannot take away."""

from typing import Any

import pytest

from charts.each_chart import CHARTS, Chart
from charts.kit import HELMS, example
from charts.pod_security import violations
from charts.test_globals import list_pod_specs
from rayhelm.live.probe.jobs import PoolTarget, build_node_job
from shared.fleets import load

PATHS = {
    "ray-service": ["podSecurityContext"],
    "gateway": ["podSecurityContext"],
    "platform": [
        "doctor.podSecurityContext",
        "metrics.adapter.podSecurityContext",
        "probe.podSecurityContext",
    ],
}
WITH_PODS = [chart for chart in CHARTS if chart.name in PATHS]
IDS = ("runAsUser", "runAsGroup", "fsGroup")
FLEET = """\
fleet: openshift
clusters: {main: {apiServer: {cidrs: [10.0.0.1/32]}}}
pools: {gpu: {gpu: L4-24GB, nodes: 1}}
models: {chat: {source: Qwen/Qwen2.5-7B-Instruct, context: 4096, unpinnedReason: a test of users}}
"""


def pods(chart: Chart, ids: dict[str, Any], helm: str = "4") -> list[dict[str, Any]]:
    values = example("everything" if chart.name == "ray-service" else f"{chart.name}/everything")
    for path in PATHS[chart.name]:
        overlay: Any = ids
        for part in reversed(path.split(".")):
            overlay = {part: overlay}
        values = over_keeping_null(values, overlay)
    found = list(list_pod_specs(chart.objects(values, helm)))
    assert found
    return found


def over_keeping_null(base: Any, overlay: Any) -> Any:
    """As `over`, but a null stays, as a person writes it."""
    if not (isinstance(base, dict) and isinstance(overlay, dict)):
        return overlay
    return base | {key: over_keeping_null(base.get(key), value) for key, value in overlay.items()}


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("chart", WITH_PODS, ids=str)
def test_ids_can_be_left_to_the_cluster_and_nothing_else(chart: Chart, helm: str) -> None:
    plain, assigned = pods(chart, {}, helm), pods(chart, dict.fromkeys(IDS), helm)
    for before, after in zip(plain, assigned, strict=True):
        assert set(IDS) <= set(before["securityContext"])
        assert after["securityContext"] == {
            key: value for key, value in before["securityContext"].items() if key not in IDS
        }
        assert after["securityContext"]["runAsNonRoot"] is True
        assert not list(violations({"spec": after}))


@pytest.mark.parametrize("chart", WITH_PODS, ids=str)
def test_ids_of_openshift_can_be_written(chart: Chart) -> None:
    ids = {"runAsUser": 1000650000, "runAsGroup": 0, "fsGroup": 1000650000}
    assert all(spec["securityContext"].items() >= ids.items() for spec in pods(chart, ids))


@pytest.mark.parametrize("chart", WITH_PODS, ids=str)
def test_values_without_ids_are_those_that_the_chart_gets(chart: Chart) -> None:
    from rayhelm.deploy.values.emit import select_changed

    overlay: dict[str, Any] = {}
    for path in PATHS[chart.name]:
        part: Any = dict.fromkeys(IDS)
        for key in reversed(path.split(".")):
            part = {key: part}
        overlay = over_keeping_null(overlay, part)
    values = chart.model.model_validate(over_keeping_null(chart.smallest(), overlay))
    assert over_keeping_null(select_changed(values), overlay) == select_changed(values)


def test_jobs_of_the_probe_leave_the_user_to_the_cluster_when_asked() -> None:
    loaded = load(FLEET)
    pool = loaded.fleet.pools["gpu"]
    target = PoolTarget(
        name="gpu",
        pool=pool,
        gpu=loaded.fleet.facts.gpu("L4-24GB"),
        gpu_name="L4-24GB",
        image="ray:1",
        on_cpu=True,
        assigned_user=True,
    )
    context = build_node_job(target, "n", 1, 60)["spec"]["template"]["spec"]["securityContext"]
    assert "runAsUser" not in context
    assert context["runAsNonRoot"] is True
