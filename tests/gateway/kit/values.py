"""Values of the chart for upstreams on this computer."""

from collections.abc import Sequence
from typing import Any

from charts.kit import over
from gateway.kit.upstream import Upstream

Values = dict[str, Any]


def endpoint(upstream: Upstream, **more: Any) -> Values:
    return {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": upstream.port, **more}


def model(*upstreams: Upstream, route: str = "/app", **more: Any) -> Values:
    """A model with one version `stable` that has these upstreams."""
    ends = {upstream.name: endpoint(upstream) for upstream in upstreams}
    return over({"versions": {"stable": {"routePrefix": route, "endpoints": ends}}}, more)


def tenant(name: str, models: Sequence[str], **more: Any) -> Values:
    return {
        "keys": {"secretName": f"{name}-keys"},
        "models": list(models),
        "requestsPerMinute": 1_000_000,
        "concurrency": 10_000,
        **more,
    }


def minimal_values(upstream: Upstream, overlay: Values | None = None) -> Values:
    """Tenant `acme` may use model `llama`, which has one upstream."""
    base = {"tenants": {"acme": tenant("acme", ["llama"])}, "models": {"llama": model(upstream)}}
    return over(base, overlay or {})
