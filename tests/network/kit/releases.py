"""Worlds of the reference fleets, and of single releases with values of a test."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from charts.kit import Object, example, over
from network.kit.world import World, world_of
from rayhelm.deploy.charts.helm import charts_dir, template
from rayhelm.deploy.charts.models import CHARTS
from rayhelm.deploy.network import NetworkRelease, to_network_release
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed

__all__ = ["FLEETS", "RELEASES", "Fleet", "fleet_world", "render_alone", "render_one", "render_release"]

VALUES = charts_dir().parent / "values"


class Fleet(NamedTuple):
    """One cluster of a reference fleet."""

    name: str
    cluster: str

    def __str__(self) -> str:
        return "-".join(self)


@cache
def rendered(fleet: str) -> Rendered:
    return render_fleet(VALUES / fleet / "fleet.yaml")


FLEETS = [
    Fleet(path.parent.name, cluster)
    for path in sorted(VALUES.glob("*/fleet.yaml"))
    for cluster in rendered(path.parent.name).plan.declared.clusters
]


RELEASES = {
    f"{fleet}: {release.file}": release
    for fleet in dict.fromkeys(fleet.name for fleet in FLEETS)
    for release in rendered(fleet).releases
    if to_network_release(release)
}
"""Every release that makes pods, by its fleet and the file of its values."""


@cache
def fleet_world(fleet: Fleet) -> World:
    """Render all releases of a cluster from the committed values."""
    releases = [release for release in rendered(fleet.name).releases if release.cluster == fleet.cluster]
    return world_of(
        [(network_release, objects) for release in releases for network_release, objects in render_release(release)]
    )


def render_alone(release: Release) -> World:
    """Render one release only: no policy isolates the peers that its values name."""
    return world_of(render_release(release))


def render_release(release: Release) -> list[tuple[NetworkRelease, list[Object]]]:
    """Render a release with its objects; empty for one without pods, which must have no policies either."""
    objects = template(
        release.chart, release.name, release.namespace, select_changed(release.values), kube_version=release.kubernetes
    )
    if network_release := to_network_release(release):
        return [(network_release, objects)]
    assert "NetworkPolicy" not in {item["kind"] for item in objects}, f"chart {release.chart} has no flows"
    return []


def render_one(
    chart: str,
    overlay: Mapping[str, Any] | None = None,
    *,
    base: str = "",
    name: str = "chat",
    namespace: str = "models",
) -> tuple[NetworkRelease, list[Object]]:
    """Render one release with an example's values and an overlay."""
    folder = "" if chart == "ray-service" else f"{chart}/"
    values = over(example(base or f"{folder}minimal"), overlay or {})
    model = CHARTS[chart].model_validate(values)
    release = Release(chart, name, namespace, "main", model, "", "", "1.36.0")
    ((network_release, objects),) = render_release(release)
    return network_release, objects
