"""network.md: who may reach whom, as a page that people read and review."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from rayhelm.network import EVERY, Addresses, End, Passage, Pods, Site, passages, site_of
from rayhelm.network.table import opened_by
from rayhelm.render.releases import Release

__all__ = ["network_page"]


@dataclass(frozen=True)
class Row:
    """A flow in the words of the page."""

    flow: str
    source: str
    target: str
    ports: str
    opened_by: str
    why: str


@dataclass(frozen=True)
class Part:
    """One release."""

    title: str
    reason: str
    """Why it has no NetworkPolicies; empty where it has."""
    open: tuple[Row, ...]
    closed: tuple[Row, ...]


def network_page(fleet: str, releases: Sequence[Release]) -> str:
    """The flows of all releases, cluster by cluster."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    template = files("rayhelm").joinpath("data/templates/network.md.j2").read_text(encoding="utf-8")
    clusters = dict.fromkeys(release.cluster for release in releases)
    parts = {
        cluster: list(_parts(release for release in releases if release.cluster == cluster)) for cluster in clusters
    }
    return environment.from_string(template).render(fleet=fleet, clusters=parts).rstrip() + "\n"


def _parts(releases: Iterable[Release]) -> Iterator[Part]:
    for release in releases:
        if site := site_of(release):
            found = passages(site)
            yield Part(
                f"{site.chart} `{site.name}`, namespace `{site.namespace}`",
                _reason(site),
                tuple(_row(each) for each in found if each.is_on),
                tuple(_row(each) for each in found if not each.is_on),
            )


def _reason(site: Site) -> str:
    policy = site.values["networkPolicy"]
    return "" if policy.get("enabled", True) else str(policy["reason"])


def _row(passage: Passage) -> Row:
    return Row(
        flow=passage.flow,
        source=_who(passage.source, passage.sources),
        target=_who(passage.target, passage.targets),
        ports=_ports(passage.ports),
        opened_by=opened_by(passage.conditions),
        why=passage.why,
    )


def _who(called: Sequence[str], ends: Sequence[End]) -> str:
    """What readers know somebody by, and for others than the release's own pods where they are."""
    places = ", ".join(text for end in ends if (text := _place(end)))
    return f"{', '.join(called)}{': ' if places else ''}{places}"


def _place(end: End) -> str:
    if isinstance(end, Addresses):
        without = ", ".join(f"`{cidr}`" for cidr in end.without)
        return f"`{end.cidr}`" + (f" without {without}" if without else "")
    if isinstance(end, Pods) or not end.role:
        labels = dict(end.labels)
        if service := labels.get("rayhelm.dev/service"):
            return f"`{end.namespace}` (`{service}`)"
        return f"`{end.namespace}`" + (
            f" ({', '.join(f'`{key}={value}`' for key, value in end.labels)})" if labels else ""
        )
    return ""


def _ports(ports: Sequence[str]) -> str:
    """`TCP 443, 6443`."""
    if EVERY in ports:
        return "all"
    pairs = sorted((protocol, int(number)) for protocol, number in map(str.split, ports))
    return "; ".join(
        f"{protocol} {', '.join(str(number) for _, number in group)}"
        for protocol, group in groupby(pairs, key=lambda pair: pair[0])
    )
