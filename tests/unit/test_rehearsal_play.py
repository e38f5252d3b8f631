"""Every reference fleet as a rehearsal would install it, and what it would have to be refused for."""

from dataclasses import replace
from functools import cache

import pytest

from rayhelm.charts.helm import charts_dir
from rayhelm.errors import FleetError
from rayhelm.rehearsal.change import mirrored, steps
from rayhelm.rehearsal.checks import Found, namespaces_of, objects_of
from rayhelm.rehearsal.outside import on_its_own
from rayhelm.rehearsal.play import Play, Wish, all_of, cluster_of
from rayhelm.rehearsal.room import asked
from rayhelm.rehearsal.without_cards import Cast, cast_of
from rayhelm.render.files import Rendered, render_fleet
from rayhelm.spec.load import load_fleet
from rayhelm.standin.cluster import Place
from rayhelm.values.ray_service.image import Image

VALUES = charts_dir().parent / "values"
CLUSTERS = [
    (path.parent.name, cluster)
    for path in sorted(VALUES.glob("*/fleet.yaml"))
    for cluster in load_fleet(path).fleet.clusters
]
PLACE = Place(kuberay="1.6.2", image=Image(repository="here.example/ray", tag="cpu", rayhelm=True))
FOUND = Found(server="", context="", kuberay="1.6.2", api_servers=(), nodes=())


@cache
def rendered(fleet: str) -> Rendered:
    return render_fleet(VALUES / fleet / "fleet.yaml")


def cast(fleet: Rendered, cluster: str) -> Cast:
    return on_its_own(cast_of(fleet, PLACE, cluster=cluster))


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_a_fleet_is_installed_by_itself_and_needs_only_what_every_cluster_has(fleet: str, cluster: str) -> None:
    releases = cast(rendered(fleet), cluster).releases
    objects = objects_of(releases)
    kinds = {item["kind"] for each in objects for item in each}
    assert not kinds & {"PodMonitor", "HTTPRoute", "Ingress", "ScaledObject", "ClusterPolicy", "Certificate"}
    places = {item["metadata"].get("namespace") for each in objects for item in each} - {None}
    assert places <= set(namespaces_of(releases, objects)), "nothing lands where nobody clears up"
    services = [release for release in releases if release.chart == "ray-service"]
    assert len([room for each in objects for room in asked(each)]) > 2 * len(services)


@pytest.mark.parametrize(("fleet", "cluster"), CLUSTERS)
def test_another_image_of_a_fleet_touches_each_of_its_services_and_one_of_them_is_counted_twice(
    fleet: str, cluster: str
) -> None:
    old = cast(rendered(fleet), cluster)
    image = {name: values.image.model_copy(update={"tag": "other"}) for name, values in old.services.items()}
    own = {name: values.model_copy(update={"image": image[name]}) for name, values in old.services.items()}
    before, after, edits = mirrored(old, replace(old, services=own))
    play = Play(FOUND, before, after, steps(before, after, edits), [], [])
    does = [step.does for step in play.steps if step.release.chart == "ray-service"]
    assert len(does) == len(before.services)
    assert set(does) <= {"new cluster", "held back"}
    _, _, twice = all_of(play)
    assert bool(twice) is ("new cluster" in does)


def test_the_only_cluster_is_the_one_that_is_meant() -> None:
    assert cluster_of(rendered("single-gpu"), "") == "main"
    with pytest.raises(FleetError, match="2 clusters"):
        cluster_of(rendered("three-tiers"), "")


def test_services_that_are_not_wished_for_are_not_there() -> None:
    one = cast_of(rendered("shared-cards"), PLACE, cluster="main", services=("hall",))
    assert [release.name for release in one.releases if release.chart == "ray-service"] == ["hall"]
    assert {target.name for target in one.targets} == {"hall"}
    assert Wish(cluster="main", image="a:b").seconds == 30
