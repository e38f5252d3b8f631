"""Measurements of `rayhelm probe` in a plan: which are used, for what, and which are not."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.measurements import FleetMeasurements, NodeMeasurement, PoolMeasurement
from rayhelm.planner.placement.pool_network import list_usable_pairs

if TYPE_CHECKING:
    from rayhelm.planner.placement.inventory import PoolInventory

__all__ = ["find_measurement", "measure_gpu", "warn_measurements"]

LOW_SHARE = 0.6
"""Part of the data sheet below which a node is worth a look: copies reach 0.8 to 0.95 of it, matrices 0.6 to 0.8."""
SLOW_LINK_SHARE = 0.3
"""Part of its rate below which NVLink or Infinity Fabric is not in use: PCIe has at most a fifth of it."""


def find_measurement(pool: str, gpu: str, measured: FleetMeasurements | None) -> PoolMeasurement | None:
    """Return the measurement of a pool; None if there is none, or if the pool had other GPUs then."""
    found = measured.pools.get(pool) if measured else None
    return found if found and found.gpu == gpu else None


def measure_gpu(gpu: GpuKind, measurement: PoolMeasurement) -> GpuKind:
    """Return the GPU with measured figures that the catalog lacks, and with its link as slow as it was measured.

    The other figures stay: the coefficients of the estimate were fitted to data sheets."""
    nodes = [node for node in measurement.usable_nodes if node.device == "cuda"]
    if not nodes:
        return gpu
    update: dict[str, object] = {}
    if gpu.memory_bandwidth_gb_per_s is None:
        update["memory_bandwidth_gb_per_s"] = min(node.memory_gb_per_s for node in nodes)
    if gpu.bf16_tflops is None:
        update["bf16_tflops"] = min(node.matrix_tflops for node in nodes)
    rate = min((node.link_gb_per_s for node in nodes if node.link_gb_per_s), default=None)
    if rate and gpu.link.fast and rate < SLOW_LINK_SHARE * (gpu.link.gb_per_s or 0):
        update["link"] = gpu.link.model_copy(update={"fast": False, "gb_per_s": rate})
    if rate and (not gpu.link.fast or "link" in update):
        update["pcie_gb_per_s"] = rate
    return gpu.model_copy(update=update)


def warn_measurements(measured: FleetMeasurements | None, inventories: "Iterable[PoolInventory]") -> Iterator[str]:
    """Yield what was measured and is not used, and nodes that are much slower than their data sheet."""
    if not measured:
        return
    known = {inventory.name: inventory for inventory in inventories}
    for name, measurement in measured.pools.items():
        where = f"{measured.file}: pool `{name}`"
        if name not in known:
            yield f"{where} is not in the fleet file: its measurement is not used; remove it, or measure again"
        elif measurement.gpu != known[name].gpu_name:
            yield (
                f"{where} was measured with {measurement.gpu} and has {known[name].gpu_name} now: the measurement is"
                f" not used; measure again: rayhelm probe FLEET --pool {name}"
            )
        else:
            yield from (f"{where}, {text}" for text in _list_doubts(measurement, known[name]))


def _list_doubts(measurement: PoolMeasurement, inventory: "PoolInventory") -> Iterator[str]:
    for pair in measurement.pairs:
        if pair.why_not:
            yield f"nodes {' and '.join(pair.nodes)}: not used, {pair.why_not}"
    for node in measurement.nodes:
        if node.why_not and node.device == "cuda":
            yield f"node {node.node}: not used, {node.why_not}"
    if measurement.usable_pairs and not list_usable_pairs(inventory.network, measurement):
        yield (
            f"the network was measured between CPUs, and GPUs use RDMA on {inventory.network.name}: not used; measure"
            " without --cpu"
        )
    if inventory.network.basis and not inventory.network.spans_hosts:
        yield inventory.network.basis
    for key, reason in measurement.skipped.items():
        yield f"{key.replace('+', ' and ')}: not measured, {reason}"
    if inventory.is_uniform:
        for node in measurement.usable_nodes:
            if node.device == "cuda":
                yield from _list_slow_parts(node, inventory.hosts[0].gpu)


def _list_slow_parts(node: NodeMeasurement, gpu: GpuKind) -> Iterator[str]:
    for what, unit, measured, nominal in (
        ("memory bandwidth", "GB/s", node.memory_gb_per_s, gpu.memory_bandwidth_gb_per_s),
        ("matrix rate", "TFLOP/s", node.matrix_tflops, gpu.bf16_tflops),
    ):
        if nominal and measured < LOW_SHARE * nominal:
            yield (
                f"node {node.node}: a {what} of {measured:.0f} {unit}, and the data sheet of {gpu.id} has"
                f" {nominal:.0f}: look for a power limit, heat, or another process"
            )
    if node.link_gb_per_s and gpu.link.gb_per_s == node.link_gb_per_s:
        yield (
            f"node {node.node}: {gpu.link.kind} carries only {node.link_gb_per_s:.0f} GB/s, and the plan counts with"
            " this; check it with: nvidia-smi nvlink -s"
        )
