"""network.md: the allowed flows, as a page for review."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from rayhelm.deploy.markdown import escape_texts
from rayhelm.deploy.network import (
    ALL_PORTS,
    AddressBlock,
    AllowedFlow,
    FlowEnd,
    NamedPods,
    NetworkRelease,
    find_allowed_flows,
    to_network_release,
)
from rayhelm.deploy.network.table import format_conditions
from rayhelm.deploy.render.releases import Release

__all__ = ["build_network_page"]


@dataclass(frozen=True)
class FlowRow:
    """A flow as the page shows it."""

    flow: str
    source: str
    target: str
    ports: str
    opened_by: str
    why: str


@dataclass(frozen=True)
class ReleaseSection:
    """One release."""

    title: str
    reason: str
    """Why the release has no NetworkPolicies; empty if it has."""
    open: tuple[FlowRow, ...]
    closed: tuple[FlowRow, ...]


def build_network_page(fleet: str, releases: Sequence[Release]) -> str:
    """Return the page: the flows of all releases, by cluster."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=escape_texts)
    template = files("rayhelm").joinpath("data/templates/network.md.j2").read_text(encoding="utf-8")
    clusters = dict.fromkeys(release.cluster for release in releases)
    parts = {
        cluster: list(_build_sections(release for release in releases if release.cluster == cluster))
        for cluster in clusters
    }
    return environment.from_string(template).render(fleet=fleet, clusters=parts).rstrip() + "\n"


def _build_sections(releases: Iterable[Release]) -> Iterator[ReleaseSection]:
    for release in releases:
        if network_release := to_network_release(release):
            found = find_allowed_flows(network_release)
            yield ReleaseSection(
                f"{network_release.chart} `{network_release.name}`, namespace `{network_release.namespace}`",
                _find_reason(network_release),
                tuple(_build_row(each) for each in found if each.is_on),
                tuple(_build_row(each) for each in found if not each.is_on),
            )


def _find_reason(network_release: NetworkRelease) -> str:
    policy = network_release.values["networkPolicy"]
    return "" if policy.get("enabled", True) else str(policy["reason"])


def _build_row(allowed: AllowedFlow) -> FlowRow:
    return FlowRow(
        flow=allowed.flow,
        source=_format_end(allowed.source, allowed.sources),
        target=_format_end(allowed.target, allowed.targets),
        ports=_format_ports(allowed.ports),
        opened_by=format_conditions(allowed.conditions),
        why=allowed.why,
    )


def _format_end(called: Sequence[str], ends: Sequence[FlowEnd]) -> str:
    """Return the names of one end of a flow, and for pods of other releases their location."""
    places = ", ".join(text for end in ends if (text := _format_place(end)))
    return f"{', '.join(called)}{': ' if places else ''}{places}"


def _format_place(end: FlowEnd) -> str:
    if isinstance(end, AddressBlock):
        without = ", ".join(f"`{cidr}`" for cidr in end.without)
        return f"`{end.cidr}`" + (f" without {without}" if without else "")
    if isinstance(end, NamedPods) or not end.role:
        labels = dict(end.labels)
        if service := labels.get("rayhelm.dev/service"):
            return f"`{end.namespace}` (`{service}`)"
        return f"`{end.namespace}`" + (
            f" ({', '.join(f'`{key}={value}`' for key, value in end.labels)})" if labels else ""
        )
    return ""


def _format_ports(ports: Sequence[str]) -> str:
    """Join ports of the same protocol: `TCP 443, 6443`."""
    if ALL_PORTS in ports:
        return "all"
    pairs = sorted((protocol, int(number)) for protocol, number in map(str.split, ports))
    return "; ".join(
        f"{protocol} {', '.join(str(number) for _, number in group)}"
        for protocol, group in groupby(pairs, key=lambda pair: pair[0])
    )
