"""Values of the chart `gateway`: the one door in front of the RayServices, with keys, limits, routes and versions.

The one place where they are typed: `values.schema.json`, `values.yaml` and the README table are written from here.
A key of a section always has a default and so stands in values.yaml; entries of maps (`tenants.*`, `models.*`) have
required keys, and the chart completes the others from the same defaults.
"""

from typing import Annotated, Any

from pydantic import Field

from rayhelm.values.gateway.exposure import Exposure, Service
from rayhelm.values.gateway.limits import Limits, Retries, Timeouts
from rayhelm.values.gateway.models import Health, Model, ModelId
from rayhelm.values.gateway.network import NetworkPolicy, Resolvers
from rayhelm.values.gateway.operations import (
    Autoscaling,
    Drain,
    PodDisruptionBudget,
    PodMonitor,
    Resources,
    Scheduling,
    ServiceAccount,
)
from rayhelm.values.gateway.pod import Image, Listen
from rayhelm.values.gateway.tenants import Tenant
from rayhelm.values.ray_service.base import Name, Text, Values

__all__ = ["GatewayValues"]


class GatewayValues(Values):
    """HAProxy as the one door: keys, allow-lists, limits, routes, versions, and a log that holds no prompt."""

    global_: Annotated[dict[str, Any], Field(alias="global")] = {}
    """Helm hands a parent chart's globals down here; this chart reads none of them."""
    name_override: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of everything that is made; empty for the release's. At most 46 characters, and never cut."""
    cluster_domain: str = "cluster.local"
    """DNS domain of the cluster, for the names of upstream Services."""
    labels: dict[str, Text] = {}
    """Further labels of the Deployment."""
    annotations: dict[str, Text] = {}
    """Annotations of the Deployment."""
    tenants: dict[Name, Tenant] = {}
    """Who may call, by name: keys, models and limits of each."""
    models: dict[ModelId, Model] = {}
    """What can be called, by the `model` that clients name; every version has to serve it under this name."""
    limits: Limits = Limits()
    """Sizes."""
    timeouts: Timeouts = Timeouts()
    """Times."""
    retries: Retries = Retries()
    """What is tried again."""
    health: Health = Health()
    """How a lost upstream is found."""
    listen: Listen = Listen()
    """Where HAProxy listens."""
    image: Image = Image()
    """The image with HAProxy."""
    resources: Resources = Resources()
    """Resources of a pod; HAProxy starts a thread for each CPU."""
    replicas: Annotated[int, Field(ge=1)] = 2
    """Pods, where `autoscaling.kind` is None. Each counts limits for itself, so every tenant's limit is shared out."""
    autoscaling: Autoscaling = Autoscaling()
    """How many pods."""
    drain: Drain = Drain()
    """What a pod does when it has to go."""
    scheduling: Scheduling = Scheduling()
    """Where the pods run."""
    service: Service = Service()
    """The Service in front of the pods."""
    exposure: Exposure = Exposure()
    """The way in from outside of the cluster, with TLS."""
    network_policy: NetworkPolicy = NetworkPolicy()
    """Who may reach whom."""
    resolvers: Resolvers = Resolvers()
    """The DNS that HAProxy asks while it runs."""
    pod_monitor: PodMonitor = PodMonitor()
    """Scraping."""
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    """Budget for drains."""
    service_account: ServiceAccount = ServiceAccount()
    """The identity of the pods."""
