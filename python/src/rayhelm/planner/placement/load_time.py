"""Time until a new replica serves: reading the weights, then the start of the engine. An assumption, and stated as one.

New nodes and image pulls are not included: `nodeStart` of a pool adds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.planner.placement.pool_network import PoolNetwork
from rayhelm.planner.plan import StagePlan

__all__ = ["LoadTimes", "ReadRate", "count_weights_per_node", "estimate_load_s", "find_read_rate", "load_load_times"]


@dataclass(frozen=True)
class ReadRate:
    """Rate at which one node reads weights."""

    gib_per_s: float
    because: str


class LoadTimes(Closed):
    """Figures of `data/performance/loading.yaml`."""

    weights_gib_per_s: float
    """Read rate of one node from the weights volume."""
    weights_because: str
    weights_sources: tuple[str, ...]
    engine_start_s: float
    """Ray's processes, imports, compilation, profiling and CUDA graphs."""
    engine_start_because: str
    engine_start_sources: tuple[str, ...]


@cache
def load_load_times() -> LoadTimes:
    text = files("rayhelm").joinpath("data/performance/loading.yaml").read_text()
    return LoadTimes.model_validate(yaml.safe_load(text))


def find_read_rate(stated: float | None, network: PoolNetwork) -> ReadRate:
    """Return the rate of the fleet file; else the assumed one, or that of a slower network. `stated`: GiB/s."""
    if stated:
        return ReadRate(stated, "from the fleet file")
    figures = load_load_times()
    line = network.gb_per_s * 1e9 / 2**30 if network.gb_per_s else inf
    if line >= figures.weights_gib_per_s:
        return ReadRate(figures.weights_gib_per_s, figures.weights_because)
    return ReadRate(
        line, f"the rate of network `{network.name}`; `weights.readSpeed` if the volume is on the node itself"
    )


def estimate_load_s(gib_per_node: float, gib_per_s: float) -> float:
    """Return seconds. The nodes of one replica load at the same time."""
    return gib_per_node / gib_per_s + load_load_times().engine_start_s


def count_weights_per_node(stages: Sequence[StagePlan], gpus: int, nodes: int) -> float:
    """Return GiB of the node that reads most. `gpus`: of one stage."""
    each = len(stages) // nodes
    per_stage = [stage.weights_gib * gpus for stage in stages]
    return max(sum(per_stage[first : first + each]) for first in range(0, len(per_stage), each))
