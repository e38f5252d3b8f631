"""From the traces of a cluster to the values of its services. Pure."""

from collections.abc import Iterator

from rayhelm.deploy.compose.included import find_images_without_rayhelm
from rayhelm.deploy.values.common.network import Peer
from rayhelm.deploy.values.ray_service.network import TracingEgress
from rayhelm.deploy.values.ray_service.tracing import RayTracing
from rayhelm.errors import Problem
from rayhelm.fleet.pools import Cluster
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

__all__ = ["build_tracing", "build_tracing_egress", "find_missing_for_tracing"]


def build_tracing(cluster: Cluster) -> RayTracing:
    """Build the traces of a service; off without `tracing`."""
    declared = cluster.tracing
    if not declared:
        return RayTracing()
    return RayTracing(
        enabled=True,
        endpoint=declared.endpoint,
        protocol=declared.protocol,
        sampling_ratio=declared.sampling_ratio,
    )


def build_tracing_egress(cluster: Cluster) -> TracingEgress:
    """Build the egress of Ray's pods to the collector: the port of the URL, which is that of the pods by default."""
    declared = cluster.tracing
    if not declared:
        return TracingEgress()
    if declared.cidrs:
        return TracingEgress(cidrs=list(declared.cidrs), port=declared.port)
    return TracingEgress(
        peer=Peer(namespace=declared.namespace, pod_labels=dict(declared.pod_labels)), port=declared.port
    )


def find_missing_for_tracing(plan: Plan) -> Iterator[Problem]:
    """Return a problem for each image without rayhelm in a cluster with `tracing`."""
    for name in sorted({model.cluster for model in plan.models.values()}):
        if plan.declared.clusters[name].tracing:
            models = [model for model in plan.models.values() if model.cluster == name]
            for what, fix in find_images_without_rayhelm(models, plan):
                why = f"`tracing` needs rayhelm in each image, and the image of {what} lacks it"
                yield problem_at(("clusters", name, "tracing"), why, fix)
