"""What the vendors' operators are called, and what they name: one file in `data/operators/` each."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from rayhelm.closed import Closed

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
    """Image of something that an operator runs."""

    repository: str
    image: str
    version: str


class DcgmCounter(Closed):
    """One of DCGM's fields, as dcgm-exporter is told."""

    type: Literal["gauge", "counter", "label"]
    help: str


class NvidiaOperator(Closed):
    """NVIDIA's GPU operator."""

    version: str
    source: str
    operands: dict[str, OperandImage]
    """By their key in a ClusterPolicy."""
    counters: dict[str, DcgmCounter]
    profiling: dict[str, DcgmCounter]
    """Counters that not every card has."""


class AmdPartition(Closed):
    """How an AMD card is cut."""

    compute: Literal["SPX", "CPX"]
    memory: Literal["NPS1", "NPS4"]
    parts: int
    """Devices that one card then is."""
    resource: str
    """What the device plugin calls them where it tells partitions apart."""


class AmdOperator(Closed):
    """AMD's GPU operator."""

    version: str
    source: str
    resource: str
    partitions: Annotated[dict[str, AmdPartition], Field(min_length=1)]
    label: str
    """Of a node: the profile that it is cut by."""


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
