"""The network between the hosts of a pool: from the catalog or the fleet file, replaced by what was measured."""

from dataclasses import dataclass, replace

from rayhelm.fleet.measurements import PairMeasurement, PoolMeasurement

__all__ = ["PoolNetwork", "list_usable_pairs", "measure_network"]

MAX_SPAN_LATENCY_S = 1e-3
"""Each output token waits once per stage for the network: from here on no replica is split over it."""


@dataclass(frozen=True)
class PoolNetwork:
    """The network between the hosts of a pool."""

    name: str
    gb_per_s: float | None
    """Transfer rate, GB/s (10^9); None if unknown."""
    rdma: bool
    spans_hosts: bool
    """Whether one replica can be split over hosts."""
    measured: bool = False
    latency_s: float | None = None
    """Seconds, one way; None if neither the fleet file nor a measurement has it."""
    basis: str = ""
    """What was measured when, and what it replaces; empty without measurements of `rayhelm probe`."""

    def __str__(self) -> str:
        speed = f"{self.gb_per_s:.2g} GB/s" if self.gb_per_s else "unknown speed"
        delay = f", {self.latency_s * 1e6:.0f} us" if self.latency_s else ""
        return f"{self.name} ({speed}{delay}{', RDMA' if self.rdma else ''}{', measured' if self.measured else ''})"


def measure_network(network: PoolNetwork, measurement: PoolMeasurement) -> PoolNetwork:
    """Return the network with measured rate and latency: those of the slowest pair, because a pipeline waits for it."""
    pairs = list_usable_pairs(network, measurement)
    if not pairs:
        return network
    rate = min(pair.gb_per_s for pair in pairs)
    latency = max(pair.latency_us for pair in pairs) / 1e6
    count = f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''} of nodes"
    spans = latency <= MAX_SPAN_LATENCY_S
    basis = (
        f"`rayhelm probe` measured {rate:.2g} GB/s and {latency * 1e6:.0f} us on {measurement.date}, the slowest of"
        f" {count}; the plan uses this in place of {network}"
    )
    if not spans:
        basis += f". No replica is split over it: more than {MAX_SPAN_LATENCY_S * 1e3:.0f} ms per token and stage"
    elif not network.spans_hosts:
        basis += ". Replicas can be split over it"
    return replace(network, gb_per_s=rate, latency_s=latency, spans_hosts=spans, measured=True, basis=basis)


def list_usable_pairs(network: PoolNetwork, measurement: PoolMeasurement) -> list[PairMeasurement]:
    """Return the pairs whose figures count. CPUs do not use RDMA: what gloo measures is not the rate of the GPUs."""
    return [pair for pair in measurement.usable_pairs if pair.backend == "nccl" or not network.rdma]
