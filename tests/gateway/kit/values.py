"""Values for the tests: what the chart needs at least, around sites on this computer."""

from collections.abc import Sequence
from typing import Any

from charts.kit import over
from gateway.kit.site import Site

Values = dict[str, Any]


def endpoint(site: Site, **more: Any) -> Values:
    return {"host": "127.0.0.1", "cidrs": ["127.0.0.1/32"], "port": site.port, **more}


def model(*sites: Site, route: str = "/app", **more: Any) -> Values:
    """A model with one version `stable` at these sites."""
    ends = {site.name: endpoint(site) for site in sites}
    return over({"versions": {"stable": {"routePrefix": route, "endpoints": ends}}}, more)


def tenant(name: str, models: Sequence[str], **more: Any) -> Values:
    return {
        "keys": {"secretName": f"{name}-keys"},
        "models": list(models),
        "requestsPerMinute": 1_000_000,
        "concurrency": 10_000,
        **more,
    }


def smallest(site: Site, overlay: Values | None = None) -> Values:
    """Tenant `acme` may call `llama`, which one site holds."""
    base = {"tenants": {"acme": tenant("acme", ["llama"])}, "models": {"llama": model(site)}}
    return over(base, overlay or {})
