"""GPU operators of the vendors: versions, images, resources. One file in `data/operators/` each."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = [
    "AmdOperator",
    "DcgmCounter",
    "IntelOperator",
    "NvidiaOperator",
    "OperandImage",
    "load_amd",
    "load_intel",
    "load_nvidia",
]

_FOLDER = Path(__file__).parent.parent / "data" / "operators"


class OperandImage(Closed):
    """Image of a component that an operator runs."""

    repository: str
    image: str
    version: str


class DcgmCounter(Closed):
    """A DCGM field in the configuration of dcgm-exporter."""

    type: Literal["gauge", "counter", "label"]
    help: str


class NvidiaOperator(Closed):
    """NVIDIA's GPU operator."""

    version: str
    source: str
    operands: dict[str, OperandImage]
    """Images by their key in a ClusterPolicy."""
    counters: dict[str, DcgmCounter]
    profiling: dict[str, DcgmCounter]
    """Profiling counters, which only data center GPUs have."""


class AmdPartitionMode(Closed):
    """A partition mode of an AMD GPU."""

    compute: Literal["SPX", "CPX"]
    memory: Literal["NPS1", "NPS4"]
    parts: int
    """Devices per GPU."""
    resource: str
    """Extended resource if the device plugin names partitions separately."""


class AmdOperator(Closed):
    """AMD's GPU operator."""

    version: str
    source: str
    resource: str
    partitions: Annotated[dict[str, AmdPartitionMode], Field(min_length=1)]
    label: str
    """Node label with the partition profile."""


class IntelOperator(Closed):
    """Intel's device plugin operator."""

    version: str
    source: str
    image: str
    resources: dict[str, str]


@cache
def load_nvidia() -> NvidiaOperator:
    return NvidiaOperator.model_validate(_read("nvidia"))


@cache
def load_amd() -> AmdOperator:
    return AmdOperator.model_validate(_read("amd"))


@cache
def load_intel() -> IntelOperator:
    return IntelOperator.model_validate(_read("intel"))


def _read(vendor: str) -> object:
    return yaml.safe_load((_FOLDER / f"{vendor}.yaml").read_text(encoding="utf-8"))
