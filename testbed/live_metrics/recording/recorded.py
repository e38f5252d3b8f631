"""The file of a recorded run: compressed JSON with samples in the notation of promtool."""

import json
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from rayhelm.facts.closed import Closed

__all__ = ["FLEET", "RECORDED", "Phase", "Recorded", "Values", "load_recorded", "read_values", "write_values"]

FLEET = Path(__file__).with_name("fleet.yaml")
RECORDED = Path(__file__).with_name("run.json.xz")
Values = tuple[float | None, ...]
"""Values of a series at each step; None where Prometheus has no value, because the series is absent."""


class Phase(Closed):
    """A part of the run."""

    name: str
    start: int
    """First step."""
    end: int
    """First step after it."""
    clients: int
    """Clients that send requests, one after the other."""


class Recorded(Closed):
    """A recorded run."""

    versions: dict[str, str]
    """Versions of the programs."""
    start: float
    """Time of the first step, Unix seconds."""
    step: int
    """Seconds between two samples."""
    phases: tuple[Phase, ...]
    series: dict[str, str]
    """Values by series, such as `up{job="rayhelm-services"}`, in the notation of promtool."""

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.phases[-1].end

    def phase(self, name: str) -> Phase:
        """Return a phase. Raises KeyError if there is none with the name."""
        return {phase.name: phase for phase in self.phases}[name]

    def values(self) -> dict[str, Values]:
        """Return the values by series."""
        return {series: read_values(text, self.steps) for series, text in self.series.items()}

    def samples(self) -> Iterator[str]:
        """Return the samples in the text format of OpenMetrics, each with its time."""
        for series, values in self.values().items():
            for number, value in enumerate(values):
                if value is not None:
                    yield f"{series} {value!r} {self.start + number * self.step:.3f}"

    def write(self, file: Path) -> None:
        """Write the file."""
        file.write_bytes(lzma.compress(self.model_dump_json(indent=0).encode(), preset=9 | lzma.PRESET_EXTREME))


@cache
def load_recorded(file: Path = RECORDED) -> Recorded:
    """Read a recorded run."""
    return Recorded.model_validate(json.loads(lzma.decompress(file.read_bytes())))


def write_values(values: Sequence[float | None]) -> str:
    """Return values in the notation of promtool. A value that follows no other is `stale`: the series ended."""
    parts: list[str] = []
    index = 0
    while index < len(values):
        end = index + 1
        while end < len(values) and values[end] == values[index]:
            end += 1
        parts += _run(values[index], end - index, is_after_value=index > 0)
        index = end
    return " ".join(parts)


def _run(value: float | None, count: int, *, is_after_value: bool) -> Iterator[str]:
    if value is None:
        if is_after_value:
            yield "stale"
            count -= 1
        if count:
            yield f"_x{count}"
        return
    number = re.sub(r"\.0$", "", f"{value:.10g}")
    yield f"{number}x{count - 1}" if count > 1 else number


def read_values(text: str, steps: int) -> Values:
    """Return the values of what `write_values` wrote."""
    values: list[float | None] = []
    for part in text.split():
        number, _, times = part.partition("x")
        if number in ("_", "stale"):
            values += [None] * int(times or 1)
        else:
            values += [float(number)] * (int(times or 0) + 1)
    return tuple([*values, *[None] * (steps - len(values))][:steps])


def series_name(labels: Mapping[str, str]) -> str:
    """Return a series as PromQL writes it."""
    inside = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items()) if name != "__name__")
    return f"{labels['__name__']}{{{inside}}}"
