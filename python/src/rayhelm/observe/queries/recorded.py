"""Series that the recording rules of chart `platform` write: figures of the plan, objectives, costs.

Without these rules there is no data. `model_name` is the one of the engine's metrics.
"""

from typing import Literal

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.labels import MODEL, MODEL_AND_TENANT, SERVICE, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "burn_rate",
    "cost_per_hour",
    "cost_per_hour_by_tenant",
    "cost_per_million_generated_tokens",
    "cost_per_million_prompt_tokens",
    "cost_per_request",
    "error_budget_left",
    "idle_cost_per_hour",
    "idle_service_cost_per_hour",
    "latency_signal",
    "planned_concurrency",
    "planned_cost_per_hour",
    "planned_cost_per_million_generated_tokens",
    "planned_generated_length",
    "planned_generated_token_rate",
    "planned_max_replicas",
    "planned_min_replicas",
    "planned_prompt_length",
    "planned_replicas",
    "planned_request_rate",
    "planned_time_per_output_token",
    "planned_time_to_first_token",
    "service_cost_per_hour",
    "within_objective",
]

Objective = Literal["availability", "ttft", "tpot"]
Window = Literal["5m", "1h", "6h", "1d", "3d"]
_OF_OBJECTIVE = "cluster, namespace, rayhelm_dev_service, rayhelm_dev_gateway, model_name, slo"


@query(unit="seconds", idle="value")
def planned_time_to_first_token(scope: Scope, by: By = MODEL) -> str:
    """Time to first token at the planned load, by the plan."""
    return _largest("rayhelm:plan_ttft_seconds", scope, by)


@query(unit="seconds", idle="value")
def planned_time_per_output_token(scope: Scope, by: By = MODEL) -> str:
    """Time per output token at the planned load, by the plan."""
    return _largest("rayhelm:plan_tpot_seconds", scope, by)


@query(unit="requests/s", idle="value")
def planned_request_rate(scope: Scope, by: By = MODEL) -> str:
    """Requests per second for which the plan was made."""
    return _sum("rayhelm:plan_requests_per_second", scope, by)


@query(unit="tokens", idle="value")
def planned_prompt_length(scope: Scope, by: By = MODEL) -> str:
    """Prompt tokens of a request for which the plan was made."""
    return _largest("rayhelm:plan_input_tokens", scope, by)


@query(unit="tokens", idle="value")
def planned_generated_length(scope: Scope, by: By = MODEL) -> str:
    """Generated tokens of a request for which the plan was made."""
    return _largest("rayhelm:plan_output_tokens", scope, by)


@query(unit="tokens/s", idle="value")
def planned_generated_token_rate(scope: Scope, by: By = MODEL) -> str:
    """Generated tokens per second that the running replicas can reach within the objectives, by the plan."""
    return _for_all_replicas("rayhelm:plan_tokens_per_second", scope, by)


@query(unit="requests", idle="value")
def planned_concurrency(scope: Scope, by: By = MODEL) -> str:
    """Requests in flight at the planned load in as many replicas as run, by the plan."""
    return _for_all_replicas("rayhelm:plan_concurrency", scope, by)


@query(unit="replicas", idle="value")
def planned_replicas(scope: Scope, by: By = MODEL) -> str:
    """Replicas at the planned load, by the plan."""
    return _sum("rayhelm:plan_replicas", scope, by)


@query(unit="replicas", idle="value")
def planned_min_replicas(scope: Scope, by: By = MODEL) -> str:
    """Smallest number of replicas of the autoscaling."""
    return _sum("rayhelm:plan_min_replicas", scope, by)


@query(unit="replicas", idle="value")
def planned_max_replicas(scope: Scope, by: By = MODEL) -> str:
    """Largest number of replicas of the autoscaling."""
    return _sum("rayhelm:plan_max_replicas", scope, by)


@query(unit="dollars/h", idle="value")
def planned_cost_per_hour(scope: Scope, by: By = MODEL) -> str:
    """Cost per hour at the planned load, by the plan."""
    return _sum("rayhelm:plan_dollars_per_hour", scope, by)


@query(unit="dollars/Mtoken", idle="value")
def planned_cost_per_million_generated_tokens(scope: Scope, by: By = MODEL) -> str:
    """Cost of a million generated tokens at the planned load, by the plan."""
    return _largest("rayhelm:plan_dollars_per_million_output_tokens", scope, by)


@query(unit="dollars/h", idle="value")
def cost_per_hour(scope: Scope, by: By = MODEL) -> str:
    """Cost per hour of the running replicas, idle ones included. No data for a model without a price."""
    return _sum("rayhelm:cost_usd_per_hour", scope, by)


@query(unit="dollars/h", idle="value")
def idle_cost_per_hour(scope: Scope, by: By = MODEL) -> str:
    """Cost per hour of the replicas without a request in flight."""
    return _sum("rayhelm:cost_idle_usd_per_hour", scope, by)


@query(unit="dollars/h", idle="no data")
def cost_per_hour_by_tenant(scope: Scope, by: By = MODEL_AND_TENANT) -> str:
    """Cost per hour of each tenant by its share of the tokens of the last hour. No data for a model without a price,
    without tokens, or whose replicas do not count tokens by tenant."""
    return _sum("rayhelm:cost_by_tenant_usd_per_hour", scope, by)


@query(unit="dollars/h", idle="value")
def service_cost_per_hour(scope: Scope, by: By = SERVICE) -> str:
    """Cost per hour of all GPUs of a service, used or not. Of its replicas alone where Ray has no GPUs."""
    return _of_services("rayhelm:service_cost_usd_per_hour", "rayhelm:cost_usd_per_hour", scope, by)


@query(unit="dollars/h", idle="value")
def idle_service_cost_per_hour(scope: Scope, by: By = SERVICE) -> str:
    """The part of it without a request in flight: of GPUs without a replica, and of replicas without a request."""
    return _of_services("rayhelm:service_cost_idle_usd_per_hour", "rayhelm:cost_idle_usd_per_hour", scope, by)


@query(unit="dollars/request", idle="no data")
def cost_per_request(scope: Scope, by: By = MODEL) -> str:
    """Cost of a finished request over the last hour, idle time included."""
    return _largest("rayhelm:cost_usd_per_request", scope, by)


@query(unit="dollars/Mtoken", idle="no data")
def cost_per_million_prompt_tokens(scope: Scope, by: By = MODEL) -> str:
    """Whole cost of the last hour over its prompt tokens. Do not add it to the cost of generated tokens: both divide
    the same cost."""
    return _largest("rayhelm:cost_usd_per_million_input_tokens", scope, by)


@query(unit="dollars/Mtoken", idle="no data")
def cost_per_million_generated_tokens(scope: Scope, by: By = MODEL) -> str:
    """Whole cost of the last hour over its generated tokens, by the formula of the plan."""
    return _largest("rayhelm:cost_usd_per_million_output_tokens", scope, by)


@query(unit="ratio", idle="no data")
def within_objective(scope: Scope, slo: Objective = "availability", period: Window = "1d", by: By = MODEL) -> str:
    """Share of the requests of a period that met an objective."""
    return f"1 - {_largest(f'rayhelm:slo_errors:ratio{period}', scope, by, _is(slo))}"


@query(unit="count", idle="no data")
def burn_rate(scope: Scope, slo: Objective = "availability", period: Window = "1h", by: By = MODEL) -> str:
    """How fast the error budget of an objective is used: 1 uses all of it within the period of the objective."""
    errors = _series(f"rayhelm:slo_errors:ratio{period}", scope, _is(slo))
    budget = f"on ({_OF_OBJECTIVE}) {_series('rayhelm:slo_budget', scope, _is(slo))}"
    return blocks.aggregate("max", f"{errors} / {budget}", by)


@query(unit="ratio", idle="no data")
def latency_signal(scope: Scope, by: By = MODEL) -> str:
    """Share of first tokens that were late in the last 5 minutes, divided by the share that may be late: above 1 the
    policy `engine-queue` adds replicas."""
    return burn_rate(scope, "ttft", "5m", by)


@query(unit="ratio", idle="no data")
def error_budget_left(scope: Scope, slo: Objective = "availability", by: By = MODEL) -> str:
    """Share of the error budget that is left if the whole period were like the last 3 days. Below 0: it is used up."""
    return f"1 - {burn_rate(scope, slo, '3d', by)}"


def _is(slo: Objective) -> str:
    return f'slo="{slo}"'


def _series(name: str, scope: Scope, *matchers: str) -> str:
    return f"{name}{{{','.join([*scope.matchers(name), *matchers])}}}".replace("{}", "")


def _largest(name: str, scope: Scope, by: By, *matchers: str) -> str:
    return blocks.aggregate("max", _series(name, scope, *matchers), by)


def _sum(name: str, scope: Scope, by: By) -> str:
    return blocks.aggregate("sum", _series(name, scope), by)


def _of_services(of_service: str, of_models: str, scope: Scope, by: By) -> str:
    """Sum a series of services, or that of their models for services without it."""
    return blocks.aggregate("sum", f"{_series(of_service, scope)} or {_sum(of_models, scope, SERVICE)}", by)


def _for_all_replicas(name: str, scope: Scope, by: By) -> str:
    """A figure of one replica, times the replicas that run."""
    on = ", ".join((*SERVICE, "model_name"))
    return blocks.aggregate("sum", f"{_series(name, scope)} * on ({on}) {_series('rayhelm:replicas', scope)}", by)
