"""The flows of one release: each with the pods and addresses that its values name. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rayhelm.deploy.network.flows import PODS, ChartFlows, Flow, Value, load_chart_flows

__all__ = [
    "ALL_PORTS",
    "AddressBlock",
    "AllowedFlow",
    "FlowEnd",
    "NamedPods",
    "NetworkRelease",
    "ReleasePods",
    "find_allowed_flows",
]

ALL_PORTS = "every"
"""All ports of all protocols."""
NAMING = {"namespace", "cidrs", "peer"}
"""Keys of a value that names one peer. A map without them has an entry for each of several peers."""


@dataclass(frozen=True)
class NetworkRelease:
    """A release with its namespace and values."""

    chart: str
    name: str
    namespace: str
    """Namespace of its pods."""
    values: Mapping[str, Any]
    """All values, defaults included, with the keys of YAML."""


@dataclass(frozen=True)
class ReleasePods:
    """Pods of the release itself."""

    chart: str
    release: str
    namespace: str
    role: str
    """Empty for pods that the values name by `labels`."""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NamedPods:
    """Pods of other releases, which values name."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    """Empty for all pods of the namespace."""


@dataclass(frozen=True)
class AddressBlock:
    cidr: str
    without: tuple[str, ...] = ()
    """Blocks that are excluded."""


FlowEnd = ReleasePods | NamedPods | AddressBlock


@dataclass(frozen=True)
class AllowedFlow:
    """Connections that the policies of a release allow, or would allow with other values."""

    flow: str
    network_release: NetworkRelease
    sources: tuple[FlowEnd, ...]
    targets: tuple[FlowEnd, ...]
    ports: tuple[str, ...]
    """`TCP 8000`, or `every`."""
    source: tuple[str, ...]
    """Names of the sources for readers."""
    target: tuple[str, ...]
    why: str
    conditions: Mapping[str, Value]
    is_on: bool
    """The values allow the flow."""


def find_allowed_flows(network_release: NetworkRelease) -> list[AllowedFlow]:
    """Return all flows of a release, also those that its values do not allow, but none with an empty end."""
    flows = load_chart_flows()[network_release.chart]
    closing = _hold(flows.policies, network_release.values)
    return [
        allowed
        for name, flow in flows.flows.items()
        for allowed in _expand_flow(
            name, flow, flows, network_release, is_on=closing and _hold(flow.while_, network_release.values)
        )
    ]


def _expand_flow(
    name: str, flow: Flow, flows: ChartFlows, network_release: NetworkRelease, *, is_on: bool
) -> Iterator[AllowedFlow]:
    called = flows.pods | flows.others
    for each in _find(flow.each, network_release.values) if flow.each else [{}]:
        scope = {**network_release.values, "each": each}
        sources = tuple(
            _convert_to_own(end, flow, network_release)
            for path in flow.from_
            for value in _resolve_path(path, scope)
            for end in _list_ends(value, network_release)
        )
        targets: dict[tuple[str, ...], list[FlowEnd]] = {}
        for path in flow.to:
            for value in _resolve_path(path, scope):
                for entry in _list_entries(value):
                    ports = _resolve_ports(flow.ports, {**scope, "to": entry})
                    targets.setdefault(ports, []).extend(
                        _convert_to_own(end, flow, network_release) for end in _list_ends(entry, network_release)
                    )
        for ports, ends in targets.items():
            if not is_on or (sources and ends):
                yield AllowedFlow(
                    flow=name,
                    network_release=network_release,
                    sources=tuple(dict.fromkeys(sources)),
                    targets=tuple(dict.fromkeys(ends)),
                    ports=ports,
                    source=tuple(called[path] for path in flow.from_),
                    target=tuple(called[path] for path in flow.to),
                    why=flow.why,
                    conditions=flow.while_,
                    is_on=is_on,
                )


def _convert_to_own(end: FlowEnd, flow: Flow, network_release: NetworkRelease) -> FlowEnd:
    if isinstance(end, NamedPods) and flow.same_namespace and end.namespace == network_release.namespace:
        return ReleasePods(network_release.chart, network_release.name, network_release.namespace, "", end.labels)
    return end


def _hold(conditions: Mapping[str, Value], values: Mapping[str, Any]) -> bool:
    """Return whether each path has its value. If a path finds several values, one of them is enough."""
    return all(wanted in _find(path, values) for path, wanted in conditions.items())


def _find(path: str, values: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values at a path. Raises KeyError for a path that does not exist."""
    first, _, rest = path.partition(".")
    for found in values.values() if first == "*" else [values[first]]:
        yield from _find(rest, found) if rest else [found]


def _resolve_path(path: str, scope: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a role as it is, pods(PATH) as a peer in the release's namespace, else the values at the path."""
    if pods := PODS.fullmatch(path):
        yield from ({"podLabels": labels, "namespace": None} for labels in _find(pods[1], scope))
    elif "." in path:
        yield from _find(path, scope)
    else:
        yield path


def _list_entries(value: Any) -> list[Any]:
    """Return the entries of a map by name; anything else as one item."""
    return list(value.values()) if isinstance(value, Mapping) and not value.keys() & NAMING else [value]


def _list_ends(value: Any, network_release: NetworkRelease) -> Iterator[FlowEnd]:
    """Yield pods and addresses of a role, a peer, an egress entry, an endpoint, or a map of these."""
    if isinstance(value, str):
        yield ReleasePods(network_release.chart, network_release.name, _find_namespace(value, network_release), value)
    elif value.get("service"):
        # Only the workers of a RayService serve.
        labels = {"rayhelm.dev/service": value["service"], "rayhelm.dev/role": "worker"}
        yield _build_pods(value["namespace"] or network_release.namespace, labels)
    elif not value.keys() & NAMING:
        for entry in value.values():
            yield from _list_ends(entry, network_release)
    else:
        yield from _list_ends(value.get("peer", {}), network_release)
        if "podLabels" in value and _selects_pods(value):
            yield _build_pods(value["namespace"] or network_release.namespace, value["podLabels"])
        yield from (AddressBlock(cidr, tuple(value.get("except", ()))) for cidr in value.get("cidrs", ()))


def _find_namespace(role: str, network_release: NetworkRelease) -> str:
    """Return the namespace of a role: that of the release, unless a value names another one."""
    path = load_chart_flows()[network_release.chart].namespaces.get(role)
    return str(next(_find(path, network_release.values)) if path else "") or network_release.namespace


def _selects_pods(peer: Mapping[str, Any]) -> bool:
    """Return whether a peer selects pods: labels alone do, in the namespace of the release."""
    return bool(peer["namespace"] or (peer["namespace"] is None and peer["podLabels"]))


def _build_pods(namespace: str, labels: Mapping[str, Any]) -> NamedPods:
    return NamedPods(namespace, tuple(sorted((key, str(label)) for key, label in labels.items())))


def _resolve_ports(wanted: tuple[int | str, ...], scope: Mapping[str, Any]) -> tuple[str, ...]:
    if wanted == (ALL_PORTS,):
        return wanted
    return tuple(port for one in wanted for port in _resolve_port(one, scope)) or (ALL_PORTS,)


def _resolve_port(wanted: int | str, scope: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(wanted, int):
        yield f"TCP {wanted}"
    elif "/" in wanted:
        number, protocol = wanted.split("/")
        yield f"{protocol} {number}"
    else:
        for found in _find(wanted, scope):
            for port in found if isinstance(found, list) else [found]:
                yield f"TCP {int(port)}"
