"""The gateway and its tenants: requests, refusals, limits, tokens, versions, endpoints."""

from typing import Any

from rayhelm.observe.dashboard_model import (
    BarGauge,
    Column,
    Dashboard,
    Gauge,
    Row,
    Stat,
    StateTimeline,
    Table,
    TimeSeries,
    falling,
    informational,
    line,
    rising,
)
from rayhelm.observe.queries import Scope, conditions, gateway, labels, recorded, slo, tenants
from rayhelm.observe.states import IS_AVAILABLE

__all__ = ["DASHBOARD"]

TENANT, VERSION = "{{tenant}}", "{{proxy}}"
REMOTE = "{{proxy}} {{server}}"
NO_TENANTS = "no metrics by tenant"
NO_TOKENS = "no tokens by tenant: see the description"
COUNTED = "The replicas count them if their image contains rayhelm: `image.includesRayhelm` of chart ray-service."
BY_TENANT = ("tenant",)
SERVICES = Scope(cluster='=~"$cluster"', tenant='=~"$tenant"')
"""Scope of tokens: their namespace and model are those of the services, and the variables those of the gateway."""
ALL_TENANTS = Scope(cluster='=~"$cluster"')
OF_LAST_HOUR: dict[str, Any] = {"by": ("tenant", "model_name"), "window": "1h", "scope": SERVICES}

NOW = Row(
    title="Now",
    panels=(
        Stat(
            title="Requests",
            description="Requests of clients per second, including those that the gateway refuses.",
            thresholds=informational(),
            lines=(line(gateway.request_rate, by=()),),
        ),
        Stat(
            title="Availability, 1 h",
            description="Share of the responses to clients of the last hour without a server error (5xx).",
            thresholds=falling(0.99, 0.999),
            decimals=2,
            lines=(line(slo.gateway_availability, by=(), window="1h"),),
            runbook="AvailabilityBudgetBurnsFast",
        ),
        Stat(
            title="Requests in flight",
            description="Requests in the gateway, including those that wait for a connection to a service.",
            thresholds=informational(),
            lines=(line(gateway.requests_in_flight, by=()),),
        ),
        Stat(
            title="Waiting for a connection",
            description="Requests that wait in the gateway because all endpoints of their model are at their limit.",
            thresholds=rising(1, 20),
            lines=(line(gateway.queued, by=()),),
            runbook="QueueGrowing",
        ),
        Stat(
            title="Retries, 5 min",
            description="Requests of the last 5 minutes that were sent again, to the same endpoint or another one.",
            thresholds=rising(1, 50),
            lines=(line(gateway.retries, by=(), window="5m"),),
            runbook="GatewayRetriesRising",
        ),
        Gauge(
            title="Connections",
            description="Used share of the connections that a gateway pod accepts, of the fullest pod. At 100 % new "
            "clients wait in the kernel.",
            thresholds=rising(0.7, 0.9),
            height=4,
            lines=(line(gateway.connection_usage, "{{pod}}", by=("pod",)),),
        ),
    ),
)

REQUESTS = Row(
    title="Requests and responses",
    panels=(
        TimeSeries(
            title="Responses by class",
            description="Responses to clients per second by class of the status. 4xx includes refusals of the gateway.",
            is_stacked=True,
            lines=(line(gateway.response_rate, "{{code}}", by=("code",)),),
            runbook="AvailabilityBudgetBurnsFast",
        ),
        TimeSeries(
            title="Requests by version",
            description="Forwarded requests per second by model and version.",
            lines=(line(gateway.version_request_rate, VERSION),),
        ),
        TimeSeries(
            title="Share of versions",
            description="Share of each version in the requests of its model. It follows the weights, except for "
            "tenants with pinned versions.",
            maximum=1,
            lines=(line(gateway.version_share, VERSION),),
        ),
        TimeSeries(
            title="Time to the first byte",
            description="Average time to the first byte of the last 1024 requests, of the slowest gateway pod. "
            "HAProxy has no histogram, so quantiles are only in the engines' metrics.",
            thresholds=rising(2, 10),
            lines=(line(gateway.first_byte_time, VERSION),),
            runbook="TtftBudgetBurnsFast",
        ),
        TimeSeries(
            title="Answered by the gateway itself",
            description="Requests per second that the gateway answered itself: refusals and lists of models.",
            thresholds=rising(1, 50),
            lines=(line(gateway.refused_rate, "{{rayhelm_dev_gateway}}"),),
        ),
        TimeSeries(
            title="Aborted by clients, 5 min",
            description="Requests of the last 5 minutes that clients aborted. A rise with a stable time to the "
            "first byte points to timeouts of clients.",
            thresholds=rising(5, 50),
            lines=(line(gateway.aborted_by_client, VERSION, window="5m"),),
        ),
    ),
)

TENANTS = Row(
    title="Tenants",
    panels=(
        TimeSeries(
            title="Requests by tenant",
            description="Requests per second of each tenant that the gateway forwarded and a server answered.",
            no_value=NO_TENANTS,
            lines=(line(tenants.request_rate, TENANT, by=BY_TENANT),),
        ),
        TimeSeries(
            title="Refused requests by reason, 5 min",
            description="Requests of the last 5 minutes that the gateway refused, by the code of the error that the "
            "client got.",
            thresholds=rising(1, 50),
            no_value="none",
            lines=(line(tenants.rejections, "{{tenant}} {{reason}}", by=("tenant", "reason"), window="5m"),),
            runbook="TenantLimited",
        ),
        TimeSeries(
            title="Generated tokens by tenant",
            description="Generated tokens per second of each tenant, with those of streams that the client left. "
            f"{COUNTED}",
            is_stacked=True,
            no_value=NO_TOKENS,
            lines=(line(tenants.generated_token_rate, TENANT, by=BY_TENANT, scope=SERVICES),),
        ),
        TimeSeries(
            title="Prompt tokens by tenant",
            description="Prompt tokens per second of each tenant, with those from the prefix cache and those of "
            f"embeddings. {COUNTED}",
            is_stacked=True,
            no_value=NO_TOKENS,
            lines=(line(tenants.prompt_token_rate, TENANT, by=BY_TENANT, scope=SERVICES),),
        ),
        Table(
            title="Tokens by tenant and model, 1 h",
            description="Tokens of the last hour. Requests of `(unknown)` did not pass the gateway, such as those of "
            f"`helm test`. {COUNTED}",
            thresholds=informational(),
            width=8,
            no_value=NO_TOKENS,
            columns=(
                Column(header="Tenant", label="tenant"),
                Column(header="Model", label="model_name"),
                Column(header="Prompt tokens", line=line(tenants.prompt_tokens, **OF_LAST_HOUR)),
                Column(header="Generated tokens", line=line(tenants.generated_tokens, **OF_LAST_HOUR)),
            ),
        ),
        TimeSeries(
            title="Cost by tenant",
            description="Cost per hour of each tenant: the cost of a model by the shares of its tenants in the tokens "
            "of the last hour, a prompt token as a quarter of a generated one. It needs the rules of chart platform "
            f"and a price. {COUNTED}",
            is_stacked=True,
            no_value="no price, no rules of chart platform, or no tokens by tenant",
            lines=(line(recorded.cost_per_hour_by_tenant, TENANT, by=BY_TENANT, scope=SERVICES),),
        ),
        BarGauge(
            title="Rate limits",
            description="Requests per minute of each tenant, divided by its limit. At 100 % the gateway answers 429.",
            thresholds=rising(0.8, 0.95),
            maximum=1,
            width=6,
            no_value=NO_TENANTS,
            lines=(line(tenants.rate_usage, TENANT, by=BY_TENANT),),
            runbook="TenantLimited",
        ),
        BarGauge(
            title="Token limits",
            description="Tokens of each tenant that are used and not refilled yet, divided by its tokens per minute. "
            "From 100 % on the gateway answers 429.",
            thresholds=rising(0.8, 0.95),
            maximum=1,
            width=6,
            no_value="no tenant with tokensPerMinute",
            lines=(line(tenants.token_usage, TENANT, by=BY_TENANT),),
            runbook="TenantLimited",
        ),
        BarGauge(
            title="Concurrency limits",
            description="Requests in flight of each tenant, divided by its limit. Above 100 % the gateway answers 429.",
            thresholds=rising(0.8, 0.95),
            maximum=1,
            width=6,
            no_value=NO_TENANTS,
            lines=(line(tenants.concurrency_usage, TENANT, by=BY_TENANT),),
            runbook="TenantLimited",
        ),
        BarGauge(
            title="Tokens that have a tenant, 1 h",
            description="Share of the prompt tokens of each model in the last hour that replicas counted for a tenant, "
            f"`(unknown)` included. 0 %: the replicas do not count. {COUNTED}",
            thresholds=falling(0.5, 0.99),
            maximum=1,
            width=6,
            no_value="no tokens",
            lines=(line(tenants.counted_share, "{{model_name}}", by=("model_name",), window="1h", scope=ALL_TENANTS),),
        ),
    ),
)

ENDPOINTS = Row(
    title="Endpoints and pods",
    panels=(
        TimeSeries(
            title="Available endpoints",
            description="Endpoints of each version whose health check passes, in the gateway pod that sees fewest. For "
            "a version that only other clusters serve: its available remote gateways.",
            thresholds=falling(1, 2),
            is_stepped=True,
            lines=(line(gateway.available_endpoints, VERSION),),
            runbook="NoReadyReplica",
        ),
        TimeSeries(
            title="Retries per request",
            description="Retries divided by forwarded requests. They rise while pods are replaced.",
            thresholds=rising(0.02, 0.1),
            shows_thresholds=True,
            lines=(line(gateway.retry_ratio, VERSION),),
            runbook="GatewayRetriesRising",
        ),
        TimeSeries(
            title="Failed connections, 5 min",
            description="Connections to endpoints of the last 5 minutes that failed.",
            thresholds=rising(1, 20),
            lines=(line(gateway.connection_errors, VERSION, window="5m"),),
            runbook="GatewayRetriesRising",
        ),
        TimeSeries(
            title="Requests that wait for a connection",
            description="Requests that wait in the gateway, by model and version.",
            thresholds=rising(1, 20),
            lines=(line(gateway.queued, VERSION),),
            runbook="QueueGrowing",
        ),
        TimeSeries(
            title="Connections by pod",
            description="Used share of the connections that each gateway pod accepts.",
            thresholds=rising(0.7, 0.9),
            shows_thresholds=True,
            maximum=1,
            lines=(line(gateway.connection_usage, "{{pod}}"),),
        ),
        Table(
            title="Pods",
            description="Uptime, connections and lost log lines of each gateway pod.",
            thresholds=informational(),
            width=8,
            columns=(
                Column(header="Gateway", label="rayhelm_dev_gateway"),
                Column(header="Pod", label="pod"),
                Column(header="Uptime", line=line(gateway.uptime, by=(*labels.GATEWAY, "pod"))),
                Column(header="Connections", line=line(gateway.connection_usage), thresholds=rising(0.7, 0.9)),
                Column(
                    header="Lost log lines, 1 h", line=line(gateway.dropped_logs, window="1h"), thresholds=rising(1, 10)
                ),
            ),
        ),
    ),
)

OTHERS = Row(
    title="Remote gateways, keys and certificates",
    panels=(
        TimeSeries(
            title="Requests to remote gateways",
            description="Requests per second that gateways of other clusters answered, because no endpoint of this "
            "cluster was available, above `spillAbove`, or because this cluster does not serve the model.",
            width=6,
            no_value="no remote gateway",
            lines=(line(gateway.remote_response_rate, REMOTE),),
            runbook="MostRequestsForwarded",
        ),
        StateTimeline(
            title="Available remote gateways",
            description="Remote gateways that this gateway finds available for a model and version. A missing model, "
            "a refused key and an invalid certificate count as not available.",
            thresholds=informational(),
            width=6,
            height=8,
            states=IS_AVAILABLE,
            no_value="no remote gateway",
            lines=(line(gateway.remote_availability, REMOTE),),
            runbook="RemoteGatewayDown",
        ),
        TimeSeries(
            title="Age of keys",
            description="Time since each gateway pod last read all API keys, and a valid JWKS. They are read again "
            "every few seconds.",
            thresholds=rising(120, 300),
            width=6,
            lines=(
                line(conditions.key_age, "API keys {{pod}}"),
                line(conditions.token_key_age, "JWKS {{pod}}"),
            ),
            runbook="GatewayKeysStale",
        ),
        BarGauge(
            title="Certificates expire in",
            description="Time until the TLS certificates that the gateway uses expire, by Secret.",
            thresholds=falling(7 * 86400, 14 * 86400),
            width=6,
            no_value="no TLS at the gateway",
            lines=(line(gateway.certificate_lifetime, "{{rayhelm_dev_gateway}} {{secret}}"),),
            runbook="GatewayCertificateExpiring",
        ),
    ),
)

DASHBOARD = Dashboard(
    name="gateway",
    title="rayhelm: Gateway and tenants",
    description="Requests, limits and tokens of tenants, versions, endpoints, remote gateways, certificates.",
    is_of_gateway=True,
    rows=(NOW, REQUESTS, TENANTS, ENDPOINTS, OTHERS),
)
