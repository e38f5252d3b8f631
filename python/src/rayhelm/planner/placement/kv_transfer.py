"""The transfer of a KV cache from a replica that computes prompts to one that computes answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.planner.memory.kv_cache import lay_out_kv_cache
from rayhelm.planner.memory.parallelism import find_partition
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.model_splits import ModelSplit
from rayhelm.planner.placement.replica_speed import ReplicaSpeed

__all__ = ["KvTransfer", "TransferRules", "find_transfer_error", "load_transfer_rules", "measure_transfer"]


class TransferRules(Closed):
    """Figures of `data/performance/kv_transfer.yaml`."""

    most_share: float
    """Longest transfer, as part of the time of the prompt."""
    most_share_source: str
    tcp_source: str
    connector: str
    """Class of vLLM that moves the cache."""
    connector_source: str


@dataclass(frozen=True)
class KvTransfer:
    """What the mean prompt moves, on the network of the pool."""

    cache_bytes: float
    seconds: float
    prefill_s: float
    """GPU work of the same prompt: the transfer is compared with it."""

    @property
    def share(self) -> float:
        return self.seconds / self.prefill_s

    @property
    def is_negligible(self) -> bool:
        return self.share < load_transfer_rules().most_share


@cache
def load_transfer_rules() -> TransferRules:
    text = files("rayhelm").joinpath("data/performance/kv_transfer.yaml").read_text()
    return TransferRules.model_validate(yaml.safe_load(text))


def measure_transfer(model_spec: ResolvedModelSpec, split: ModelSplit, speed: ReplicaSpeed) -> KvTransfer | None:
    """Compute the transfer of a replica with one pipeline stage; None if the rate of the network is not known.

    All tensor parallel ranks together use one network adapter of this rate: hosts with several adapters are faster."""
    rate = split.inventory.network.gb_per_s
    layers = find_partition(model_spec.model, split.shape)
    cache = lay_out_kv_cache(model_spec.model, split.shape.tp, layers, model_spec.kv_cache_dtype, model_spec.engine)
    if not rate or cache is None:
        return None
    moved = float(cache.token_bytes(0) * split.shape.tp * model_spec.lengths.prompt)
    work, _ = speed.prompt_s
    return KvTransfer(moved, moved / (rate * 1e9), work)


def find_transfer_error(model_spec: ResolvedModelSpec, split: ModelSplit) -> str:
    """Return why prompts and answers cannot be computed on different replicas of this split; empty if they can."""
    return next(_list_errors(model_spec, split), "")


def _list_errors(model_spec: ResolvedModelSpec, split: ModelSplit) -> Iterator[str]:
    model, network = model_spec.model, split.inventory.network
    if split.shape.pp > 1:
        yield "prefill and decode on different replicas were not tested with pipeline stages"
    if model.attention.windowed_layers or model.recurrence or model.encoder or not model.attention.heads:
        yield (
            f"prefill and decode on different replicas need full attention in all layers of {model.id}: transfers of"
            " other caches were not tested"
        )
    if split.inventory.partitioning or not split.inventory.is_uniform:
        yield "prefill and decode on different replicas need a pool of whole GPUs on like hosts"
    if not network.rdma:
        yield f"KV caches would move over {network}. {load_transfer_rules().tcp_source}, so RDMA is needed"
    speed = ReplicaSpeed(model_spec, split, 1.0)
    if not speed.is_known:
        yield f"the speed of {split.gpu.id} is unknown, so the transfer of KV caches has no time to compare with"
        return
    transfer = measure_transfer(model_spec, split, speed)
    if transfer is None:
        yield f"the rate of {network} is unknown: measure it with `rayhelm probe`"
    elif not transfer.is_negligible:
        most = load_transfer_rules().most_share
        yield (
            f"the KV cache of a prompt of {model_spec.lengths.prompt} tokens has {transfer.cache_bytes / 1e6:.0f} MB,"
            f" and moves over {network} in {transfer.seconds * 1e3:.1f} ms: {transfer.share:.2g} times the"
            f" {transfer.prefill_s * 1e3:.0f} ms that the GPUs compute the prompt, and the limit is {most:g}"
        )
