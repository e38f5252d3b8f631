"""Tenants that send requests: requests as the gateway counts them, tokens as the replicas do.

Tokens have no data for models whose image lacks rayhelm. A request that did not pass the gateway belongs to the tenant
`(unknown)`, or to the one that its header names.
"""

from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import MODEL, MODEL_AND_TENANT, TENANT, By
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "PROMPT_WEIGHT",
    "concurrency_usage",
    "counted_share",
    "generated_token_rate",
    "generated_tokens",
    "prompt_token_rate",
    "prompt_tokens",
    "rate_usage",
    "rejections",
    "request_rate",
    "token_share",
    "token_usage",
]

REQUESTS = "rayhelm_gateway_requests_total"
PROMPT, GENERATION = "ray_rayhelm_prompt_tokens_total", "ray_rayhelm_generation_tokens_total"
PROMPT_WEIGHT = 0.25
"""Generated tokens that a prompt token is worth when tenants share a cost: as in most price lists of providers."""


@query(unit="requests/s", idle="no data")
def request_rate(scope: Scope, window: str = WINDOW, by: By = TENANT) -> str:
    """Requests per second by tenant. `by` may have `model`, `version` and `code`."""
    return blocks.rate(REQUESTS, scope, window, by=by)


@query(unit="requests", idle="no data", first=True)
def rejections(scope: Scope, window: str = WINDOW, by: By = (*TENANT, "reason")) -> str:
    """Requests in the window that the gateway refused, by the code of the error."""
    return blocks.increase("rayhelm_gateway_rejections_total", scope, window, by=by)


@query(unit="ratio", idle="value")
def rate_usage(scope: Scope, window: str = WINDOW, by: By = TENANT) -> str:
    """Requests per minute of a tenant, divided by its limit."""
    limit = blocks.gauge("rayhelm_gateway_limit", scope, 'limit="requests_per_minute"', by=by)
    return blocks.ratio(f"(60 * {blocks.rate(REQUESTS, scope, window, by=by)})", limit)


@query(unit="ratio", idle="value")
def concurrency_usage(scope: Scope, by: By = TENANT) -> str:
    """Requests in flight of a tenant, divided by its limit."""
    limit = blocks.gauge("rayhelm_gateway_limit", scope, 'limit="concurrency"', by=by)
    return blocks.ratio(blocks.gauge("rayhelm_gateway_requests_in_flight", scope, by=by), limit)


@query(unit="ratio", idle="no data", first=True)
def token_usage(scope: Scope, by: By = TENANT) -> str:
    """Tokens that a tenant used and that are not refilled yet, divided by its tokens per minute. No data for a tenant
    without this limit."""
    limit = blocks.gauge("rayhelm_gateway_limit", scope, 'limit="tokens_per_minute"', by=by)
    return blocks.ratio(blocks.gauge("rayhelm_gateway_tokens_used", scope, by=by), limit)


@query(unit="tokens/s", idle="zero")
def prompt_token_rate(scope: Scope, window: str = WINDOW, by: By = MODEL_AND_TENANT) -> str:
    """Prompt tokens per second by tenant, including those from the prefix cache."""
    return blocks.rate(PROMPT, scope, window, by=by)


@query(unit="tokens/s", idle="zero")
def generated_token_rate(scope: Scope, window: str = WINDOW, by: By = MODEL_AND_TENANT) -> str:
    """Generated tokens per second by tenant, including those of streams that the client left."""
    return blocks.rate(GENERATION, scope, window, by=by)


@query(unit="tokens", idle="zero", first=True)
def prompt_tokens(scope: Scope, window: str = WINDOW, by: By = MODEL_AND_TENANT) -> str:
    """Prompt tokens in the window by tenant."""
    return blocks.increase(PROMPT, scope, window, by=by)


@query(unit="tokens", idle="zero", first=True)
def generated_tokens(scope: Scope, window: str = WINDOW, by: By = MODEL_AND_TENANT) -> str:
    """Generated tokens in the window by tenant."""
    return blocks.increase(GENERATION, scope, window, by=by)


@query(unit="ratio", idle="no data", first=True)
def counted_share(scope: Scope, window: str = WINDOW, by: By = MODEL) -> str:
    """Share of the engines' tokens in the window that are counted for a tenant, `(unknown)` included. Below 1, some
    replicas do not count."""
    counted = blocks.increase(PROMPT, scope, window, by=by, zero=False)
    return blocks.ratio(counted, blocks.increase("ray_vllm_prompt_tokens_total", scope, window, by=by, zero=False))


@query(unit="ratio", idle="no data", first=True)
def token_share(scope: Scope, window: str = "1h", by: By = MODEL_AND_TENANT) -> str:
    """Share of a tenant in the tokens of a model, a prompt token as a quarter of a generated one. Tokens that no tenant
    has are in the whole, so the shares of all tenants sum up to 1 at most."""
    model = [label for label in by if label != "tenant"]
    used = _weigh(PROMPT, GENERATION, scope, window, by)
    every = _weigh("ray_vllm_prompt_tokens_total", "ray_vllm_generation_tokens_total", scope, window, model)
    return f"{used} / on ({', '.join(model)}) group_left () ({every} > 0)"


def _weigh(prompt: str, generation: str, scope: Scope, window: str, by: By) -> str:
    """Generated tokens, plus prompt tokens by their weight."""
    read = blocks.increase(prompt, scope, window, by=by)
    made = blocks.increase(generation, scope, window, by=by)
    return f"(({made}) + {PROMPT_WEIGHT} * ({read}))"
