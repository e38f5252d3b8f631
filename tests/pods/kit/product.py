"""A reference fleet on the node as a rehearsal installs it, with access for this computer, and a model that its own
tenants may not call."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from charts.kit import over
from pods.kit.cluster import Cluster
from rayhelm.deploy.render.files import Rendered, render_fleet
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.network import AllowedClient
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.run.rehearsal import record
from rayhelm.run.rehearsal.checks import inspect_cluster, list_namespaces, render_objects
from rayhelm.run.rehearsal.cluster_session import READY, ClusterSession, build_namespace
from rayhelm.run.rehearsal.load import NAMESPACE, LoadGenerator, run_load
from rayhelm.run.rehearsal.without_gpus import LOAD_CLIENT, StandInSet, build_stand_ins
from rayhelm.run.standin.cluster import StandInCluster
from testbed.images.__main__ import build
from testbed.node.images import give
from testbed.node.operator import install_operator

__all__ = ["FORBIDDEN", "Product", "product_of", "stand_ins_of"]

FORBIDDEN = "of-others"
"""A model that only the load may call."""


@dataclass
class Product:
    """What runs, and the keys to it."""

    cluster: Cluster
    rendered: Rendered
    session: ClusterSession
    stand_ins: StandInSet
    image: str
    """Of the load."""

    def of(self, chart: str) -> Release:
        """The one release of a chart."""
        (release,) = (release for release in self.stand_ins.releases if release.chart == chart)
        return release

    @property
    def gateway(self) -> str:
        """URL of one pod of the gateway: this computer is let in by address, which a Service's would hide."""
        return f"http://{self.session.list_pods(self.of('gateway'))[0]['status']['podIP']}:8080"

    @contextmanager
    def called(self) -> Iterator[LoadGenerator]:
        """A constant load from a pod, through the gateway's Service, from when every model has answered once."""
        targets = [replace(target, key=self.session.keys[LOAD_CLIENT]) for target in self.stand_ins.targets]
        with run_load(self.session.kubectl, self.image, targets, timeout=READY) as running:
            yield running

    def change(self, release: Release, overlay: Mapping[str, Any]) -> Release:
        """The same release with other values laid over its own."""
        return replace(
            release, values=type(release.values).model_validate(over(select_changed(release.values), overlay))
        )


@contextmanager
def product_of(cluster: Cluster, fleet: Path) -> Iterator[Product]:
    """Installs everything of a fleet in the order of its releases, and removes it: the next test can use the names
    and the memory."""
    session = ClusterSession(cluster.kubectl, cluster.node.home.kubeconfig)
    install_operator(cluster.kubectl)
    rendered, stand_ins, image = stand_ins_of(cluster, fleet)
    made = record.create_record(
        rendered.plan.fleet, stand_ins.releases, list_namespaces(stand_ins.releases, render_objects(stand_ins.releases))
    )
    cluster.kubectl.apply_objects(build_namespace(NAMESPACE))
    record.write(cluster.kubectl, made)
    try:
        session.install_all(stand_ins.releases)
        product = Product(cluster, rendered, session, stand_ins, image)
        with product.called():
            pass  # until its DNS has found a new Service, the gateway answers 503
        yield product
    finally:
        record.remove_all(session, made)


def stand_ins_of(cluster: Cluster, fleet: Path) -> tuple[Rendered, StandInSet, str]:
    """Render a fleet for the node. Also returns the image of Ray."""
    layout = build()
    image, haproxy = (give(cluster.node.home, cluster.pid, layout, tag) for tag in ("cpu", "haproxy"))
    repository, _, tag = image.rpartition(":")
    found = inspect_cluster(cluster.kubectl)
    place = StandInCluster(
        kuberay=found.kuberay,
        image=RayImage.model_validate({"repository": repository, "tag": tag, "includesRayhelm": True}),
        haproxy=haproxy,
        api_servers=found.api_servers,
    )
    rendered = render_fleet(fleet)
    (name,) = rendered.plan.declared.clusters
    stand_ins = build_stand_ins(rendered, place, cluster=name)
    host = f"{cluster.node.network.host}/32"
    opened = tuple(_with_way_in(release, host) for release in stand_ins.releases)
    return rendered, replace(stand_ins, releases=opened), image


def _with_way_in(release: Release, host: str) -> Release:
    values = release.values
    if not isinstance(values, GatewayValues):
        return release
    clients = {**values.network_policy.allowed_clients, "this-computer": AllowedClient(cidrs=[host])}
    values_of_client = values.tenants[LOAD_CLIENT]
    mine = values_of_client.model_copy(update={"models": [*values_of_client.models, FORBIDDEN]})
    opened = {
        "network_policy": values.network_policy.model_copy(update={"allowed_clients": clients}),
        "models": {**values.models, FORBIDDEN: next(iter(values.models.values()))},
        "tenants": {**values.tenants, LOAD_CLIENT: mine},
    }
    return replace(release, values=values.model_copy(update=opened))
