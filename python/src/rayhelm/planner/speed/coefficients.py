"""Coefficients of the speed model: `data/performance/speed.yaml`, which `make fit-performance` writes."""

from functools import cache
from importlib.resources import files

import yaml

from rayhelm.closed import Closed

__all__ = ["Band", "SpeedCoefficients", "load_coefficients"]


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
