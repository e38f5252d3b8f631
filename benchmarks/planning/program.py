"""The placement of a fleet as an integer program over the planner's own candidates.

Each model gets one of its candidates. Hosts of a pool with the same GPU are interchangeable, so the program counts them
by the sizes of what is on them. It counts the GPUs that the models of a service share in the same way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS
from rayhelm.planner.placement.inventory import HostInventory, PoolInventory

__all__ = ["USD", "GpuGroup", "Pattern", "Program", "Row", "build_program"]

USD = 1_000_000
"""Units of the cost in one USD per hour: the price of each GPU is a whole number of units."""

Pattern = tuple[float, ...]
"""Sizes that fit together, the largest first: GPUs on a host, or fractions of a GPU."""
Terms = dict[str, int]


@dataclass(frozen=True)
class Row:
    """Limits of a sum: each term is a variable and its factor."""

    terms: Terms
    low: int | None
    high: int | None

    def holds(self, values: Mapping[str, int]) -> bool:
        total = sum(factor * values.get(name, 0) for name, factor in self.terms.items())
        return (self.low is None or self.low <= total) and (self.high is None or total <= self.high)


@dataclass
class GpuGroup:
    """The hosts of a pool with the same GPU, and the patterns that they can have."""

    pool: str
    gpu: str
    hosts: Sequence[HostInventory]
    price: int
    """Of one GPU."""
    sizes: set[float] = field(default_factory=set)
    shares: dict[str, set[float]] = field(default_factory=dict)
    """Fractions of a GPU, by service."""
    patterns: list[Pattern] = field(default_factory=list)
    shared_patterns: dict[str, list[Pattern]] = field(default_factory=dict)

    def name_pattern(self, pattern: Pattern, service: str = "") -> str:
        return f"{self.pool} {self.gpu} {service} {'+'.join(f'{size:g}' for size in pattern)}"


@dataclass
class Program:
    """Whole numbers from 0, limits of their sums, and objectives to minimize, the first one first."""

    most: dict[str, int] = field(default_factory=dict)
    """Largest value of each variable."""
    rows: list[Row] = field(default_factory=list)
    objectives: list[Terms] = field(default_factory=lambda: [{} for _ in range(FLAGS + 1)])
    """Models with each fault of a candidate, then the cost of all GPUs that pods hold."""
    columns: dict[str, dict[str, Candidate]] = field(default_factory=dict)
    """By model: its candidates by the variable that is 1 if it has this one."""
    groups: dict[tuple[str, str], GpuGroup] = field(default_factory=dict)
    """By pool and GPU."""

    def evaluate(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """Return the values of the objectives."""
        return tuple(sum(each * values.get(name, 0) for name, each in terms.items()) for terms in self.objectives)


def build_program(inventories: Mapping[str, PoolInventory], candidates: Mapping[str, Iterable[Candidate]]) -> Program:
    """Build the program. `candidates`: by model. Raises ValueError for hosts that are not alike, several clusters and
    unknown prices, which it does not describe."""
    program = Program(groups=dict(_list_groups(inventories)))
    needed: dict[tuple[str, str], list[tuple[str, Candidate]]] = {key: [] for key in program.groups}
    for model, found in candidates.items():
        program.columns[model] = {f"{model} {index}": each for index, each in enumerate(_drop_dominated(found))}
        program.rows.append(Row(dict.fromkeys(program.columns[model], 1), 1, 1))
        for name, candidate in program.columns[model].items():
            program.most[name] = 1
            needed[find_group(candidate)].append((name, candidate))
            for objective, fault in zip(program.objectives, candidate.faults, strict=False):
                if fault:
                    objective[name] = 1
    for key, group in program.groups.items():
        _add_group(program, group, needed[key])
    return program


def find_group(candidate: Candidate) -> tuple[str, str]:
    return candidate.split.inventory.name, candidate.split.gpu.id


def count_parts(candidate: Candidate) -> int:
    """Return the parts of all replicas: each is on one host, and has `gpus_per_node` GPUs or a fraction of one."""
    return candidate.replicas * candidate.split.nodes


def get_size(candidate: Candidate) -> float:
    return candidate.share if candidate.share < 1 else candidate.split.gpus_per_node


def _list_groups(inventories: Mapping[str, PoolInventory]) -> Iterator[tuple[tuple[str, str], GpuGroup]]:
    if len({inventory.pool.cluster for inventory in inventories.values()}) > 1:
        raise ValueError("the pools are of several clusters")
    for name, inventory in inventories.items():
        if not inventory.is_uniform:
            raise ValueError(f"pool {name}: the hosts are not alike")
        for gpu, hosts in inventory.hosts_by_gpu.items():
            price = inventory.host_price(hosts[0])
            if price is None:
                raise ValueError(f"pool {name}: the price of {gpu} is unknown")
            yield (name, gpu), GpuGroup(name, gpu, hosts, round(price * hosts[0].gpu.part * USD))


def _drop_dominated(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return one candidate of each kind that differs in more than the number of its parts: the one with fewest."""
    least: dict[tuple[object, ...], Candidate] = {}
    for each in candidates:
        kind = (find_group(each), each.split.nodes > 1, get_size(each), each.share, each.faults)
        if kind not in least or count_parts(each) < count_parts(least[kind]):
            least[kind] = each
    return list(least.values())


def _add_group(program: Program, group: GpuGroup, needed: Sequence[tuple[str, Candidate]]) -> None:
    """Add the GPUs of a group: those that whole replicas need, and those that fractions need together."""
    cost, size_of_host = program.objectives[FLAGS], group.hosts[0].gpu_count
    wanted: dict[float, Terms] = {}
    shared: dict[tuple[str, float], Terms] = {}
    for name, candidate in needed:
        size, count = get_size(candidate), count_parts(candidate)
        if candidate.split.nodes > 1 and size != size_of_host:
            raise ValueError(f"{name}: a replica over several hosts does not take whole hosts")
        if candidate.share < 1:
            shared.setdefault((candidate.model_spec.service, size), {})[name] = count
        else:
            wanted.setdefault(size, {})[name] = count
            cost[name] = group.price * count * int(size)
    for service in dict.fromkeys(service for service, _ in shared):
        shares = {size: terms for (owner, size), terms in shared.items() if owner == service}
        group.shared_patterns[service] = list_patterns(shares, 1.0)
        gpus = _add_patterns(program, group, service, group.shared_patterns[service], shares)
        for name in gpus:
            cost[name] = group.price
            wanted.setdefault(1, {})[name] = 1
    group.patterns = list_patterns(wanted, size_of_host)
    hosts = _add_patterns(program, group, "", group.patterns, wanted)
    if hosts:
        program.rows.append(Row(dict.fromkeys(hosts, 1), None, len(group.hosts)))


def _add_patterns(
    program: Program, group: GpuGroup, service: str, patterns: Sequence[Pattern], wanted: Mapping[float, Terms]
) -> list[str]:
    """Add a variable for each pattern, and a row for each size: the patterns have as many as the candidates need."""
    most = len(group.hosts) * (group.hosts[0].gpu_count if service else 1)
    names = {group.name_pattern(pattern, service): Counter(pattern) for pattern in patterns}
    program.most |= dict.fromkeys(names, most)
    for size, terms in wanted.items():
        there = {name: counts[size] for name, counts in names.items() if counts[size]}
        program.rows.append(Row(there | {name: -count for name, count in terms.items()}, 0, None))
    return list(names)


def list_patterns(sizes: Iterable[float], room: float) -> list[Pattern]:
    """Return all patterns to which no size can be added."""
    ordered = sorted((size for size in sizes if size <= room), reverse=True)
    return list(_iterate_patterns(ordered, room)) if ordered else []


def _iterate_patterns(sizes: Sequence[float], room: float) -> Iterator[Pattern]:
    size, *others = sizes
    most = int((room + 1e-9) / size)
    if not others:
        yield (size,) * most
        return
    for count in range(most, -1, -1):
        for rest in _iterate_patterns(others, room - count * size):
            yield (*(size,) * count, *rest)
