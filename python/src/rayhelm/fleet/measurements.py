"""Measurements of pools and models, as `rayhelm probe` and `rayhelm bench` write them: a file beside the fleet file, or
a ConfigMap of the cluster.

Machines write it and people review it: the units are in the names of the keys. GB/s are 10^9 bytes per second.
"""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from rayhelm.errors import Fix, FleetError, Problem, each_problem
from rayhelm.facts.closed import Closed
from rayhelm.fleet.document import Document, parse_document, read_text
from rayhelm.fleet.speed_measurements import SpeedMeasurement

__all__ = [
    "CONFIG_MAP",
    "KEY",
    "FleetMeasurements",
    "NodeMeasurement",
    "PairMeasurement",
    "PoolMeasurement",
    "load_measurements",
    "parse_measurements",
]

CONFIG_MAP = "rayhelm-measurements"
"""Name of the ConfigMap."""
KEY = "measurements.yaml"
"""Key of the file in the ConfigMap."""
MAX_SPREAD = 0.5
"""From here on rounds of one measurement differ too much to be a figure of the hardware."""


class _Measured(Closed):
    spread: float = Field(ge=0)
    """Part of the median that the middle half of the rounds spans."""
    busy: str = ""
    """Other use of the node before the measurement; empty without any."""

    @property
    def why_not(self) -> str:
        """Why the figures are not used; empty if they are."""
        if self.busy:
            return f"the node was busy: {self.busy}"
        return f"the rounds differ by {self.spread:.0%}" if self.spread > MAX_SPREAD else ""


class NodeMeasurement(_Measured):
    """Figures of the slowest GPU of one node."""

    node: str = Field(min_length=1)
    device: Literal["cuda", "cpu"]
    name: str = ""
    """Name of the GPU that the driver reports."""
    gpus: int = Field(ge=0)
    memory_gb_per_s: float = Field(gt=0)
    """Copy within the memory, bytes read and written."""
    matrix_tflops: float = Field(gt=0)
    """Product of dense matrices, TFLOP/s: bfloat16 on a GPU, float32 on a CPU."""
    link_gb_per_s: float | None = Field(default=None, gt=0)
    """From one GPU to the next one, one direction; None with one GPU."""
    link_latency_us: float | None = Field(default=None, gt=0)


class PairMeasurement(_Measured):
    """The network between two nodes, one direction."""

    nodes: tuple[str, str]
    backend: Literal["nccl", "gloo"]
    """`nccl` between GPUs, `gloo` between CPUs."""
    gb_per_s: float = Field(gt=0)
    latency_us: float = Field(gt=0)


class PoolMeasurement(Closed):
    """All measurements of one pool."""

    gpu: str = Field(min_length=1)
    """GPU id of the pool at that time; different ones joined with `+`."""
    measured_at: datetime
    torch: str = ""
    """Version of torch."""
    nodes: tuple[NodeMeasurement, ...] = ()
    pairs: tuple[PairMeasurement, ...] = ()
    skipped: dict[str, str] = {}
    """Reason by node, or by two nodes joined with `+`, for what was not measured."""

    @property
    def usable_pairs(self) -> tuple[PairMeasurement, ...]:
        return tuple(pair for pair in self.pairs if not pair.why_not)

    @property
    def usable_nodes(self) -> tuple[NodeMeasurement, ...]:
        return tuple(node for node in self.nodes if not node.why_not)

    @property
    def date(self) -> str:
        return f"{self.measured_at:%Y-%m-%d}"


class FleetMeasurements(Closed):
    """Measurements by pool, and by model."""

    pools: dict[str, PoolMeasurement] = {}
    models: dict[str, tuple[SpeedMeasurement, ...]] = {}
    file: str = Field(default="", exclude=True)
    """Where they were read, for messages."""


def load_measurements(path: Path) -> FleetMeasurements:
    """Read a file of `rayhelm probe -o`, or an exported ConfigMap. Raises FleetError."""
    if path.is_dir():
        raise FleetError(Problem("is a folder, not a file of measurements", file=str(path), fix=_MEASURE))
    with each_problem(lambda each: Problem(each.message, file=each.file, line=each.line, fix=_MEASURE)):
        text = read_text(path)
    return parse_measurements(text, str(path))


def parse_measurements(text: str, file: str) -> FleetMeasurements:
    """Parse measurements, or a ConfigMap with them. Raises FleetError with the line of each problem."""
    document = _parse(text, file)
    if isinstance(document.data, dict) and document.data.get("kind") == "ConfigMap":
        inside = (document.data.get("data") or {}).get(KEY)
        if not isinstance(inside, str):
            raise FleetError(document.problem(("data",), f"the ConfigMap has no key `{KEY}`", _MEASURE))
        file = f"{file}, data.{KEY}"
        document = _parse(inside, file)
    try:
        found = FleetMeasurements.model_validate(document.data)
    except ValidationError as error:
        raise FleetError([_describe(detail, document) for detail in error.errors(include_url=False)]) from None
    if not found.model_fields_set:
        raise FleetError(document.problem((), "there is no measurement in it: neither `pools` nor `models`", _MEASURE))
    return found.model_copy(update={"file": file})


def _parse(text: str, file: str) -> Document:
    def describe(each: Problem) -> Problem:
        message = f"not complete measurements: {_without_text(each)}"
        return Problem(message, file=each.file, line=each.line, fix=_MEASURE)

    with each_problem(describe):
        return parse_document(text, file)


def _without_text(problem: Problem) -> str:
    """Return the message without keys and values of the file: a fleet file can name one with other content."""
    return "keys or values that it cannot have" if "`" in problem.message else problem.message.partition(":")[0]


def _describe(detail: object, document: Document) -> Problem:
    """Describe an error of pydantic. Values, and keys of a file that has no measurements, are not in the message."""
    assert isinstance(detail, dict)
    path = tuple(detail["loc"])
    if detail["type"] == "extra_forbidden" and len(path) == 1:
        message = "not a file of measurements: it has other keys than `pools` and `models`"
        return replace(document.problem(path, message, _MEASURE), path="")
    what = (detail["msg"][:1].lower() + detail["msg"][1:]).replace("tuple", "list")
    return document.problem(path, what, _MEASURE)


_MEASURE = Fix(command="rayhelm probe FLEET -o measurements.yaml", why="measures the pools, and writes the file")
