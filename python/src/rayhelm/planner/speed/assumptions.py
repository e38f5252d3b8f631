"""Figures of the speed model that are not fitted: `data/performance/assumptions.yaml`, each with its source."""

from functools import cache
from importlib.resources import files

import yaml

from rayhelm.facts.closed import Closed

__all__ = ["SpeedAssumptions", "load_assumptions"]


class SpeedAssumptions(Closed):
    """Assumed figures."""

    replica_utilization: float
    """Planned part of a replica's best throughput; the rest is for bursts and uneven lengths."""
    replica_utilization_source: str
    pcie_all_reduce_share: dict[int, float]
    """Part of the PCIe rate that an all-reduce of so many GPUs reaches."""
    pcie_all_reduce_source: str
    pcie5_all_reduce_share: dict[int, float]
    """The same of NVIDIA GPUs with 16 lanes of PCIe 5.0."""
    pcie5_all_reduce_source: str
    measured_all_reduce_share: dict[str, dict[int, float]]
    """The same by id of a GPU that was measured itself."""
    measured_all_reduce_source: str
    pcie_call_factor: float
    """An all-reduce over PCIe starts so many times more slowly than one over NVLink."""
    narrow_layer: float
    """Least overhead of a layer without experts in a decode step, relative to one of a hidden size of 8192."""
    narrow_layer_source: str
    encoder_efficiency: float
    """Part of the nominal rate at which an encoder computes the input of one request."""
    encoder_efficiency_source: str
    hop_s: float
    """Latency of a transfer between pipeline stages of one host, seconds."""
    network_latency_s: dict[str, float]
    """The same between hosts, by kind of network, if nothing was measured."""
    network_latency_source: str
    link_use_limit: float
    """Part of a link's rate above which a pipeline over it is refused."""
    ttft_ahead: float
    """Prompts that are computed before that of a request, per other request in flight."""
    ttft_pass_tokens: float
    """Tokens of prompts that share the overhead of one forward pass."""
    saturation_from: float
    """Requests in flight in one engine above which the model of speed is too fast."""
    saturation_source: str
    draft_share: float
    """Time of one draft token of speculative decoding, as part of a decode step."""
    acceptance_rate: float
    """Assumed rate of accepted draft tokens."""
    acceptance_source: str


@cache
def load_assumptions() -> SpeedAssumptions:
    text = files("rayhelm").joinpath("data/performance/assumptions.yaml").read_text()
    return SpeedAssumptions.model_validate(yaml.safe_load(text))
