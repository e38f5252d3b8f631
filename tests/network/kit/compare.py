"""The list of flows held against what the analyser found, in both directions."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from network.kit.analyser import Block, connections
from network.kit.world import Pod, World
from rayhelm.network import Addresses, End, Own, Passage, Pods, passages

__all__ = ["differences", "expected", "reached"]


@dataclass(frozen=True)
class Way:
    """From pods to pods, or to addresses, on one port."""

    source: Pod | Block
    target: Pod | Block
    port: str


def differences(world: World) -> list[str]:
    """What is closed although a flow says open, and what is open although none does; empty where both agree."""
    wanted, found = expected(world), reached(world)
    missing = [(way, passage) for way, passage in wanted.items() if way not in found]
    extra = [way for way in found if way not in wanted]
    return list(
        dict.fromkeys(
            [
                *(f"closed, but open by flow {_named(passage)}: {_told(way)}" for way, passage in missing),
                *(f"open, but no flow says so: {_told(way)}{_hint(way, world)}" for way in extra),
            ]
        )
    )


def expected(world: World) -> dict[Way, Passage]:
    """What the flows that are on let through, each with one that does."""
    return _ways(world, on=True)


def reached(world: World) -> set[Way]:
    """What may pass from or to a pod that the charts answer for."""
    pods, guarded = {pod.key: pod for pod in world.pods}, world.guarded
    ours = [found for found in connections(world) if {found.source, found.target} & guarded]
    return set(_merged((_pod_or(found.source, pods), _pod_or(found.target, pods), found.port) for found in ours))


def _ways(world: World, *, on: bool) -> dict[Way, Passage]:
    ways: dict[Way, Passage] = {}
    for site in world.sites:
        for passage in passages(site):
            if passage.is_on is not on:
                continue
            sources = [end for one in passage.sources for end in _resolved(one, world)]
            targets = [end for one in passage.targets for end in _resolved(one, world)]
            pairs = ((source, target, port) for source in sources for target in targets for port in passage.ports)
            for way in _merged(pair for pair in pairs if pair[0] != pair[1]):
                ways.setdefault(way, passage)
    return ways


def _resolved(end: End, world: World) -> Iterator[Pod | Block]:
    if isinstance(end, Addresses):
        yield from _blocks(end)
    else:
        yield from (pod for pod in world.pods if pod.namespace == end.namespace and _is_of(pod, end))


def _is_of(pod: Pod, end: Own | Pods) -> bool:
    """Of two in one namespace."""
    if isinstance(end, Pods):
        return set(end.labels) <= pod.labels.items()
    return end.role == "everybody" or (pod.release, pod.role) == (f"{end.chart}/{end.release}", end.role)


def _blocks(end: Addresses) -> Iterator[Block]:
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


def _named(passage: Passage) -> str:
    return f"`{passage.flow}` of {passage.site.chart} {passage.site.name}"


def _told(way: Way) -> str:
    source, target = (end.about if isinstance(end, Pod) else str(end) for end in (way.source, way.target))
    return f"{source} -> {target}, {way.port}"


def _hint(way: Way, world: World) -> str:
    """The flow that would allow it, were its values so."""
    closed = _ways(world, on=False).get(way)
    if not closed:
        return ""
    values = ", ".join(f"{path}: {json.dumps(value)}" for path, value in closed.conditions.items())
    return f" (flow {_named(closed)} is for {values})"
