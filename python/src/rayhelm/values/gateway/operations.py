"""Running and watching it: how many pods, where, how they end, and who scrapes them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.values.ray_service.base import Name, Quantity, Text, Values

__all__ = ["Autoscaling", "Drain", "PodDisruptionBudget", "PodMonitor", "Resources", "Scheduling", "ServiceAccount"]

Count = Annotated[int, Field(ge=1)]


class Resources(Values):
    """Requests, and limits of the same size."""

    cpu: Quantity = "2"
    """CPU cores; HAProxy starts as many threads, at least one."""
    memory: Quantity = "2Gi"
    """Memory; it has to hold a largest body for each connection, which `limits` decides."""


class Keda(Values):
    """KEDA asks Prometheus for the requests in flight."""

    server_address: str = ""
    """URL of Prometheus; required with `kind: KEDA`."""
    authentication_ref: Name | Literal[""] = ""
    """TriggerAuthentication with its credentials; empty for none."""


class Autoscaling(Values):
    """How many pods."""

    kind: Literal["HPA", "KEDA", "None"] = "HPA"
    """`HPA` scales on CPU, and on requests in flight where their metric is served; `KEDA` on requests in flight."""
    min_replicas: Count = 2
    """Fewest pods; limits of tenants are shared out over as many."""
    max_replicas: Count = 6
    """Most pods."""
    target_cpu_percent: Annotated[int, Field(ge=0, le=100)] = 70
    """CPU that the HPA aims at, percent of `resources.cpu`; 0 for none. Where no metrics server tells it, an HPA adds
    pods for requests in flight, and never ends one."""
    target_requests_in_flight: Annotated[int, Field(ge=0)] = 0
    """Requests in flight per pod that the HPA or KEDA aims at; 0 for none. An HPA reads the pods' metric
    `haproxy_requests_in_flight`, for which the chart `platform` has the Prometheus adapter's rule."""
    scale_down_seconds: Annotated[int, Field(ge=0, le=3600)] = 300
    """Seconds of less load before a pod is ended."""
    keda: Keda = Keda()
    """With `kind: KEDA`."""


class Drain(Values):
    """The end of a pod: it stays for a moment, takes nothing new, and ends when its last answer does."""

    delay_seconds: Annotated[int, Field(ge=0, le=600)] = 10
    """Seconds in which it still takes connections: others learn late that it goes."""
    seconds: Annotated[int, Field(ge=1)] = 1320
    """Seconds that the last answers may take; not below `timeouts.serverSeconds`."""


class Scheduling(Values):
    """Where the pods run: spread over nodes and zones."""

    node_selector: dict[str, Text] = {}
    """Labels of the nodes; keep it off GPU nodes."""
    tolerations: list[dict[str, Any]] = []
    """Tolerations, as Kubernetes spells them."""
    priority_class_name: str = ""
    """Kubernetes priority: without the gateway nothing answers."""
    spread: Literal["Preferred", "Required"] = "Preferred"
    """Whether pods of one node are avoided or refused."""


class PodMonitor(Values):
    """Scraping by the Prometheus operator; needs its CRDs."""

    enabled: bool = False
    """On where the CRD `podmonitors.monitoring.coreos.com` is installed."""
    labels: dict[str, Text] = {}
    """Labels by which your Prometheus finds it."""
    interval: Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m)$")] = "15s"
    """Time between scrapes."""


class PodDisruptionBudget(Values):
    """Budget for drains."""

    enabled: bool = True
    """Off: a drain may take every pod at once."""
    max_unavailable: Count = 1
    """Pods that a drain may take at once."""


class ServiceAccount(Values):
    """The identity of the pods; it has no token and no rights."""

    create: bool = True
    """Off: the account named below is there already."""
    name: Name | Literal[""] = ""
    """Name; empty for the release's."""
    annotations: dict[str, Text] = {}
    """Annotations."""
