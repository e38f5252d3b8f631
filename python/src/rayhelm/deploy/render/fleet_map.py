"""Draw the nodes of a fleet: each GPU's memory as a bar, the models by color, as SVG.

Nodes with the same content are drawn once. The text needs no font file and no network, and colors follow the reader's
light or dark scheme.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from rayhelm.planner.gpu_map import MappedNode, ModelPart, map_pool
from rayhelm.planner.plan import ModelPlan, NodeGroup, Plan

__all__ = ["draw_fleet_map"]

COLORS = 10
"""Colors of models in the style sheet; further models begin again with the first."""
_LEFT, _BARS, _CELL, _GAP, _BAR = 24, 192, 93, 5, 20
"""Pixels: left edge of the text and of the bars, width of a GPU with and without the gap after it, height of a bar."""
_LINE, _HEAD, _ROW = 42, 30, 22
"""Pixels: height of a line of GPUs, of the title of a pool, and of a row of the legend."""
_PER_LINE = 8
_TOP = 92
"""Height of the title and of the key of the bars, pixels."""
_LETTERS = 14
"""Characters below a bar."""

Parts = tuple[ModelPart, ...]


@dataclass(frozen=True)
class _Segment:
    """A part of a bar."""

    x: float
    width: float
    style: str


@dataclass(frozen=True)
class _Gpu:
    x: float
    y: float
    segments: tuple[_Segment, ...]
    label: str
    about: str
    """What a reader with a pointer or a screen reader gets."""


@dataclass(frozen=True)
class _Node:
    y: float
    height: float
    name: str
    gpus: tuple[_Gpu, ...]


@dataclass(frozen=True)
class _Pool:
    y: float
    title: str
    about: str
    nodes: tuple[_Node, ...]


def draw_fleet_map(plan: Plan) -> str:
    """Return the drawing."""
    from jinja2 import Environment, StrictUndefined

    styles = {name: f"c{index % COLORS}" for index, name in enumerate(plan.models)}
    ys, pools = _TOP, []
    for name in plan.pools:
        pool = _draw_pool(name, plan, styles, ys)
        pools.append(pool)
        ys = round(pool.nodes[-1].y + pool.nodes[-1].height) + 14 if pool.nodes else ys + _HEAD
    legend = [
        {"y": ys + 26 + _ROW * row, "style": styles[name], "text": _describe(model, plan)}
        for row, (name, model) in enumerate(plan.models.items())
    ]
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True)
    template = files("rayhelm").joinpath("data/templates/fleet-map.svg.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        plan=plan,
        summary=_summarize(plan),
        pools=pools,
        legend=legend,
        height=ys + 26 + _ROW * len(legend),
        cell=_CELL - _GAP,
        bar=_BAR,
        left=_LEFT,
        bars=_BARS,
    )


def _summarize(plan: Plan) -> str:
    gpus, used = sum(pool.gpus for pool in plan.pools.values()), sum(pool.used for pool in plan.pools.values())
    price = "" if plan.price_per_hour is None else f" · {plan.price_per_hour:.2f} USD/h"
    return f"{round(used, 2):g} of {gpus} GPUs used at the planned load{price}"


def _describe(model: ModelPlan, plan: Plan) -> str:
    tenants = [name for name, tenant in plan.tenants.items() if model.served_as in tenant.models]
    price = "price unknown" if model.price_per_hour is None else f"{model.price_per_hour:.2f} USD/h"
    replicas = "1 replica" if model.replicas == 1 else f"{model.replicas} replicas"
    of_each = f"{model.gpu_fraction:g} of a GPU" if model.gpu_fraction < 1 else model.split
    served = f" · for {', '.join(tenants)}" if tenants else ""
    return f"{model.model} · {replicas}, {of_each} · {model.gpu} · {price}{served}"


def _draw_pool(name: str, plan: Plan, styles: dict[str, str], y: int) -> _Pool:
    use = plan.pools[name]
    about = [f"{use.gpus} x {use.gpu}", *([use.sharing] if use.sharing else []), use.network]
    clusters = {pool.cluster for pool in plan.pools.values()}
    place = f" in cluster {use.cluster}" if len(clusters) > 1 else ""
    nodes: list[_Node] = []
    below = y + _HEAD
    for alike in _group(map_pool(plan, name), use.nodes):
        node = _draw_node(alike, styles, below)
        nodes.append(node)
        below = round(node.y + node.height) + 6
    return _Pool(y + 18, f"{name}{place}", f"{' · '.join(about)} · {round(use.used, 2):g} used", tuple(nodes))


def _group(nodes: Iterable[MappedNode], kinds: Sequence[NodeGroup]) -> list[list[MappedNode]]:
    """Nodes with the same content: free ones last, others by kind and the names of their models."""
    found: dict[MappedNode, list[MappedNode]] = {}
    for each in nodes:
        node = replace(each, gpus=tuple(sorted(each.gpus, key=_rank)))
        found.setdefault(node, []).append(node)
    return sorted(
        found.values(),
        key=lambda alike: (
            not any(alike[0].gpus),
            kinds.index(alike[0].group),
            [_rank(parts) for parts in alike[0].gpus],
        ),
    )


def _rank(parts: Parts) -> tuple[bool, list[str]]:
    return not parts, [part.model for part in parts]


def _draw_node(alike: list[MappedNode], styles: dict[str, str], y: int) -> _Node:
    node, lines = alike[0], -(-len(alike[0].gpus) // _PER_LINE)
    name = node.group.name or ("1 node" if len(alike) == 1 else f"{len(alike)} nodes")
    part = node.group.gpu.partition("/")[2]
    part = "time slices" if part.isdigit() else part
    gpus = tuple(
        _draw_gpu(gpu, node, styles, _BARS + _CELL * (index % _PER_LINE), y + 6 + _LINE * (index // _PER_LINE))
        for index, gpu in enumerate(node.gpus)
    )
    return _Node(y, _LINE * lines + 4, f"{name}, {part}" if part else name, gpus)


def _draw_gpu(parts: Parts, node: MappedNode, styles: dict[str, str], x: float, y: float) -> _Gpu:
    labels = list(dict.fromkeys(part.model for part in parts))
    label = labels[0] if len(labels) == 1 else f"{len(labels)} models" if labels else "free"
    short = label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…"
    return _Gpu(x, y, tuple(_list_segments(parts, node, styles, x)), short, _tell(parts, node))


def _list_segments(parts: Parts, node: MappedNode, styles: dict[str, str], x: float) -> Iterator[_Segment]:
    """Yield weights and KV cache of each model. Without known memory, its share."""
    width, memory = _CELL - _GAP, node.group.memory_gib
    for part in parts:
        if not memory:
            yield _Segment(x, part.share * width, styles[part.model])
            x += part.share * width
            continue
        for gib, style in ((part.weights_gib, styles[part.model]), (part.kv_gib, f"{styles[part.model]} kv")):
            size = width * gib / memory
            if size:
                yield _Segment(round(x, 2), round(size, 2), style)
            x += size


def _tell(parts: Parts, node: MappedNode) -> str:
    memory = node.group.memory_gib
    kind = f"{node.group.gpu}, {memory:.1f} GiB" if memory else node.group.gpu
    if not parts:
        return f"{kind}: free"
    each = (f"{part.model} {part.weights_gib:.1f} GiB weights, {part.kv_gib:.1f} GiB KV cache" for part in parts)
    return f"{kind}: {'; '.join(each)}"
