"""Values of the chart `ray-service`, one release for each service of a plan."""

from functools import partial

from rayhelm.deploy.compose.applications import build_application, build_custom_application
from rayhelm.deploy.compose.included import find_missing_for_adapters
from rayhelm.deploy.compose.node_fit import find_oversized_pods
from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.overrides import apply_overrides
from rayhelm.deploy.compose.pool_images import find_wrong_images
from rayhelm.deploy.compose.redis import find_redis, find_shared_redis
from rayhelm.deploy.compose.scaling import build_prometheus_egress, build_prometheus_source, find_missing_for_policies
from rayhelm.deploy.compose.scraping import build_scraping
from rayhelm.deploy.compose.tracing import build_tracing, build_tracing_egress, find_missing_for_tracing
from rayhelm.deploy.compose.weights import (
    build_bucket_egress,
    build_hub_egress,
    build_weights,
    find_missing_for_weights,
)
from rayhelm.deploy.compose.worker_groups import (
    build_worker_groups,
    find_ingress_group,
    name_groups_by_model,
)
from rayhelm.deploy.values.common.network import Peer
from rayhelm.deploy.values.platform.classes import PriorityClasses
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.ray_service.cluster import (
    Auth,
    GcsFaultTolerance,
    KubeRay,
    Ray,
    RayAutoscaler,
    SecretKeyRef,
    Upgrade,
)
from rayhelm.deploy.values.ray_service.groups import HeadPod
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.deploy.values.ray_service.logs import PodLogs, StdoutLogs
from rayhelm.deploy.values.ray_service.network import Alias, RayNetworkPolicy, RedisEgress, ServiceApiServer
from rayhelm.deploy.values.ray_service.serve import Logging, ProxyTls, Serve
from rayhelm.errors import Diagnostics, Fix, FleetError, Problem, run_all
from rayhelm.facts.tasks import get_task
from rayhelm.facts.versions import versions
from rayhelm.fleet.pools import Cluster
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.redis import Redis
from rayhelm.fleet.tenants import Aliases
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["build_ray_service_values"]

GATEWAY_PODS = {"rayhelm.dev/gateway": "gateway"}
"""Pod labels of the release `gateway`."""


def build_ray_service_values(plan: Plan) -> dict[str, RayServiceValues]:
    """Build the values by service. Raises FleetError if the fleet lacks a value that has no default."""
    found = Diagnostics()
    found.add((*_find_missing(plan), *find_wrong_images(plan)))
    values = found.run(lambda: run_all({name: partial(_build_overridden, name, plan) for name in plan.services}))
    found.check()
    return values or {}


def _build_overridden(service: str, plan: Plan) -> RayServiceValues:
    values = _build_values(service, plan)
    values = apply_overrides(values, Origins("ray-service", service, plan.services[service].cluster, plan))
    if problems := list(find_oversized_pods(values, service, plan)):
        raise FleetError(problems)
    return values


def _build_values(service: str, plan: Plan) -> RayServiceValues:
    planned, models = plan.services[service], plan.of_service(service)
    cluster = plan.declared.clusters[planned.cluster]
    declared = plan.declared.services.get(service)
    aliases = declared.aliases if declared else None
    stages = name_groups_by_model(models, plan)
    groups = build_worker_groups(planned.workers, models, plan)
    ingress_group = find_ingress_group(planned.workers)
    usual = RayNetworkPolicy()
    return RayServiceValues(
        tenant=planned.tenant or "",
        kuberay=KubeRay(version=cluster.kuberay),
        ray=Ray(version=(cluster.image.ray if cluster.image else None) or versions().ray),
        image=_build_image(cluster),
        auth=Auth(secret_name=(declared.auth_secret if declared else None) or ""),
        upgrade=Upgrade(strategy=planned.upgrade),
        serve=Serve(
            data_path=planned.data_path,
            applications={
                one.application: build_application(one, stages[one.model], ingress_group)
                for one in models
                if not _is_custom(one)
            },
            tls=ProxyTls(secret_name=f"{service}-serve-tls" if cluster.serve_tls else ""),
            logging=Logging(access_log=cluster.logs.requests),
            prometheus=build_prometheus_source(models, cluster),
            custom_applications={
                one.application: build_custom_application(
                    one,
                    plan.resolved.checkpoints[one.model],
                    plan.declared.models[one.model].application,
                    stages[one.model],
                )
                for one in models
                if _is_custom(one)
            },
        ),
        # With a fixed number of workers there is nothing to scale, and no pod gets a token of the API server.
        autoscaler=RayAutoscaler(
            enabled=any(group.min_replicas < group.max_replicas for group in groups.values()),
        ),
        head=HeadPod(
            priority_class_name=PriorityClasses().head.name,
        ),
        worker_groups=groups,
        gcs_fault_tolerance=_build_fault_tolerance(find_redis(service, plan)),
        weights=build_weights(models, cluster, planned.claim),
        network_policy=RayNetworkPolicy(
            api_server=ServiceApiServer(cidrs=list(cluster.api_server.cidrs)),
            operator=Peer(namespace=cluster.kuberay_operator.namespace, pod_labels=usual.operator.pod_labels),
            allowed_gateways=_build_allowed_gateways(cluster, aliases, ours=planned.cluster in plan.gateways),
            redis=_build_redis_egress(find_redis(service, plan)),
            prometheus_api=build_prometheus_egress(models, cluster),
            tracing=build_tracing_egress(cluster),
            hub=build_hub_egress(models),
            bucket=build_bucket_egress(models, cluster),
            prometheus=Peer(namespace=cluster.prometheus.namespace) if cluster.prometheus else usual.prometheus,
        ),
        scraping=build_scraping(cluster.prometheus),
        tracing=build_tracing(cluster),
        logs=PodLogs(stdout=StdoutLogs(enabled=cluster.logs.stdout)),
        aliases={name: Alias(namespace=aliases.namespace) for name in aliases.names} if aliases else {},
    )


def _build_allowed_gateways(cluster: Cluster, aliases: Aliases | None, *, ours: bool) -> dict[str, Peer]:
    """Return the allowed clients: pods of rayhelm's gateway, or all pods of the namespace of another gateway, and of
    the namespace of aliases."""
    labels = GATEWAY_PODS if ours else {}
    gateway = cluster.gateway.namespace
    peers = {gateway: Peer(namespace=gateway, pod_labels=labels)}
    return peers | ({aliases.namespace: Peer(namespace=aliases.namespace)} if aliases else {})


def _is_custom(plan: ModelPlan) -> bool:
    return get_task(plan.task).server == "application"


def _find_missing(plan: Plan) -> list[Problem]:
    """Return a problem for each value that only the user's cluster can provide."""
    used = {model.cluster for model in plan.models.values()}
    addresses = [
        problem_at(
            ("clusters", name),
            f"cluster `{name}` has no `apiServer.cidrs`: Ray's autoscaler calls the API server, and what is not named"
            " is denied",
            Fix(
                "apiServer.cidrs",
                ["10.0.0.1/32"],
                "kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes",
            ),
        )
        for name, cluster in plan.declared.clusters.items()
        if name in used and not cluster.api_server.cidrs
    ]
    return [
        *addresses,
        *find_shared_redis(plan),
        *find_missing_for_policies(plan),
        *find_missing_for_tracing(plan),
        *find_missing_for_adapters(plan),
        *find_missing_for_weights(plan),
    ]


def _build_image(cluster: Cluster) -> RayImage:
    if not cluster.image:
        return RayImage()
    named = cluster.image
    return RayImage(
        repository=named.repository,
        tag=named.tag or "",
        digest=named.digest or "",
        includes_rayhelm=named.includes_rayhelm,
    )


def _build_fault_tolerance(redis: Redis | None) -> GcsFaultTolerance:
    if not redis:
        return GcsFaultTolerance()
    secret = redis.password_secret
    password = SecretKeyRef(name=secret.name, key=secret.key) if secret else SecretKeyRef(key="password")
    return GcsFaultTolerance(
        enabled=True, redis_address=redis.address, username=redis.username or "", password_secret=password
    )


def _build_redis_egress(redis: Redis | None) -> RedisEgress:
    """Return the egress of the head to its Redis."""
    if not redis:
        return RedisEgress()
    peer = Peer(namespace=redis.peer_namespace, pod_labels=redis.pod_labels if redis.peer_namespace else {})
    return RedisEgress(peer=peer, cidrs=list(redis.blocks), port=redis.port)
