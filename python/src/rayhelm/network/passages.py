"""The flows of one release: each with the pods and addresses that its values name. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rayhelm.network.flows import PODS, ChartFlows, Flow, Value, chart_flows

__all__ = ["EVERY", "Addresses", "End", "Own", "Passage", "Pods", "Site", "passages"]

EVERY = "every"
"""All ports of all protocols."""
NAMING = {"namespace", "cidrs", "peer"}
"""Keys of a value that names somebody; a map without them has an entry for each of several."""


@dataclass(frozen=True)
class Site:
    """A release, as far as the network goes."""

    chart: str
    name: str
    namespace: str
    """Namespace of its pods."""
    values: Mapping[str, Any]
    """All of its values, defaults included, in the spelling of YAML."""


@dataclass(frozen=True)
class Own:
    """Pods that the release has policies for."""

    chart: str
    release: str
    namespace: str
    role: str
    """Empty for those that its values name by `labels`."""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Pods:
    """Pods of somebody else's, whom values name."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    """None for all pods of the namespace."""


@dataclass(frozen=True)
class Addresses:
    """A block of addresses."""

    cidr: str
    without: tuple[str, ...] = ()
    """Blocks that are taken out of it."""


End = Own | Pods | Addresses


@dataclass(frozen=True)
class Passage:
    """Connections that the policies of a release let through, or would."""

    flow: str
    site: Site
    sources: tuple[End, ...]
    targets: tuple[End, ...]
    ports: tuple[str, ...]
    """`TCP 8000`, or `every`."""
    source: tuple[str, ...]
    """What readers know the sources by."""
    target: tuple[str, ...]
    why: str
    conditions: Mapping[str, Value]
    is_on: bool
    """Whether the values open it."""


def passages(site: Site) -> list[Passage]:
    """All flows of a release, the closed ones too; those of which an end is nobody are left out."""
    flows = chart_flows()[site.chart]
    closing = _hold(flows.policies, site.values)
    return [
        passage
        for name, flow in flows.flows.items()
        for passage in _of_flow(name, flow, flows, site, is_on=closing and _hold(flow.while_, site.values))
    ]


def _of_flow(name: str, flow: Flow, flows: ChartFlows, site: Site, *, is_on: bool) -> Iterator[Passage]:
    called = flows.pods | flows.others
    for each in _find(flow.each, site.values) if flow.each else [{}]:
        scope = {**site.values, "each": each}
        sources = tuple(
            _as_own(end, flow, site)
            for path in flow.from_
            for value in _of_path(path, scope)
            for end in _ends(value, site)
        )
        targets: dict[tuple[str, ...], list[End]] = {}
        for path in flow.to:
            for value in _of_path(path, scope):
                for entry in _entries(value):
                    ports = _ports(flow.ports, {**scope, "to": entry})
                    targets.setdefault(ports, []).extend(_as_own(end, flow, site) for end in _ends(entry, site))
        for ports, ends in targets.items():
            if not is_on or (sources and ends):
                yield Passage(
                    flow=name,
                    site=site,
                    sources=tuple(dict.fromkeys(sources)),
                    targets=tuple(dict.fromkeys(ends)),
                    ports=ports,
                    source=tuple(called[path] for path in flow.from_),
                    target=tuple(called[path] for path in flow.to),
                    why=flow.why,
                    conditions=flow.while_,
                    is_on=is_on,
                )


def _as_own(end: End, flow: Flow, site: Site) -> End:
    if isinstance(end, Pods) and flow.neighbours and end.namespace == site.namespace:
        return Own(site.chart, site.name, site.namespace, "", end.labels)
    return end


def _hold(conditions: Mapping[str, Value], values: Mapping[str, Any]) -> bool:
    """Whether each value is so; of several that a path finds, one."""
    return all(wanted in _find(path, values) for path, wanted in conditions.items())


def _find(path: str, values: Mapping[str, Any]) -> Iterator[Any]:
    """What stands at a path. Raises KeyError for one that the values do not have."""
    first, _, rest = path.partition(".")
    for found in values.values() if first == "*" else [values[first]]:
        yield from _find(rest, found) if rest else [found]


def _of_path(path: str, scope: Mapping[str, Any]) -> Iterator[Any]:
    """A role as itself; pods(PATH) as a peer in the release's own namespace; else what stands at the path."""
    if pods := PODS.fullmatch(path):
        yield from ({"podLabels": labels, "namespace": None} for labels in _find(pods[1], scope))
    elif "." in path:
        yield from _find(path, scope)
    else:
        yield path


def _entries(value: Any) -> list[Any]:
    """The entries of a map by name; anything else as it is."""
    return list(value.values()) if isinstance(value, Mapping) and not value.keys() & NAMING else [value]


def _ends(value: Any, site: Site) -> Iterator[End]:
    """Pods and addresses: of a role, a peer, peers or addresses with their ports, an endpoint, or a map of these."""
    if isinstance(value, str):
        yield Own(site.chart, site.name, site.namespace, value)
    elif value.get("service"):
        # Of a RayService the workers alone serve.
        labels = {"rayhelm.dev/service": value["service"], "rayhelm.dev/role": "worker"}
        yield _pods(value["namespace"] or site.namespace, labels)
    elif not value.keys() & NAMING:
        for entry in value.values():
            yield from _ends(entry, site)
    else:
        yield from _ends(value.get("peer", {}), site)
        if "podLabels" in value and value["namespace"] != "":
            yield _pods(value["namespace"] or site.namespace, value["podLabels"])
        yield from (Addresses(cidr, tuple(value.get("except", ()))) for cidr in value.get("cidrs", ()))


def _pods(namespace: str, labels: Mapping[str, Any]) -> Pods:
    return Pods(namespace, tuple(sorted((key, str(label)) for key, label in labels.items())))


def _ports(wanted: tuple[int | str, ...], scope: Mapping[str, Any]) -> tuple[str, ...]:
    if wanted == (EVERY,):
        return wanted
    return tuple(port for one in wanted for port in _port(one, scope)) or (EVERY,)


def _port(wanted: int | str, scope: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(wanted, int):
        yield f"TCP {wanted}"
    elif "/" in wanted:
        number, protocol = wanted.split("/")
        yield f"{protocol} {number}"
    else:
        for found in _find(wanted, scope):
            for port in found if isinstance(found, list) else [found]:
                yield f"TCP {int(port)}"
