"""Autoscaling of a plan: initial replicas, delays, policy, and egress to Prometheus."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from rayhelm.deploy.compose.included import find_images_without_rayhelm
from rayhelm.deploy.values.common.network import Peer, PrometheusEgress
from rayhelm.deploy.values.ray_service.serve import AutoscalingPolicy, PrometheusSource
from rayhelm.errors import Fix, Problem
from rayhelm.fleet.pools import Cluster
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = [
    "build_delays",
    "build_policy",
    "build_prometheus_egress",
    "build_prometheus_source",
    "find_missing_for_policies",
]


def build_delays(plan: ModelPlan) -> dict[str, Any]:
    """Return initial replicas and delays; empty if the number of replicas is fixed."""
    scaling = plan.scaling
    if plan.min_replicas == plan.max_replicas:
        return {}
    return {
        "initial_replicas": scaling.initial_replicas if scaling.initial_replicas > plan.min_replicas else None,
        "upscale_delay_seconds": scaling.upscale_delay_s,
        "downscale_delay_seconds": scaling.downscale_delay_s,
        "downscale_to_zero_delay_seconds": scaling.downscale_to_zero_delay_s,
        "look_back_period_seconds": scaling.look_back_s,
    }


def build_policy(plan: ModelPlan) -> AutoscalingPolicy:
    if plan.scaling.policy != "engine-queue":
        return AutoscalingPolicy()
    return AutoscalingPolicy(kind="EngineQueue", ttft_seconds=plan.scaling.ttft_s or 0)


def build_prometheus_source(models: Iterable[ModelPlan], cluster: Cluster) -> PrometheusSource:
    """Return the Prometheus that the policies of these models query; empty if none does."""
    return (
        PrometheusSource(url=cluster.prometheus.url)
        if cluster.prometheus and _use_engine_queue(models)
        else PrometheusSource()
    )


def build_prometheus_egress(models: Iterable[ModelPlan], cluster: Cluster) -> PrometheusEgress:
    """Return the egress of the head to Prometheus. The port is the one of the Service, which is the same for pods of
    the Prometheus operator."""
    if not cluster.prometheus or not _use_engine_queue(models):
        return PrometheusEgress()
    port = urlsplit(cluster.prometheus.url).port or PrometheusEgress().port
    return PrometheusEgress(peer=Peer(namespace=cluster.prometheus.namespace), port=port)


def find_missing_for_policies(plan: Plan) -> Iterator[Problem]:
    """Return a problem for each requirement of a policy that the cluster lacks."""
    for model in plan.models.values():
        if model.scaling.policy == "engine-queue":
            for why, fix in _find_missing(model, plan):
                yield problem_at((*model.path, "scaling"), why, fix)


def _find_missing(model: ModelPlan, plan: Plan) -> Iterator[tuple[str, Fix]]:
    """Return each missing requirement with its fix."""
    name, cluster = model.cluster, plan.declared.clusters[model.cluster]
    if not cluster.prometheus:
        url = "http://prometheus-operated.monitoring:9090"
        why = f"`engine-queue` asks Prometheus, and cluster `{name}` has none"
        yield why, Fix(f"/clusters.{name}.prometheus", {"url": url})
    for what, fix in find_images_without_rayhelm(plan.of_service(model.service), plan):
        yield f"Serve imports `engine-queue` on any node, and the image of {what} lacks rayhelm", fix


def _use_engine_queue(models: Iterable[ModelPlan]) -> bool:
    return any(model.scaling.policy == "engine-queue" for model in models)
