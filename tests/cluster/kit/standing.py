"""A reference fleet with all of its releases in one cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from charts.kit import over
from cluster.kit.cluster import Cluster, Object
from cluster.kit.fleets import Fleet
from cluster.kit.helm import Helm
from cluster.kit.references import stand_for
from cluster.kit.wait import eventually
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.emit import select_changed

__all__ = ["Standing", "install_fleet"]


class Standing(NamedTuple):
    """A fleet with all of its releases in one cluster, Ready."""

    fleet: Fleet
    cluster: Cluster
    helm: Helm

    def releases(self, chart: str) -> list[Release]:
        return [one for one in self.fleet.rendered.releases if (one.chart, one.cluster) == (chart, self.fleet.cluster)]

    def install(self, release: Release, edit: dict[str, Any] | None = None) -> None:
        values: dict[str, Any] = select_changed(release.values)
        if release.chart == "ray-service":
            values = over(self.fleet.values(release.name, kuberay=self.cluster.place.kuberay), edit or {})
        # The classes that services name are there for other tests too.
        options = ("--take-ownership",) if release.chart == "platform" else ()
        self.helm.install(release.chart, release.name, release.namespace, values, *options)

    def ray_clusters(self, service: Release) -> list[Object]:
        return self.cluster.all("RayCluster", service.namespace, {"ray.io/originated-from-cr-name": service.name})

    def quota(self, tenant: Release) -> Object:
        """Status of the ResourceQuota that counts the tenant's GPUs."""
        namespace = self.fleet.rendered.tenants[tenant.cluster, tenant.name].namespace.name or tenant.name
        status: Object = self.cluster.one("ResourceQuota", tenant.name, namespace)["status"]
        return status


@contextmanager
def install_fleet(fleet: Fleet, cluster: Cluster) -> Iterator[Standing]:
    """Install all releases of a fleet, and wait until its services are Ready. Its machines are there."""
    here = Standing(fleet, cluster, Helm.of_major("4", cluster.place.kubeconfig))
    charts = ("platform", "tenant", "ray-service", "gateway")
    platforms, tenants, services, gateways = (here.releases(chart) for chart in charts)
    owned = {service.namespace for service in services} - {"models"}
    with ExitStack() as stack:
        aliases = {alias.namespace for values in fleet.rendered.values.values() for alias in values.aliases.values()}
        others = {release.namespace for release in (*platforms, *tenants, *services, *gateways)} - owned
        others |= {"gpu-operator"}
        for namespace in sorted({name for name in others | aliases if name}):
            stack.enter_context(cluster.namespace(name=namespace))
        # The platforms goes last: the pods that empty Redis name its classes.
        for release in platforms:
            here.install(release)
            stack.callback(here.helm.uninstall, release.name, release.namespace)
        for namespace in owned:
            stack.callback(_end, cluster, namespace)
        for release in tenants:
            here.install(release)
        for release in (*services, *gateways):
            if objects := stand_for(select_changed(release.values)):
                cluster.apply(*objects, namespace=release.namespace)
            here.install(release)
        for release in services:
            cluster.becomes_ready(release.name, release.namespace)
        yield here
    # Another fleet has tenants of the same names.
    gone = owned | others | aliases
    eventually(lambda: not [name for name in gone if cluster.find("Namespace", name)], f"{gone} being gone")


def _end(cluster: Cluster, namespace: str) -> None:
    """The namespace of a tenant. KubeRay empties Redis by a Job, which a namespace that goes would refuse."""
    cluster.kubectl("delete", "rayservices", "--all", f"--namespace={namespace}", "--wait=false")
    eventually(lambda: not cluster.all("RayCluster", namespace), f"the services of {namespace} being gone")
    cluster.delete("namespace", namespace)
