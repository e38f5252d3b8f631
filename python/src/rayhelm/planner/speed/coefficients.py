"""Coefficients of the speed model: `data/performance/speed.yaml`, which `make fit-performance` writes."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["Band", "BandChoice", "SpeedCoefficients", "load_coefficients"]


class Band(Closed):
    """A 90 % interval around an estimate, as factors."""

    low: float
    high: float
    rows: int
    """Measured rows that it was computed from."""


class Bands(Closed):
    """Intervals of one figure, by what is known of the model and the GPU."""

    measured: Band
    """The same model, GPU and load were measured."""
    interpolated: Band
    """The same model was measured on the same GPU under other loads or splits."""
    dense: Band
    """Another dense model on a GPU with measured rows."""
    sparse: Band
    """Another model with experts on a GPU with measured rows."""
    other_gpu: Band
    """A GPU without measured rows."""
    queued: Band
    """More requests than the replica runs at a time."""


class BandChoice(NamedTuple):
    """Which interval applies."""

    name: str
    """Field of `Bands`."""
    confidence: float = 0.0
    """How far the interval is that of interpolated estimates instead, 0 to 1."""

    def choose(self, bands: Bands) -> Band:
        """Return the interval of one figure."""
        band: Band = getattr(bands, self.name)
        if not self.confidence:
            return band
        near, part = bands.interpolated, self.confidence
        low, high = (far ** (1 - part) * close**part for far, close in ((band.low, near.low), (band.high, near.high)))
        return Band.model_construct(low=low, high=high, rows=near.rows)


class SpeedCoefficients(Closed):
    """Coefficients, and how well they predict rows that they were not fitted to."""

    source: str
    memory_efficiency: dict[str, float]
    """Part of the memory bandwidth at which weights of a format are read, before the fitted coefficient."""
    compute_efficiency: dict[str, float]
    """Part of the dense peak that matrix products of a format reach, before the fitted coefficient."""
    vendor_factor: dict[str, float]
    """Factor on every duration, for vendors whose software is slower."""
    tpot: dict[str, float]
    """Factor of each term of a decode step."""
    ttft: dict[str, float]
    """Factor of each term of the time to first token."""
    tpot_bands: Bands
    ttft_bands: Bands
    throughput_bands: Bands
    errors: dict[str, str]
    """Errors of the cross-validation, as sentences."""


@cache
def load_coefficients() -> SpeedCoefficients:
    text = files("rayhelm").joinpath("data/performance/speed.yaml").read_text()
    return SpeedCoefficients.model_validate(yaml.safe_load(text))
