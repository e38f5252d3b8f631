"""Who may reach whom: everything not named here is closed."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.common.base import Cidr, Name, Port, Values
from rayhelm.values.common.labels import Namespace
from rayhelm.values.common.network import Dns, Peer

__all__ = ["Alias", "RayNetworkPolicy"]


class ApiServerEgress(Values):
    """The Kubernetes API, which the autoscaler calls."""

    cidrs: list[Cidr] = []
    """Its addresses; they cannot be known at render. Find them: `kubectl get endpointslices -n default
    -l kubernetes.io/service-name=kubernetes`."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443, 6443]
    """Its ports: some networks see the Service's one, some the endpoint's."""


class RedisEgress(Values):
    """The Redis of `gcsFaultTolerance`; only the head calls it."""

    peer: Peer = Peer()
    """Redis in this cluster."""
    cidrs: list[Cidr] = []
    """Redis elsewhere."""
    port: Port = 6379
    """Its port."""


class PrometheusEgress(Values):
    """Prometheus' own API; only the head calls it, and only where a model's autoscaling asks it."""

    peer: Peer = Peer(namespace="monitoring")
    """Its pods."""
    cidrs: list[Cidr] = []
    """Prometheus elsewhere."""
    port: Port = 9090
    """Port of its pods: policies see that one, not the Service's."""


class HubEgress(Values):
    """Where weights come from; only the download Job calls it, and servers that are not offline."""

    peer: Peer = Peer()
    """A mirror in this cluster (`weights.download.endpoint`): some networks take addresses of pods for none."""
    cidrs: list[Cidr] = ["0.0.0.0/0"]
    """Addresses: a hub behind a content network has no fixed ones. Empty where only the peer is meant."""
    except_: Annotated[list[Cidr], Field(alias="except")] = []
    """Addresses taken out of each of these, so they must lie inside: `169.254.169.254/32`, where clouds hand out
    credentials, or your own networks."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443]
    """Ports; those of its pods, where it has some: policies see these, not the Service's."""


class Egress(Values):
    """Something else that workers may reach: a bucket, a proxy."""

    cidrs: Annotated[list[Cidr], Field(min_length=1)]
    """Its addresses."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443]
    """Its ports."""


class RayNetworkPolicy(Values):
    """NetworkPolicies around the pods of this release: deny by default, then these."""

    enabled: bool = True
    """Off: everybody in the cluster reaches an endpoint that has no authentication; say why below."""
    reason: str = ""
    """Why there are none; required when they are off."""
    api_server: ApiServerEgress = ApiServerEgress()
    """The Kubernetes API, for the autoscaler."""
    operator: Peer = Peer(namespace="kuberay-system")
    """The KubeRay operator, which calls the head's dashboard. The namespace is a guess: check where yours runs."""
    allowed_gateways: dict[Name, Peer] = {}
    """Who may call the Serve port, by name: gateways, not users."""
    prometheus: Peer = Peer(namespace="monitoring")
    """Who may scrape the metrics ports."""
    prometheus_api: PrometheusEgress = PrometheusEgress()
    """Where the head asks for metrics, with the policy `EngineQueue`."""
    dns: Dns = Dns()
    """The cluster's DNS."""
    redis: RedisEgress = RedisEgress()
    """The Redis of `gcsFaultTolerance`."""
    hub: HubEgress = HubEgress()
    """Where weights come from."""
    egress: dict[Name, Egress] = {}
    """What else workers may reach, by name."""


class Alias(Values):
    """An ExternalName Service under which other systems find the endpoint; clients name the port themselves."""

    namespace: Namespace | None = None
    """Namespace of the alias; the release's own when left out."""
