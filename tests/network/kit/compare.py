"""Compare the list of flows with what the analyzer finds, in both directions."""

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import product

from network.kit.analyzer import Block, list_connections
from network.kit.world import Pod, World
from rayhelm.deploy.network import AddressBlock, AllowedFlow, FlowEnd, NamedPods, ReleasePods, find_allowed_flows

__all__ = ["find_allowed", "find_differences", "find_expected"]


@dataclass(frozen=True)
class Connection:
    """A connection from pods or addresses to pods or addresses, on one port."""

    source: Pod | Block
    target: Pod | Block
    port: str

    def is_within(self, other: "Connection") -> bool:
        ends = ((self.source, other.source), (self.target, other.target))
        return self.port == other.port and all(_is_within(own, wider) for own, wider in ends)


def _is_within(end: Pod | Block, wider: Pod | Block) -> bool:
    if isinstance(end, Block) and isinstance(wider, Block):
        return wider.first <= end.first and end.last <= wider.last
    return end == wider


def find_differences(world: World) -> list[str]:
    """Describe listed connections that are denied and allowed ones that are not listed; empty if both agree."""
    agreed, found = _map_agreed(world), find_allowed(world)
    wanted = _map_expected(agreed)
    missing = [(connection, allowed) for connection, allowed in wanted.items() if connection not in found]
    extra = [connection for connection in found if connection not in wanted]
    return list(
        dict.fromkeys(
            [
                *_describe_one_sided(world, agreed),
                *(
                    f"closed, but open by flow {_name_flow(allowed)}: {_describe(connection)}"
                    for connection, allowed in missing
                ),
                *(
                    f"open, but no flow says so: {_describe(connection)}{_suggest_flow(connection, world)}"
                    for connection in extra
                ),
            ]
        )
    )


def find_expected(world: World) -> dict[Connection, AllowedFlow]:
    """Map each connection that the active flows allow to one such flow."""
    return _map_expected(_map_agreed(world))


def _map_expected(agreed: dict[Connection, AllowedFlow]) -> dict[Connection, AllowedFlow]:
    merged = _merge((connection.source, connection.target, connection.port) for connection in agreed)
    return {
        connection: next(allowed for part, allowed in agreed.items() if part.is_within(connection))
        for connection in merged
    }


def _map_agreed(world: World) -> dict[Connection, AllowedFlow]:
    """An end with policies of its own needs a flow of the release that has those policies."""
    connections: dict[Connection, list[tuple[AllowedFlow, FlowEnd, FlowEnd]]] = {}
    for allowed, source, target in _list_allowed_flows(world, on=True):
        for connection in _list_between(source, target, allowed.ports, world):
            connections.setdefault(connection, []).append((allowed, source, target))
    return {
        connection: by[0][0]
        for connection, by in connections.items()
        if not _is_guarded(connection.source, world) or any(isinstance(source, ReleasePods) for _, source, _ in by)
        if not _is_guarded(connection.target, world) or any(isinstance(target, ReleasePods) for _, _, target in by)
    }


def _is_guarded(end: Pod | Block, world: World) -> bool:
    return isinstance(end, Pod) and end.key in world.guarded


def _describe_one_sided(world: World, agreed: Container[Connection]) -> Iterator[str]:
    """Describe flows whose other end has policies that allow none of their connections."""
    for allowed, source, target in _list_allowed_flows(world, on=True):
        connections = _list_between(source, target, allowed.ports, world)
        if connections and not any(connection in agreed for connection in connections):
            yield f"open at one end alone, by flow {_name_flow(allowed)}: {_describe(connections[0])}"


def find_allowed(world: World) -> set[Connection]:
    """Find the allowed connections from or to a pod that a chart isolates."""
    pods, guarded = {pod.key: pod for pod in world.pods}, world.guarded
    ours = [found for found in list_connections(world) if {found.source, found.target} & guarded]
    return set(_merge((_pod_or(found.source, pods), _pod_or(found.target, pods), found.port) for found in ours))


def _list_allowed_flows(world: World, *, on: bool) -> Iterator[tuple[AllowedFlow, FlowEnd, FlowEnd]]:
    """List each flow that is on, or off, with each pair of its ends."""
    for allowed in (
        allowed for network_release in world.network_releases for allowed in find_allowed_flows(network_release)
    ):
        if allowed.is_on is on:
            yield from ((allowed, source, target) for source, target in product(allowed.sources, allowed.targets))


def _list_between(source: FlowEnd, target: FlowEnd, ports: Iterable[str], world: World) -> list[Connection]:
    pairs = product(_resolve(source, world), _resolve(target, world), ports)
    return _merge(connection for connection in pairs if connection[0] != connection[1])


def _resolve(end: FlowEnd, world: World) -> Iterator[Pod | Block]:
    if isinstance(end, AddressBlock):
        yield from _list_blocks(end)
    else:
        yield from (pod for pod in world.pods if pod.namespace == end.namespace and _is_of(pod, end))


def _is_of(pod: Pod, end: ReleasePods | NamedPods) -> bool:
    """Compare a pod with an end in the same namespace."""
    if isinstance(end, NamedPods) or end.labels:
        return set(end.labels) <= pod.labels.items()
    if end.chart == "tenant":
        return end.role != "team" or "rayhelm.dev/service" not in pod.labels
    return (pod.release, pod.role) == (f"{end.chart}/{end.release}", end.role)


def _list_blocks(end: AddressBlock) -> Iterator[Block]:
    networks = [IPv4Network(end.cidr)]
    for case in map(IPv4Network, end.without):
        networks = [
            part
            for network in networks
            for part in (network.address_exclude(case) if case.subnet_of(network) else [network])
        ]
    yield from (Block(int(network[0]), int(network[-1])) for network in networks)


def _merge(connections: Iterable[tuple[Pod | Block, Pod | Block, str]]) -> list[Connection]:
    """Join adjacent blocks, so that the comparison does not depend on how they are divided."""
    pods: list[Connection] = []
    blocks: dict[tuple[object, str, bool], list[Block]] = {}
    for source, target, port in connections:
        if isinstance(source, Block):
            blocks.setdefault((target, port, True), []).append(source)
        elif isinstance(target, Block):
            blocks.setdefault((source, port, False), []).append(target)
        else:
            pods.append(Connection(source, target, port))
    for (pod, port, inward), parts in blocks.items():
        assert isinstance(pod, Pod)
        pods += [Connection(block, pod, port) if inward else Connection(pod, block, port) for block in _join(parts)]
    return list(dict.fromkeys(pods))


def _join(blocks: Iterable[Block]) -> list[Block]:
    joined: list[Block] = []
    for block in sorted(blocks):
        if joined and block.first <= joined[-1].last + 1:
            joined[-1] = Block(joined[-1].first, max(joined[-1].last, block.last))
        else:
            joined.append(block)
    return joined


def _pod_or(end: str | Block, pods: dict[str, Pod]) -> Pod | Block:
    return end if isinstance(end, Block) else pods[end]


# -- messages ----------------------------------------------------------------------------------------------------------


def _name_flow(allowed: AllowedFlow) -> str:
    return f"`{allowed.flow}` of {allowed.network_release.chart} {allowed.network_release.name}"


def _describe(connection: Connection) -> str:
    source, target = (end.about if isinstance(end, Pod) else str(end) for end in (connection.source, connection.target))
    return f"{source} -> {target}, {connection.port}"


def _suggest_flow(connection: Connection, world: World) -> str:
    """Name the flow that would allow it with other values."""
    for allowed, source, target in _list_allowed_flows(world, on=False):
        if connection in _list_between(source, target, allowed.ports, world):
            values = ", ".join(f"{path}: {json.dumps(value)}" for path, value in allowed.conditions.items())
            return f" (flow {_name_flow(allowed)} is for {values})"
    return ""
