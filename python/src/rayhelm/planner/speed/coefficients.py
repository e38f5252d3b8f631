"""Coefficients of the speed model: `data/performance/speed.yaml`, which `make fit-performance` writes."""

from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["Band", "BandChoice", "SpeedCoefficients", "find_interval", "load_coefficients"]


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
    pipeline: Band
    """Stages on GPUs with measured rows, over links of 25 Gbit/s or more. Assumed: no row has several stages."""
    queued: Band
    """More requests than the replica runs at a time."""
    installed: Band
    """Other installations than those of the rows, which are one vendor's tuned runs: the slow end counts."""
    saturated: Band
    """More requests in flight in one engine than rows have."""
    wide_experts: Band
    """Experts in 8 or 16 bits: the rows of the fit have 4."""


class BandChoice(NamedTuple):
    """Which interval applies."""

    name: str
    """Field of `Bands`."""
    confidence: float = 0.0
    """How far the interval is that of interpolated estimates instead, 0 to 1."""
    saturation: float = 0.0
    """How far the interval is that of saturated engines, 0 to 1; before that of interpolated estimates."""
    elsewhere: bool = False
    """Whether it is to hold for other installations too."""

    def choose(self, bands: Bands) -> Band:
        """Return the interval of one figure."""
        band: Band = getattr(bands, self.name)
        band = _blend(band, bands.saturated, self.saturation)
        band = _blend(band, bands.interpolated, self.confidence)
        return _join(band, bands.installed) if self.elsewhere else band


def _blend(band: Band, other: Band, part: float) -> Band:
    """Return an interval between two, on a logarithmic scale."""
    if not part:
        return band
    low, high = (one ** (1 - part) * two**part for one, two in ((band.low, other.low), (band.high, other.high)))
    return Band.model_construct(low=low, high=high, rows=other.rows)


def _join(band: Band, other: Band) -> Band:
    """Return the interval that contains both."""
    low, high = min(band.low, other.low), max(band.high, other.high)
    return Band.model_construct(low=low, high=high, rows=max(band.rows, other.rows))


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
    saturation_factor: float
    """Factor on all times of a saturated engine, where no rows correct them: `saturation_from` of the assumptions."""
    wide_experts_factor: float
    """The same for models with experts in 8 or 16 bits."""
    tpot_bands: Bands
    ttft_bands: Bands
    throughput_bands: Bands
    errors: dict[str, str]
    """Errors of the cross-validation, as sentences."""


@cache
def load_coefficients() -> SpeedCoefficients:
    text = files("rayhelm").joinpath("data/performance/speed.yaml").read_text()
    return SpeedCoefficients.model_validate(yaml.safe_load(text))


@lru_cache(maxsize=4096)
def find_interval(choice: BandChoice, figure: str) -> Band:
    """Return the interval of one figure, `tpot_bands` for example. A plan asks for few choices many times."""
    bands: Bands = getattr(load_coefficients(), figure)
    return choice.choose(bands)
