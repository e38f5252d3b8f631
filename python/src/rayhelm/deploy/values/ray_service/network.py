"""NetworkPolicies of the pods. Traffic that no key here allows is denied."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Cidr, Name, Port, Values
from rayhelm.deploy.values.common.labels import Namespace
from rayhelm.deploy.values.common.network import ApiServerEgress, Dns, Peer, PrometheusEgress
from rayhelm.facts.versions import get_kuberay_namespace

__all__ = ["Alias", "BucketEgress", "HubEgress", "RayNetworkPolicy", "ServiceApiServer"]


class ServiceApiServer(ApiServerEgress):
    """Kubernetes API, which Ray's autoscaler calls."""

    lookup: bool = False
    """Read addresses and ports from the cluster if `cidrs` is empty: `helm install` and `helm upgrade` add those of the
    EndpointSlices of Service `kubernetes` in `default`. `helm template` and Argo CD cannot read them, and refuse. On in
    chart `quickstart`."""


class RedisEgress(Values):
    """Redis of `gcsFaultTolerance`. Only the head calls it."""

    peer: Peer = Peer()
    """Pods of a Redis in this cluster."""
    cidrs: list[Cidr] = []
    """CIDRs of a Redis outside this cluster."""
    port: Port = 6379
    """Port of Redis."""


class TracingEgress(Values):
    """OpenTelemetry collector of `tracing.endpoint`. Head and workers send it traces."""

    peer: Peer = Peer()
    """Pods of a collector in this cluster."""
    cidrs: list[Cidr] = []
    """CIDRs of a collector outside this cluster."""
    port: Port = 4317
    """Port of the collector's pods. Network policies check the port of the pod, not of the Service."""


class HubEgress(Values):
    """Model hub. Only the download Job calls it, and servers when `weights.offline` is off."""

    peer: Peer = Peer()
    """Pods of a mirror in this cluster (`weights.download.endpoint`). Some network plugins do not match pods by
    CIDR."""
    cidrs: list[Cidr] = ["0.0.0.0/0"]
    """CIDRs of the hub. The default allows all, because huggingface.co has no fixed addresses. Empty to allow only
    `peer`."""
    except_: Annotated[list[Cidr], Field(alias="except")] = []
    """CIDRs excluded from each of `cidrs`, inside of which they must be: `169.254.169.254/32` (cloud credentials), or
    your own networks."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443]
    """Ports of the hub. For pods, the port of the pod and not of the Service."""


class BucketEgress(HubEgress):
    """Store of `weights.download.bucket`. Only the download Job calls it."""

    peer: Peer = Peer()
    """Pods of a store in this cluster. Some network plugins do not match pods by CIDR."""
    cidrs: list[Cidr] = []
    """CIDRs of the store: `0.0.0.0/0` for Amazon S3, which has no fixed addresses. If no model is on the hub, set
    `networkPolicy.hub.cidrs` to `[]`."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443]
    """Ports of the store. For pods, the port of the pod and not of the Service."""


class Egress(Values):
    """Other allowed egress of workers: a bucket, a proxy."""

    cidrs: Annotated[list[Cidr], Field(min_length=1)]
    """CIDRs of the target."""
    ports: Annotated[list[Port], Field(min_length=1)] = [443]
    """Ports of the target."""


class RayNetworkPolicy(Values):
    """NetworkPolicies of the pods of this release: deny by default, then allow what is listed here."""

    enabled: bool = True
    """Create NetworkPolicies. When off, every pod in the cluster can call the endpoint, which has no authentication,
    and `reason` is required."""
    reason: str = ""
    """Reason why there are none. Required when `enabled` is off."""
    api_server: ServiceApiServer = ServiceApiServer()
    """Kubernetes API, for the autoscaler."""
    operator: Peer = Peer(
        namespace=get_kuberay_namespace(), pod_labels={"app.kubernetes.io/component": "kuberay-operator"}
    )
    """KubeRay operator, which calls the head's dashboard. Check that namespace and labels are those of your operator.
    KubeRay's chart sets this label, also with `nameOverride`; only `componentOverride` changes it."""
    allowed_gateways: dict[Name, Peer] = {}
    """Pods that may call the Serve port, by a name of your choice: gateways, not users."""
    prometheus: Peer = Peer(namespace="monitoring")
    """Prometheus pods that may scrape the metrics ports."""
    prometheus_api: PrometheusEgress = PrometheusEgress()
    """Prometheus API that the head queries for the autoscaling policy `EngineQueue`."""
    tracing: TracingEgress = TracingEgress()
    """Collector that receives traces, with `tracing.enabled`."""
    dns: Dns = Dns()
    """DNS of the cluster."""
    redis: RedisEgress = RedisEgress()
    """Redis of `gcsFaultTolerance`."""
    hub: HubEgress = HubEgress()
    """Model hub."""
    bucket: BucketEgress = BucketEgress()
    """Store of `weights.download.bucket`."""
    egress: dict[Name, Egress] = {}
    """Other allowed egress of workers, by a name of your choice."""


class Alias(Values):
    """Service of type ExternalName with another name for the endpoint. Clients still use the port of the endpoint."""

    namespace: Namespace | None = None
    """Namespace of the alias. Namespace of the release when absent."""
