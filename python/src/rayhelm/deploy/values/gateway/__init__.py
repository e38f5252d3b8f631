"""Values of chart `gateway`.

`values.schema.json`, `values.yaml` and the README table are generated from these models. Every key of a section has a
default and is in values.yaml. Entries of maps (`tenants.*`, `models.*`) can have required keys; the chart adds the
defaults of the others.
"""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Text
from rayhelm.deploy.values.common.globals import Globals
from rayhelm.deploy.values.common.labels import Labels, Toleration
from rayhelm.deploy.values.common.pods import ImagePullSecret, PodSettings
from rayhelm.deploy.values.common.release import PodReleaseValues
from rayhelm.deploy.values.common.scraping import Scraping
from rayhelm.deploy.values.common.secrets import ExternalSecret, SecretName
from rayhelm.deploy.values.common.security import PodSecurityContext
from rayhelm.deploy.values.gateway.circuit import Circuit
from rayhelm.deploy.values.gateway.exposure import ClientAddress, Exposure, GatewayService
from rayhelm.deploy.values.gateway.limits import (
    Limits,
    RateLimitHeaders,
    RequestValidation,
    Retries,
    Timeouts,
    UsageHeaders,
)
from rayhelm.deploy.values.gateway.models import Health, Model, ModelId
from rayhelm.deploy.values.gateway.network import NetworkPolicy, Resolvers
from rayhelm.deploy.values.gateway.oidc import Oidc
from rayhelm.deploy.values.gateway.openapi import OpenApi
from rayhelm.deploy.values.gateway.operations import (
    Drain,
    GatewayAutoscaling,
    GatewayDisruptionBudget,
    GatewayResources,
    GatewayServiceAccount,
)
from rayhelm.deploy.values.gateway.pod import HaproxyImage, Listen
from rayhelm.deploy.values.gateway.prefix_cache import PrefixCache
from rayhelm.deploy.values.gateway.remote_gateways import RemoteGateway, UpstreamTls
from rayhelm.deploy.values.gateway.tenants import GatewayTenant
from rayhelm.deploy.values.gateway.tracing import GatewayTracing

__all__ = ["GatewayValues"]


class GatewayValues(PodReleaseValues, PodSettings):
    """HAProxy in front of RayServices: API keys, allowed models, limits, routing, versions and an access log."""

    global_: Annotated[Globals, Field(alias="global")] = Globals()
    """Globals of a parent chart: the registry of the image, and its credentials."""
    name_override: Annotated[str, Field(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of all objects; empty: the name of the release. At most 46 characters; it is never truncated."""
    cluster_domain: str = "cluster.local"
    """DNS domain of the cluster."""
    labels: dict[str, Text] = {}
    """Additional labels of the Deployment."""
    annotations: dict[str, Text] = {}
    """Annotations of the Deployment."""
    tenants: dict[Name, GatewayTenant] = {}
    """Tenants by name: API keys, allowed models and limits."""
    models: dict[ModelId, Model] = {}
    """Models by name. Clients send this name in the field `model`, and every version must serve it under this name."""
    remote_gateways: dict[Name, RemoteGateway] = {}
    """Gateways of other clusters that serve models of `models`, by name. They must have the same tenants. The limits of
    a tenant count at the gateway that it calls."""
    upstream_tls: UpstreamTls = UpstreamTls()
    """TLS from the gateway to endpoints with `tls: true`."""
    external_secrets: dict[SecretName, ExternalSecret] = {}
    """Secrets of the gateway that the External Secrets operator creates, by name: API keys of tenants, keys of remote
    gateways, certificates. Needs its CRDs (`external-secrets.io/v1`)."""
    prefix_cache: PrefixCache = PrefixCache()
    """vLLM's prefix cache, for models that several tenants may call."""
    oidc: Oidc = Oidc()
    """JSON Web Tokens of an identity provider (OpenID Connect), beside API keys."""
    openapi: OpenApi = OpenApi()
    """The OpenAPI document of the gateway, at `/openapi.json` and `/docs`."""
    limits: Limits = Limits()
    """Maximum sizes."""
    rate_limit_headers: RateLimitHeaders = RateLimitHeaders()
    """Response headers with the limits of the tenant."""
    usage_headers: UsageHeaders = UsageHeaders()
    """Response headers with the tokens of the response."""
    validation: RequestValidation = RequestValidation()
    """Checks of requests."""
    timeouts: Timeouts = Timeouts()
    """Timeouts, in seconds."""
    retries: Retries = Retries()
    """Retries of requests: one, on another endpoint if there is one."""
    circuit: Circuit = Circuit()
    """Stops a request that ends its servers."""
    health: Health = Health()
    """Health checks of the endpoints."""
    listen: Listen = Listen()
    """Address and ports of HAProxy."""
    image: HaproxyImage = HaproxyImage()
    """Image of HAProxy."""
    resources: GatewayResources = GatewayResources()
    """Resources of a pod: limits, and requests that are the limits by default."""
    replicas: Annotated[int, Field(ge=1)] = 2
    """Number of pods with `autoscaling.kind: None`. The limits of tenants are divided by it."""
    autoscaling: GatewayAutoscaling = GatewayAutoscaling()
    """Autoscaling of the pods."""
    drain: Drain = Drain()
    """Shutdown of a pod."""
    image_pull_secrets: list[ImagePullSecret] = []
    """Secrets with registry credentials."""
    pod_security_context: PodSecurityContext = PodSecurityContext(run_as_user=99, run_as_group=99, fs_group=99)
    """User and groups of the pods."""
    node_selector: Labels = {}
    """Labels of the nodes. Keep the gateway off GPU nodes."""
    tolerations: list[Toleration] = []
    """Tolerations of the pods."""
    priority_class_name: str = ""
    """PriorityClass of the pods. Without the gateway no model is reachable."""
    node_spread: Literal["Preferred", "Required"] = "Preferred"
    """Spread of the pods over nodes. `Required`: no node gets two pods more than another. `Preferred`: if possible. The
    pods are spread over zones if possible, too."""
    service: GatewayService = GatewayService()
    """Service of the gateway."""
    client_address: ClientAddress = ClientAddress()
    """Address of the client behind a load balancer."""
    exposure: Exposure = Exposure()
    """Exposure outside the cluster, with TLS."""
    network_policy: NetworkPolicy = NetworkPolicy()
    """NetworkPolicy of the pods."""
    resolvers: Resolvers = Resolvers()
    """DNS lookups of endpoints."""
    scraping: Scraping = Scraping()
    """How Prometheus finds the pods."""
    tracing: GatewayTracing = GatewayTracing()
    """Traces of requests."""
    pod_disruption_budget: GatewayDisruptionBudget = GatewayDisruptionBudget()
    """PodDisruptionBudget of the pods."""
    service_account: GatewayServiceAccount = GatewayServiceAccount()
    """ServiceAccount of the pods."""
