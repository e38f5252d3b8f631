"""From a plan to the rules of Prometheus in one cluster: objectives, plan and prices of each model. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from rayhelm.deploy.compose.gpu_units import list_gpu_units
from rayhelm.deploy.compose.release_names import GATEWAY
from rayhelm.deploy.values.platform.prometheus_rules import (
    KeysSecretRef,
    ModelObjectives,
    ModelPlanSeries,
    PrometheusRules,
    RuledModel,
)
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.planner.deployment_names import name_llm_deployment
from rayhelm.planner.plan import GatewayPlan, ModelPlan, Plan

__all__ = ["build_prometheus_rules", "list_models_without_price"]


def build_prometheus_rules(cluster: str, plan: Plan, services: Mapping[str, RayServiceValues]) -> PrometheusRules:
    """Build the rules of a cluster; none if its `prometheus` does not ask for them. `services` are values by name."""
    scraped = plan.declared.clusters[cluster].prometheus
    if not scraped or scraped.rules == "None":
        return PrometheusRules()
    # A preview of the problems of a fleet has no values of services that cannot be built.
    models = {
        name: model for name, model in plan.models.items() if model.cluster == cluster and model.service in services
    }
    gateway = plan.gateways.get(cluster)
    return PrometheusRules(
        kind=scraped.rules,
        cluster=scraped.cluster_label or "",
        labels=scraped.rule_labels,
        runbook_url=scraped.runbook_url or "",
        models={name: _model(model, plan, services) for name, model in models.items()},
        gpu_prices=_list_prices({model.service for model in models.values()}, plan),
        keys_secrets=_keys_secrets(gateway, plan) if gateway else {},
        redis_namespaces=_list_redis_namespaces(services[model.service] for model in models.values()),
    )


def list_models_without_price(plan: Plan) -> Iterator[str]:
    """List a message for each model that has no cost series, with the reason."""
    for name, model in plan.models.items():
        scraped = plan.declared.clusters[model.cluster].prometheus
        if scraped and scraped.rules != "None" and model.price_per_hour is None:
            reason = next((each for each in model.unknown if each.startswith("price of")), "its price is unknown")
            yield f"{name}: the rules record no cost: {reason}"


def _model(model: ModelPlan, plan: Plan, services: Mapping[str, RayServiceValues]) -> RuledModel:
    gateway = plan.gateways.get(model.cluster)
    slo = plan.declared.models[model.model].slo
    # Replicas for prompts have no answers of their own: those for answers carry their cost.
    ranks = model.serving_replicas * model.data_parallel_size
    price = None if model.price_per_hour is None else round(model.price_per_hour / ranks, 6)
    is_other = model.served_as != model.model
    is_derived = model.application != model.model
    return RuledModel(
        service=model.service,
        application=model.application if is_derived else "",
        served_as=model.served_as if is_other else "",
        deployment=_deployment(model, services[model.service]),
        gateway=GATEWAY if gateway and model.served_as in gateway.models else "",
        slo=ModelObjectives(
            availability=slo.availability,
            ttft_seconds=slo.ttft or 0,
            tpot_seconds=slo.tpot or 0,
            latency_share=slo.latency_share,
            window_days=slo.window_days,
        ),
        plan=_series(model, plan),
        replica_dollars_per_hour=price,
    )


def _deployment(model: ModelPlan, values: RayServiceValues) -> str:
    """Deployment of a custom application, of data parallel ranks or of replicas for answers; empty for another one of
    Ray Serve LLM."""
    custom = values.serve.custom_applications.get(model.application)
    if custom:
        return next(iter(custom.deployments))
    return name_llm_deployment(model) if model.data_parallel_size > 1 or model.prefill_decode else ""


def _keys_secrets(gateway: GatewayPlan, plan: Plan) -> dict[str, KeysSecretRef]:
    return {
        tenant: KeysSecretRef(namespace=gateway.namespace, secret_name=plan.declared.keys_of(tenant))
        for tenant in gateway.tenants
    }


def _list_redis_namespaces(services: Iterable[RayServiceValues]) -> list[str]:
    """Namespaces of Redis in this cluster."""
    return sorted({namespace for each in services if (namespace := each.network_policy.redis.peer.namespace)})


def _series(model: ModelPlan, plan: Plan) -> ModelPlanSeries:
    traffic, estimate = plan.declared.models[model.model].traffic, model.estimate
    counted = model.prefill_decode.decode if model.prefill_decode else model
    return ModelPlanSeries(
        # Each data parallel rank is a replica of Serve.
        replicas=counted.replicas * model.data_parallel_size,
        min_replicas=counted.min_replicas * model.data_parallel_size,
        max_replicas=counted.max_replicas * model.data_parallel_size,
        requests_per_second=traffic.requests_per_second * model.load_share if traffic else 0,
        input_tokens=traffic.input_tokens if traffic else 0,
        output_tokens=(traffic.output_tokens or 0) if traffic else 0,
        concurrency=estimate.concurrency or 0,
        ttft_seconds=estimate.ttft_s or 0,
        tpot_seconds=estimate.tpot_s or 0,
        tokens_per_second=estimate.tokens_per_second or 0,
        dollars_per_million_output_tokens=model.price_per_million_output_tokens or 0,
    )


def _list_prices(services: set[str], plan: Plan) -> dict[str, dict[str, float]]:
    """USD per unit of the GPU resource and hour, by service and worker group."""
    found: dict[str, dict[str, float]] = {}
    for service in sorted(services):
        for group, unit in list_gpu_units(plan.of_service(service), plan).items():
            if unit.price is not None:
                found.setdefault(service, {})[group] = unit.price
    return found
