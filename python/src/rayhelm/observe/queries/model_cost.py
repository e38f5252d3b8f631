"""Cost by model, by the formula of the plan: replicas times the price of a replica.

Chart platform writes `rayhelm:plan_replica_dollars_per_hour`. A model without a price has no such series, and no
cost. The cost of all GPUs of a service, with those that no replica uses, is in `cost`."""

from typing import Literal

from rayhelm.observe.queries import blocks, scaling, tenants
from rayhelm.observe.queries.labels import DEPLOYMENT, MODEL, MODEL_AND_TENANT, SERVICE, SERVICE_LABEL
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "busy_replicas",
    "idle_model_cost",
    "idle_service_cost",
    "model_cost",
    "model_replicas",
    "request_cost",
    "tenant_cost",
    "token_cost",
]

_MODEL = f"on (cluster, namespace, {SERVICE_LABEL}, model_name)"
_DEPLOYMENT = f"on (cluster, namespace, {SERVICE_LABEL}, application, deployment)"


@query(unit="replicas", idle="value")
def model_replicas(scope: Scope) -> str:
    """Healthy replicas of each model."""
    return _by_model(f"({scaling.healthy_replicas(scope)})", scope)


@query(unit="replicas", idle="value")
def busy_replicas(scope: Scope) -> str:
    """Replicas of each model with a request in flight. Replicas report requests also when the gauges of their engine
    have disappeared."""
    busy = blocks.aggregate("count", f"{blocks.vector('ray_serve_replica_processing_queries', scope)} > 0", DEPLOYMENT)
    none = f"0 * ({scaling.healthy_replicas(scope)})"
    return _by_model(f"({busy} or {none})", scope)


@query(unit="dollars/h", idle="value")
def model_cost(scope: Scope) -> str:
    """Price per hour of the replicas of a model."""
    return f"{blocks.vector('rayhelm:replicas', scope)} * {_price(scope)}"


@query(unit="dollars/h", idle="value")
def idle_model_cost(scope: Scope) -> str:
    """Price per hour of the replicas without a request in flight."""
    all_of_them, busy = (blocks.vector(f"rayhelm:{name}", scope) for name in ("replicas", "replicas_busy"))
    return f"clamp_min({all_of_them} - {busy}, 0) * {_price(scope)}"


@query(unit="dollars/h", idle="value")
def idle_service_cost(scope: Scope) -> str:
    """Price per hour of the GPUs of a service without the replicas that have a request in flight: of free GPUs, of
    replicas that start, and of replicas without a request."""
    every = blocks.vector("rayhelm:service_cost_usd_per_hour", scope)
    busy = " - ".join(
        blocks.aggregate("sum", blocks.vector(f"rayhelm:{name}_usd_per_hour", scope), SERVICE)
        for name in ("cost", "cost_idle")
    )
    return f"clamp_min({every} - on ({', '.join(SERVICE)}) ({busy}), 0) or {every}"


@query(unit="dollars/Mtoken", idle="no data")
def token_cost(scope: Scope, kind: Literal["prompt", "generation"] = "generation", hours: int = 1) -> str:
    """Price of a million tokens: the whole cost of the last hours over its tokens of one kind, as the plan computes
    it for output tokens. The prices of prompt and output tokens are two views of one cost: do not add them."""
    tokens = blocks.increase(f"ray_vllm_{kind}_tokens_total", scope, f"{hours}h", by=MODEL, zero=False)
    return f"{_spent(scope, hours)} / ({tokens} > 0) * 1e6"


@query(unit="dollars/request", idle="no data")
def request_cost(scope: Scope, hours: int = 1) -> str:
    """Price of a finished request: the whole cost of the last hours over its requests."""
    requests = blocks.increase("ray_vllm_request_success_total", scope, f"{hours}h", by=MODEL, zero=False)
    return f"{_spent(scope, hours)} / ({requests} > 0)"


@query(unit="dollars/h", idle="no data")
def tenant_cost(scope: Scope) -> str:
    """Price per hour of the replicas of a model, divided by the tokens of its tenants in the last hour. The part of
    tokens that no tenant has belongs to none, and so does an hour without tokens."""
    share = tenants.token_share(scope, "1h", MODEL_AND_TENANT)
    cost = blocks.aggregate("sum", blocks.vector("rayhelm:cost_usd_per_hour", scope), MODEL)
    return f"({share}) * on ({', '.join(MODEL)}) group_left () {cost}"


def _by_model(text: str, scope: Scope) -> str:
    models = blocks.vector("rayhelm:model_info", scope)
    return blocks.aggregate("sum", f"{text} * {_DEPLOYMENT} group_left (model_name) {models}", MODEL)


def _price(scope: Scope) -> str:
    return f"{_MODEL} group_left () {blocks.vector('rayhelm:plan_replica_dollars_per_hour', scope)}"


def _spent(scope: Scope, hours: int) -> str:
    """Price of the replicas over the last hours."""
    cost = blocks.vector("rayhelm:cost_usd_per_hour", scope, over="avg_over_time", window=f"{hours}h")
    return f"{cost} * {hours}" if hours > 1 else cost
