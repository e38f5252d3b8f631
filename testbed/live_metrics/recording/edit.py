"""Longer and other runs out of a recorded one: repeat a phase, hold the last state, shift, cut and relabel series."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rayhelm.facts.metrics import load_metrics
from rayhelm.observe.promql import find_metric
from testbed.live_metrics.recording.recorded import Recorded, Values, write_values

__all__ = ["Run", "run_of"]


@dataclass(frozen=True)
class Run:
    """Series of a run on one grid of steps."""

    step: int
    """Seconds between two samples."""
    steps: int
    """Number of steps."""
    series: Mapping[str, Values]

    def select(self, metrics: set[str]) -> "Run":
        """Return the series of metrics of the catalog."""
        return self._with({name: values for name, values in self.series.items() if metric_of(name) in metrics})

    def having(self, pattern: str) -> "Run":
        """Return the series whose name and labels match a regular expression."""
        return self._with({name: values for name, values in self.series.items() if re.search(pattern, name)})

    def without(self, pattern: str) -> "Run":
        """Return the series whose name and labels do not match a regular expression."""
        return self._with({name: values for name, values in self.series.items() if not re.search(pattern, name)})

    def repeat(self, start: int, end: int, times: int) -> "Run":
        """Return the run with the steps from `start` to `end` that many times in a row. Counters go on counting."""
        found = {name: _repeat(values, start, end, times, _counts(name)) for name, values in self.series.items()}
        return replace(self, steps=self.steps + (times - 1) * (end - start), series=found)

    def hold(self, steps: int) -> "Run":
        """Return the run with its last state for some more steps."""
        found = {name: (*values, *[values[-1]] * steps) for name, values in self.series.items()}
        return replace(self, steps=self.steps + steps, series=found)

    def shift(self, steps: int) -> "Run":
        """Return the run some steps later; before, nothing exists."""
        found = {name: (*[None] * steps, *values) for name, values in self.series.items()}
        return replace(self, steps=self.steps + steps, series=found)

    def end_at(self, step: int) -> "Run":
        """Return the run until a step; if a longer one is joined, its series end there."""
        found = {name: values[:step] for name, values in self.series.items()}
        return replace(self, steps=min(self.steps, step), series=found)

    def relabel(self, change: Callable[[str, str], str]) -> "Run":
        """Return the run with other labels; `change` returns the new value for a label and its value."""
        return self._with({_relabel(name, change): values for name, values in self.series.items()})

    def join(self, *others: "Run") -> "Run":
        """Return the series of several runs. The run is as long as the longest."""
        series = {name: values for run in (self, *others) for name, values in run.series.items()}
        return replace(self, steps=max(run.steps for run in (self, *others)), series=series)

    def add(self, series: Mapping[str, Values]) -> "Run":
        """Return the run with more series."""
        return self._with({**self.series, **series})

    def as_promtool(self) -> dict[str, str]:
        """Return the series in the notation of promtool."""
        padded = {name: [*values, *[None] * (self.steps - len(values))] for name, values in self.series.items()}
        return {name: write_values(values) for name, values in padded.items()}

    def _with(self, series: Mapping[str, Values]) -> "Run":
        return replace(self, series=series)


def run_of(recorded: Recorded) -> Run:
    """Return the series of a recorded run."""
    return Run(recorded.step, recorded.steps, recorded.values())


def metric_of(series: str) -> str:
    """Return the metric of the catalog that a series belongs to."""
    found = find_metric(series.partition("{")[0])
    return found[0] if found else ""


def _counts(series: str) -> bool:
    return load_metrics()[metric_of(series)].type in ("counter", "histogram")


def _repeat(values: Values, start: int, end: int, times: int, counts: bool) -> Values:
    part = values[start:end]
    if not counts:
        return (*values[:start], *part * times, *values[end:])
    begin, last = values[start - 1] or 0.0, part[-1]
    if last is None:
        # It does not exist yet, or no longer.
        return (*values[:start], *[None] * (times * (end - start)), *values[end:])
    grown = last - begin
    later = [(begin if value is None else value) + grown * number for number in range(1, times) for value in part]
    rest = [None if value is None else value + grown * (times - 1) for value in values[end:]]
    return (*values[:start], *part, *later, *rest)


def _relabel(series: str, change: Callable[[str, str], str]) -> str:
    def new(found: re.Match[str]) -> str:
        name, value = found[1], json.loads(found[2])
        return f"{name}={json.dumps(change(name, value))}"

    return re.sub(r'(\w+)=("(?:[^"\\]|\\.)*")', new, series)
