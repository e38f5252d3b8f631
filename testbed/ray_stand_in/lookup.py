"""Find the head that a URL addresses, or the reason why none answers."""

from collections import Counter
from dataclasses import dataclass

from testbed.ray_stand_in.objects import Cluster, Objects, Pod

__all__ = ["Dead", "Head", "head_of_ip", "head_of_service", "lacking"]


class Dead(Exception):
    """No process listens at the address; the message has the reason."""


@dataclass(frozen=True)
class Head:
    """A running head."""

    cluster: Cluster
    pod: Pod

    @property
    def life(self) -> str:
        """Id of the state of Ray: of the running container, or of the RayCluster with GCS fault tolerance."""
        return self.cluster.uid if self.cluster.remembers else f"{self.pod.uid}/{self.pod.restarts}"


def head_of_service(objects: Objects, host: str, domain: str) -> Head:
    """Return the head of `<head Service>.<namespace>.svc.<domain>`. Raises Dead."""
    service, _, rest = host.partition(".")
    namespace = rest.removesuffix(f".svc.{domain}")
    if not service or not namespace or f"{namespace}.svc.{domain}" != rest or "." in namespace:
        raise Dead(f"{host or 'an empty host'} is neither the Service of a head nor the IP of one")
    for cluster in objects.clusters():
        if (cluster.namespace, cluster.head_service) == (namespace, service):
            return Head(cluster, _find_head_pod(objects, cluster))
    raise Dead(f"no RayCluster of namespace {namespace} has a head Service {service}")


def head_of_ip(objects: Objects, ip: str) -> Head:
    """Return the head whose pod has this IP. Raises Dead."""
    holders = [pod for pod in objects.pods() if pod.ip == ip and pod.ready]
    heads = [pod for pod in holders if pod.is_head]
    if not heads:
        raise Dead(f"no head that is Running and Ready has the IP {ip}" + (": a worker has it" if holders else ""))
    if len(holders) > 1:
        raise Dead(f"{len(holders)} pods have the IP {ip}: {', '.join(sorted(pod.name for pod in holders))}")
    for cluster in objects.clusters():
        if cluster.uid == heads[0].owner:
            return Head(cluster, heads[0])
    raise Dead(f"the RayCluster of pod {heads[0].name} does not exist")


def lacking(objects: Objects, cluster: Cluster) -> dict[str, int]:
    """Return the number of Ready pods that are missing from the minimum, by worker group, without complete groups."""
    ready = Counter(pod.group for pod in objects.pods() if pod.owner == cluster.uid and pod.ready and not pod.is_head)
    return {group: least - ready[group] for group, least in cluster.minimum.items() if ready[group] < least}


def _find_head_pod(objects: Objects, cluster: Cluster) -> Pod:
    heads = [pod for pod in objects.pods() if pod.owner == cluster.uid and pod.is_head]
    ready = [pod for pod in heads if pod.ready]
    if len(ready) == 1:
        return ready[0]
    if ready:
        raise Dead(f"the RayCluster {cluster.name} has {len(ready)} heads that are Running and Ready")
    raise Dead(f"the head of the RayCluster {cluster.name} is not {'Running and Ready' if heads else 'there'}")
