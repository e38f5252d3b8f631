"""Measured speed of a model of the fleet, as `rayhelm bench` writes it beside the measurements of the pools."""

from datetime import datetime
from typing import Any

from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = ["SpeedMeasurement"]

MIN_REQUESTS = 8
"""With fewer finished requests, a median is not a figure of the engine."""


class SpeedMeasurement(Closed):
    """One load on a live endpoint. Times are medians over its requests."""

    source: str
    """Weights that were served."""
    revision: str | None = None
    engine: dict[str, Any] = {}
    """Engine arguments that the fleet file pinned."""
    gpus: tuple[str, ...] = Field(min_length=1)
    """GPU id of each pipeline stage."""
    tensor_parallel_size: int = Field(ge=1)
    data_parallel_size: int = Field(default=1, ge=1)
    gpu_fraction: float = Field(default=1.0, gt=0, le=1)
    replicas: int = Field(ge=1)
    concurrency: float = Field(gt=0)
    """Requests in flight on all replicas."""
    input_tokens: float = Field(gt=0)
    """Mean of the requests, as the engine counted them."""
    output_tokens: float = Field(gt=0)
    ttft_s: float = Field(gt=0)
    """Time to first token, with the network and the gateway."""
    tpot_s: float = Field(gt=0)
    """Time per output token after the first."""
    output_tokens_per_second: float = Field(gt=0)
    """Of all replicas."""
    requests: int = Field(ge=0)
    """Finished ones."""
    failed: int = Field(ge=0)
    vllm: str
    """Version that the fleet file was planned for."""
    measured_at: datetime

    @property
    def why_not(self) -> str:
        """Why the figures are not used; empty if they are."""
        if self.failed:
            return f"{self.failed} of {self.requests + self.failed} requests failed"
        return f"only {self.requests} requests" if self.requests < MIN_REQUESTS else ""

    @property
    def shape(self) -> str:
        """The split and the load, for messages."""
        ranks = f"DP {self.data_parallel_size} x " if self.data_parallel_size > 1 else ""
        return (
            f"{'+'.join(dict.fromkeys(self.gpus))}, {ranks}TP {self.tensor_parallel_size} x PP {len(self.gpus)},"
            f" {self.concurrency:g} requests in flight on {self.replicas} replicas"
        )
