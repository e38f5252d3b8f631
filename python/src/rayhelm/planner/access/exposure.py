"""Warnings about the way of clients outside the cluster to a gateway."""

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.gateway import Gateway
from rayhelm.fleet.ingress_annotations import describe_defaults, find_missing_annotations

__all__ = ["warn_exposure", "warn_open_cidrs"]


def warn_exposure(names: Iterable[str], fleet: Fleet) -> Iterator[str]:
    """Yield warnings: controllers that end long responses, or that the NetworkPolicy refuses."""
    tenants = {*fleet.tenants, *(fleet.namespace_of(service) for service in fleet.service_names)}
    for name in names:
        gateway, key = fleet.clusters[name].gateway, f"clusters.{name}.gateway"
        yield from _warn_annotations(gateway, key)
        if not (gateway.ingress or gateway.http_route) or not {*gateway.allowed_clients} <= tenants:
            continue
        allowed = ", ".join(gateway.allowed_clients)
        kind = "Ingress" if gateway.ingress else "HTTPRoute"
        yield (
            f"`{key}.allowedClients` has only namespaces of tenants ({allowed}), and the NetworkPolicy refuses the"
            f" controller of the {kind}, if its pods run elsewhere: add their namespace, for example `ingress-nginx`"
        )


def _warn_annotations(gateway: Gateway, key: str) -> Iterator[str]:
    ingress = gateway.ingress
    missing = find_missing_annotations(ingress.class_name, ingress.annotations) if ingress else {}
    if ingress and missing:
        texts = ", ".join(f'{name}: "{value}"' for name, value in missing.items())
        yield (
            f"`{key}.ingress.annotations` lacks {', '.join(missing)}: {describe_defaults(ingress.class_name)}. Write"
            f" annotations: {{{texts}}}"
        )


def warn_open_cidrs(fleet: Fleet) -> Iterator[str]:
    """Yield warnings: CIDRs that are all addresses."""
    for name, cluster in fleet.clusters.items():
        for path, cidr in _find_open(cluster.model_dump(by_alias=True, exclude={"gateway": {"values"}})):
            what = "API keys alone decide who is served" if path == "gateway.tls.cidrs" else "write those that are used"
            yield f"`clusters.{name}.{path}` has {cidr}: the NetworkPolicy allows all addresses, so {what}"


def _find_open(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, Mapping):
            yield from _find_open(value, path)
        elif key == "cidrs":
            yield from ((path, cidr) for cidr in value if ip_network(cidr).prefixlen == 0)
