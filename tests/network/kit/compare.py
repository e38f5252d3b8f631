"""The list of flows held against what the analyser found, in both directions."""

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import product

from network.kit.analyser import Block, connections
from network.kit.world import Pod, World
from rayhelm.network import AddressBlock, AllowedFlow, FlowEnd, NamedPods, ReleasePods, find_allowed_flows

__all__ = ["differences", "expected", "reached"]


@dataclass(frozen=True)
class Way:
    """From pods to pods, or to addresses, on one port."""

    source: Pod | Block
    target: Pod | Block
    port: str

    def is_within(self, other: "Way") -> bool:
        ends = ((self.source, other.source), (self.target, other.target))
        return self.port == other.port and all(_is_within(own, wider) for own, wider in ends)


def _is_within(end: Pod | Block, wider: Pod | Block) -> bool:
    if isinstance(end, Block) and isinstance(wider, Block):
        return wider.first <= end.first and end.last <= wider.last
    return end == wider


def differences(world: World) -> list[str]:
    """What is closed although a flow says open, and what is open although none does; empty where both agree."""
    agreed, found = _agreed(world), reached(world)
    wanted = _expected(agreed)
    missing = [(way, allowed) for way, allowed in wanted.items() if way not in found]
    extra = [way for way in found if way not in wanted]
    return list(
        dict.fromkeys(
            [
                *_one_sided(world, agreed),
                *(f"closed, but open by flow {_named(allowed)}: {_told(way)}" for way, allowed in missing),
                *(f"open, but no flow says so: {_told(way)}{_hint(way, world)}" for way in extra),
            ]
        )
    )


def expected(world: World) -> dict[Way, AllowedFlow]:
    """What the flows that are on let through, each with one that does."""
    return _expected(_agreed(world))


def _expected(agreed: dict[Way, AllowedFlow]) -> dict[Way, AllowedFlow]:
    merged = _merged((way.source, way.target, way.port) for way in agreed)
    return {way: next(allowed for part, allowed in agreed.items() if part.is_within(way)) for way in merged}


def _agreed(world: World) -> dict[Way, AllowedFlow]:
    """Where an end has policies of its own, a flow of a release that has them has to let it through."""
    ways: dict[Way, list[tuple[AllowedFlow, FlowEnd, FlowEnd]]] = {}
    for allowed, source, target in _list_allowed_flows(world, on=True):
        for way in _between(source, target, allowed.ports, world):
            ways.setdefault(way, []).append((allowed, source, target))
    return {
        way: by[0][0]
        for way, by in ways.items()
        if not _is_guarded(way.source, world) or any(isinstance(source, ReleasePods) for _, source, _ in by)
        if not _is_guarded(way.target, world) or any(isinstance(target, ReleasePods) for _, _, target in by)
    }


def _is_guarded(end: Pod | Block, world: World) -> bool:
    return isinstance(end, Pod) and end.key in world.guarded


def _one_sided(world: World, agreed: Container[Way]) -> Iterator[str]:
    """Flows to or from somebody whose own flows let nothing of it through."""
    for allowed, source, target in _list_allowed_flows(world, on=True):
        ways = _between(source, target, allowed.ports, world)
        if ways and not any(way in agreed for way in ways):
            yield f"open at one end alone, by flow {_named(allowed)}: {_told(ways[0])}"


def reached(world: World) -> set[Way]:
    """What may pass from or to a pod that the charts answer for."""
    pods, guarded = {pod.key: pod for pod in world.pods}, world.guarded
    ours = [found for found in connections(world) if {found.source, found.target} & guarded]
    return set(_merged((_pod_or(found.source, pods), _pod_or(found.target, pods), found.port) for found in ours))


def _list_allowed_flows(world: World, *, on: bool) -> Iterator[tuple[AllowedFlow, FlowEnd, FlowEnd]]:
    """Each flow that is on, or off, with each pair of its ends."""
    for allowed in (
        allowed for network_release in world.network_releases for allowed in find_allowed_flows(network_release)
    ):
        if allowed.is_on is on:
            yield from ((allowed, source, target) for source, target in product(allowed.sources, allowed.targets))


def _between(source: FlowEnd, target: FlowEnd, ports: Iterable[str], world: World) -> list[Way]:
    pairs = product(_resolved(source, world), _resolved(target, world), ports)
    return _merged(way for way in pairs if way[0] != way[1])


def _resolved(end: FlowEnd, world: World) -> Iterator[Pod | Block]:
    if isinstance(end, AddressBlock):
        yield from _blocks(end)
    else:
        yield from (pod for pod in world.pods if pod.namespace == end.namespace and _is_of(pod, end))


def _is_of(pod: Pod, end: ReleasePods | NamedPods) -> bool:
    """Of two in one namespace."""
    if isinstance(end, NamedPods) or end.labels:
        return set(end.labels) <= pod.labels.items()
    if end.chart == "tenant":
        return end.role != "team" or "rayhelm.dev/service" not in pod.labels
    return (pod.release, pod.role) == (f"{end.chart}/{end.release}", end.role)


def _blocks(end: AddressBlock) -> Iterator[Block]:
    networks = [IPv4Network(end.cidr)]
    for hole in map(IPv4Network, end.without):
        networks = [
            part
            for network in networks
            for part in (network.address_exclude(hole) if hole.subnet_of(network) else [network])
        ]
    yield from (Block(int(network[0]), int(network[-1])) for network in networks)


def _merged(ways: Iterable[tuple[Pod | Block, Pod | Block, str]]) -> list[Way]:
    """Neighbouring blocks joined, so that however somebody cut them does not matter."""
    pods: list[Way] = []
    blocks: dict[tuple[object, str, bool], list[Block]] = {}
    for source, target, port in ways:
        if isinstance(source, Block):
            blocks.setdefault((target, port, True), []).append(source)
        elif isinstance(target, Block):
            blocks.setdefault((source, port, False), []).append(target)
        else:
            pods.append(Way(source, target, port))
    for (pod, port, inward), parts in blocks.items():
        assert isinstance(pod, Pod)
        pods += [Way(block, pod, port) if inward else Way(pod, block, port) for block in _joined(parts)]
    return list(dict.fromkeys(pods))


def _joined(blocks: Iterable[Block]) -> list[Block]:
    joined: list[Block] = []
    for block in sorted(blocks):
        if joined and block.first <= joined[-1].last + 1:
            joined[-1] = Block(joined[-1].first, max(joined[-1].last, block.last))
        else:
            joined.append(block)
    return joined


def _pod_or(end: str | Block, pods: dict[str, Pod]) -> Pod | Block:
    return end if isinstance(end, Block) else pods[end]


# -- words -------------------------------------------------------------------------------------------------------------


def _named(allowed: AllowedFlow) -> str:
    return f"`{allowed.flow}` of {allowed.network_release.chart} {allowed.network_release.name}"


def _told(way: Way) -> str:
    source, target = (end.about if isinstance(end, Pod) else str(end) for end in (way.source, way.target))
    return f"{source} -> {target}, {way.port}"


def _hint(way: Way, world: World) -> str:
    """The flow that would allow it, were its values so."""
    for allowed, source, target in _list_allowed_flows(world, on=False):
        if way in _between(source, target, allowed.ports, world):
            values = ", ".join(f"{path}: {json.dumps(value)}" for path, value in allowed.conditions.items())
            return f" (flow {_named(allowed)} is for {values})"
    return ""
