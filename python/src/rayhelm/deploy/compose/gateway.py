"""Build the values of chart `gateway` from a plan: one release per cluster that has models for tenants. Pure."""

from collections.abc import Mapping
from functools import partial

from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.overrides import apply_overrides
from rayhelm.deploy.compose.release_names import GATEWAY
from rayhelm.deploy.compose.remote_gateways import build_remote, build_upstream_tls
from rayhelm.deploy.compose.scraping import build_scraping
from rayhelm.deploy.values.common.network import Peer
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.exposure import (
    Exposure,
    GatewayService,
    HttpRouteExposure,
    IngressExposure,
    ParentRef,
    TlsExposure,
)
from rayhelm.deploy.values.gateway.models import Endpoint, Model, ModelPrefixCache, Operation, Version
from rayhelm.deploy.values.gateway.network import AllowedClient, NetworkPolicy
from rayhelm.deploy.values.gateway.operations import GatewayAutoscaling
from rayhelm.deploy.values.gateway.tenants import GatewayTenant, KeysSecret
from rayhelm.deploy.values.gateway.tracing import GatewayTracing
from rayhelm.deploy.values.platform.classes import PriorityClasses
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import run_all
from rayhelm.facts.tasks import DataPath, get_task
from rayhelm.fleet.gateway import Gateway
from rayhelm.fleet.pools import Cluster
from rayhelm.planner.access.data_paths import find_weakest_data_path
from rayhelm.planner.plan import GatewayPlan, Plan

__all__ = ["RELEASE", "build_gateways", "find_data_path", "list_operations"]

RELEASE = GATEWAY
"""Release name of the gateway of each cluster."""
HTTPS = 443
"""Port of the Service if the gateway itself has TLS."""
OUTSIDE = "outside-the-cluster"
"""Name of the allowed clients of `tls.cidrs`."""


def build_gateways(plan: Plan, values: Mapping[str, RayServiceValues]) -> dict[str, GatewayValues]:
    """Build the values by cluster. `values` are those of the services, by name. Raises FleetError."""
    return run_all({cluster: partial(_build_overridden, cluster, plan, values) for cluster in plan.gateways})


def _build_overridden(cluster: str, plan: Plan, values: Mapping[str, RayServiceValues]) -> GatewayValues:
    built = _build_values(plan.gateways[cluster], plan.declared.clusters[cluster], plan, values)
    return apply_overrides(built, Origins("gateway", RELEASE, cluster, plan))


def _build_values(
    planned: GatewayPlan, cluster: Cluster, plan: Plan, values: Mapping[str, RayServiceValues]
) -> GatewayValues:
    defaults, declared, scraped = GatewayValues(), cluster.gateway, cluster.prometheus
    fixed = declared.replicas if isinstance(declared.replicas, int) else None
    return GatewayValues(
        tenants={name: _build_tenant(name, planned, plan) for name in planned.tenants},
        models={model: _build_model(model, planned, plan, values) for model in planned.models},
        remote_gateways={name: build_remote(name, remote, cluster) for name, remote in planned.remotes.items()},
        upstream_tls=build_upstream_tls(cluster),
        replicas=fixed or defaults.replicas,
        autoscaling=_build_autoscaling(declared),
        priority_class_name=PriorityClasses().gateway.name,
        service=_build_service(declared),
        exposure=_build_exposure(declared),
        network_policy=NetworkPolicy(
            allowed_clients=_build_clients(declared),
            prometheus=Peer(namespace=scraped.namespace) if scraped else defaults.network_policy.prometheus,
        ),
        scraping=build_scraping(scraped),
        tracing=_build_tracing(cluster),
    )


def _build_tenant(name: str, planned: GatewayPlan, plan: Plan) -> GatewayTenant:
    tenant = plan.declared.tenants[name]
    # The others of its models can be in another cluster.
    models = [model for model in tenant.models if model in planned.models]
    reports_usage = any(
        get_task(plan.declared.models[plan.declared.served_by(model)].task).reports_usage for model in models
    )
    return GatewayTenant(
        keys=KeysSecret(secret_name=plan.declared.keys_of(name)),
        models=models,
        requests_per_minute=tenant.requests_per_minute,
        tokens_per_minute=tenant.tokens_per_minute if reports_usage else None,
        concurrency=tenant.concurrency,
        pinned_versions={
            model: version
            for model, version in tenant.pinned_versions.items()
            if version in planned.versions.get(model, {})
        },
        max_output_tokens={
            model: bound for model, bound in tenant.max_output_tokens.items() if model in planned.models
        },
        max_body_bytes={model: bound for model, bound in tenant.max_body_bytes.items() if model in planned.models},
    )


def _build_model(model: str, planned: GatewayPlan, plan: Plan, values: Mapping[str, RayServiceValues]) -> Model:
    versions = planned.versions[model]
    here = [plan.models[each] for version in versions.values() for each in version.models]
    prefix = _find_route_prefix(here[0].application, values[here[0].service]) if here else ""
    return Model(
        task=plan.models[plan.declared.served_by(model)].task,
        data_path=find_data_path(model, plan),
        versions={
            name: Version(
                weight=version.weight,
                route_prefix=prefix,
                endpoints=dict(
                    _build_endpoint(plan.models[each].service, share, plan, values)
                    for each, share in version.models.items()
                ),
            )
            for name, version in planned.versions[model].items()
        },
        prefix_cache=ModelPrefixCache(shared_reason=planned.prefix_caches.get(model, "")),
        aliases=list(plan.declared.models[model].aliases) if model in plan.declared.models else [],
        operations=list_operations(model, plan),
        context_tokens=_find_context(model, plan),
        spill_above=planned.spill_above.get(model, 0),
    )


def find_data_path(name: str, plan: Plan) -> DataPath:
    """Return the data path that all services of a served name have, in any cluster: a gateway may forward requests."""
    served = plan.declared.served_by(name)
    services = (model.service for model in plan.models.values() if model.served_as == served)
    return find_weakest_data_path(services, plan.services)


def _find_context(name: str, plan: Plan) -> int:
    """Return the longest context of the models with a served name, in any cluster. 0: responses have no tokens."""
    served = [model for model in plan.models.values() if model.served_as == plan.declared.served_by(name)]
    return max((model.max_model_len for model in served if get_task(model.task).reports_usage), default=0)


def _build_endpoint(
    service: str, share: int, plan: Plan, values: Mapping[str, RayServiceValues]
) -> tuple[str, Endpoint]:
    namespace, port = plan.services[service].namespace, values[service].serve.port
    tls = bool(values[service].serve.tls.secret_name)
    return service, Endpoint(service=service, namespace=namespace, port=port, tls=tls, weight=share)


def list_operations(model: str, plan: Plan) -> dict[str, Operation]:
    """List the paths of a custom application. The chart has the paths of all other tasks."""
    own = plan.declared.models[plan.declared.served_by(model)].application
    return {path: Operation(method=method) for path, method in own.paths.items()} if own else {}


def _find_route_prefix(name: str, release: RayServiceValues) -> str:
    """Return the path of an application. The application of a model has the same name in every service of the model."""
    own = release.serve.custom_applications.get(name)
    application = own or release.serve.applications[name]
    return application.route_prefix or f"/{name}"


def _build_autoscaling(declared: Gateway) -> GatewayAutoscaling:
    if isinstance(declared.replicas, int):
        return GatewayAutoscaling(kind="None")
    autoscaling = GatewayAutoscaling(target_requests_in_flight=declared.requests_in_flight or 0)
    if declared.replicas is None:
        return autoscaling
    return autoscaling.model_copy(update={"min_replicas": declared.replicas.min, "max_replicas": declared.replicas.max})


def _build_exposure(declared: Gateway) -> Exposure:
    hosts = [declared.host] if declared.host else []
    if declared.ingress:
        ingress = IngressExposure(class_name=declared.ingress.class_name or "", tls_secret=declared.ingress.tls_secret)
        return Exposure(kind="Ingress", hosts=hosts, ingress=ingress, annotations=dict(declared.ingress.annotations))
    if declared.http_route:
        route = declared.http_route
        parent = ParentRef(name=route.gateway, namespace=route.namespace or "", section_name=route.listener or "")
        exposure = HttpRouteExposure(parent=parent, timeouts=route.timeouts)
        return Exposure(kind="HTTPRoute", hosts=hosts, http_route=exposure)
    if declared.tls:
        return Exposure(kind="TLS", hosts=hosts, tls=TlsExposure(secret_names=list(declared.tls.secrets)))
    return Exposure()


def _build_service(declared: Gateway) -> GatewayService:
    if not declared.tls:
        return GatewayService()
    return GatewayService(type=declared.tls.service, port=HTTPS, annotations=dict(declared.tls.annotations))


def _build_clients(declared: Gateway) -> dict[str, AllowedClient]:
    clients = {name: AllowedClient(namespace=name) for name in declared.allowed_clients}
    if declared.tls and declared.tls.cidrs:
        namesake = clients.get(OUTSIDE, AllowedClient())
        clients[OUTSIDE] = namesake.model_copy(update={"cidrs": list(declared.tls.cidrs)})
    return clients


def _build_tracing(cluster: Cluster) -> GatewayTracing:
    """Build the traces of the gateway; off without `tracing`."""
    declared = cluster.tracing
    if not declared:
        return GatewayTracing()
    return GatewayTracing(enabled=True, sampling_ratio=declared.sampling_ratio, client_traces=declared.client_traces)
