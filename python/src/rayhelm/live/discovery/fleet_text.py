"""Write found pools as the beginning of a fleet file."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import yaml

from rayhelm.live.discovery.machine import Unusable, group_by_reason
from rayhelm.live.discovery.pools import FoundPool

__all__ = ["format_fleet"]


def format_fleet(
    fleet: str,
    cluster: str,
    settings: Mapping[str, Any],
    notes: Sequence[str],
    pools: Sequence[FoundPool],
    unusable: Sequence[Unusable],
    own_gpus: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return YAML: the cluster, its pools, and as comments what was assumed and what was left out.

    `settings` are keys of the cluster, `notes` what is not known about it. `own_gpus`: GPUs as another fleet file
    describes them; those of the pools are written."""
    gpus = sum(machine.gpus for pool in pools for machine in pool.machines)
    nodes = sum(len(pool.machines) for pool in pools)
    lines = [
        f"# Written by `rayhelm discover`: {gpus} GPUs on {nodes} nodes. Add `models`: `rayhelm explain models`.",
        f"fleet: {_format(fleet)}",
        "clusters:",
        f"  {_format(cluster)}:" if settings else f"  {_format(cluster)}: {{}}",
        *(f"    {key}: {_format(value)}" for key, value in settings.items()),
        *(f"    # {note}" for note in notes),
    ]
    if described := {name: figures for name, figures in own_gpus.items() if name in _list_gpus(pools)}:
        lines += ["gpus:", *(f"  {_format(name)}: {_format(figures)}" for name, figures in described.items())]
    lines.append("pools:")
    for pool in pools:
        lines += [f"  {pool.name}:", *(f"    {line}" for line in _list_lines(pool))]
    for names, node in group_by_reason(unusable):
        lines.append(f"  # {names} {'are' if names.startswith('nodes ') else 'is'} left out: {node.reason}")
    return "\n".join(lines) + "\n"


def _list_gpus(pools: Sequence[FoundPool]) -> set[str]:
    return {machine.gpu.of or machine.gpu.id for pool in pools for machine in pool.machines}


def _list_lines(pool: FoundPool) -> Iterator[str]:
    for key, value in pool.fields.items():
        note = pool.notes.get(key)
        yield f"{key}: {_format(value)}" + (f"   # {note}" if note else "")


def _format(value: object) -> str:
    """A value as YAML in one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("...").strip()
