"""Networks between hosts: one file in `data/networks/` each."""

from typing import Literal

from pydantic import Field

from rayhelm.facts.closed import Closed

__all__ = ["NetworkKind"]


class NetworkKind(Closed):
    """A kind of network between hosts. Figures are per GPU."""

    id: str
    """Id in fleet files: `rdma-400g`."""
    aliases: tuple[str, ...] = ()
    kind: Literal["rdma", "ethernet", "internet"]
    bandwidth_gbit_per_s: float | None = Field(default=None, gt=0)
    """Nominal, one direction, Gbit/s (10^9); None if there is none."""
    effective_gb_per_s: float | None = Field(default=None, gt=0)
    """Measured or inferred rate for KV cache and activations, GB/s (10^9)."""
    effective_source: str = ""
    """Source of the measurement or inference."""
    latency_us: float | None = Field(default=None, gt=0)
    source: str
    notes: str = ""

    @property
    def rdma(self) -> bool:
        return self.kind == "rdma"
