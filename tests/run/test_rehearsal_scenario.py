"""The scenario of every reference fleet."""

from dataclasses import replace
from functools import cache

import pytest

from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.errors import UsageError
from rayhelm.fleet.load import load_fleet
from rayhelm.run.rehearsal.capacity import list_pod_requests
from rayhelm.run.rehearsal.change import mirror_edits, plan_steps
from rayhelm.run.rehearsal.checks import ClusterFacts, list_namespaces, render_objects
from rayhelm.run.rehearsal.external import remove_external
from rayhelm.run.rehearsal.scenario import RehearsalOptions, Scenario, list_releases, select_cluster
from rayhelm.run.rehearsal.without_gpus import StandInSet, build_stand_ins
from rayhelm.run.standin.cluster import StandInCluster

VALUES = charts_dir().parent / "values"
CLUSTERS = [
    (path.parent.name, cluster)
    for path in sorted(VALUES.glob("*/fleet.yaml"))
    for cluster in load_fleet(path).fleet.clusters
]
PLACE = StandInCluster(kuberay="1.6.2", image=RayImage(repository="here.example/ray", tag="cpu", includes_rayhelm=True))
FOUND = ClusterFacts(server="", context="", kuberay="1.6.2", api_servers=(), nodes=())


@cache
def rendered(fleet: str) -> Rendered:
    return render_fleet(VALUES / fleet / "fleet.yaml")


def stand_ins(fleet: Rendered, cluster: str) -> StandInSet:
    return remove_external(build_stand_ins(fleet, PLACE, cluster=cluster))


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_stand_ins_need_only_kinds_that_every_cluster_has(fleet: str, cluster: str) -> None:
    releases = stand_ins(rendered(fleet), cluster).releases
    objects = render_objects(releases)
    kinds = {item["kind"] for each in objects for item in each}
    of_prometheus = {"PodMonitor", "ScrapeConfig", "PrometheusRule", "GrafanaDashboard"}
    assert not kinds & (of_prometheus | {"HTTPRoute", "Ingress", "ScaledObject", "ClusterPolicy", "Certificate"})
    places = {item["metadata"].get("namespace") for each in objects for item in each} - {None}
    assert places <= set(list_namespaces(releases, objects)), "every namespace is in the record"
    services = [release for release in releases if release.chart == "ray-service"]
    assert len([room for each in objects for room in list_pod_requests(each)]) > 2 * len(services)


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_image_edit_replaces_each_service_and_counts_the_largest_twice(fleet: str, cluster: str) -> None:
    old = stand_ins(rendered(fleet), cluster)
    image = {name: values.image.model_copy(update={"tag": "other"}) for name, values in old.services.items()}
    own = {name: values.model_copy(update={"image": image[name]}) for name, values in old.services.items()}
    before, after, edits = mirror_edits(old, replace(old, services=own))
    scenario = Scenario(FOUND, before, after, plan_steps(before, after, edits), [], [])
    does = [step.effect for step in scenario.steps if step.release.chart == "ray-service"]
    assert len(does) == len(before.services)
    assert set(does) <= {"new cluster", "held back"}
    _, _, twice = list_releases(scenario)
    assert bool(twice) is ("new cluster" in does)


def test_every_task_of_the_home_lab_is_rehearsed() -> None:
    tasks = {target.name: target.task for target in build_stand_ins(rendered("homelab"), PLACE, cluster="main").targets}
    assert tasks == {
        "llm": "chat",
        "whisper": "transcribe",
        "tts": "speak",
        "embeddings": "embed",
        "reranker": "rerank",
    }


def test_select_cluster_uses_the_only_cluster() -> None:
    assert select_cluster(rendered("single-gpu"), "") == "main"
    with pytest.raises(UsageError, match="2 clusters"):
        select_cluster(rendered("three-tiers"), "")


def test_stand_ins_have_only_the_selected_services() -> None:
    one = build_stand_ins(rendered("shared-gpus"), PLACE, cluster="main", services=("city-chat",))
    assert [release.name for release in one.releases if release.chart == "ray-service"] == ["city-chat"]
    assert {target.name for target in one.targets} == {"city-chat"}
    assert RehearsalOptions(cluster="main", image="a:b").seconds == 30
