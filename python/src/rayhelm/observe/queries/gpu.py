"""GPUs of all vendors. The exporters differ in names and labels; here all have `gpu_id`, `gpu_model`, `node`, and
`namespace` and `pod` of the pod that has the GPU."""

from typing import Literal

from rayhelm.facts.metrics import load_metrics
from rayhelm.observe.queries import blocks
from rayhelm.observe.queries.blocks import WINDOW
from rayhelm.observe.queries.labels import (
    GPU,
    NAMESPACE,
    OWNER_LABEL,
    SERVICE,
    SERVICE_LABEL,
    WORKER_GROUP_LABEL,
    By,
)
from rayhelm.observe.queries.registry import query
from rayhelm.observe.queries.scope import Scope

__all__ = [
    "allocatable",
    "allocated",
    "clock",
    "correctable_remapped_rows",
    "energy",
    "idle_while_allocated",
    "memory_ratio",
    "memory_temperature",
    "memory_used",
    "nvlink_rate",
    "pcie_retries",
    "power",
    "temperature",
    "tensor_activity",
    "throttled_ratio",
    "uncorrectable_remapped_rows",
    "utilization",
    "xid_changes",
    "xid_code",
]

LABELS = {
    "nvidia": {"gpu_id": "UUID", "gpu_model": "modelName", "node": "Hostname"},
    "amd": {"gpu_id": "serial_number", "gpu_model": "card_model", "node": "hostname"},
    "intel": {"gpu_id": "uuid", "gpu_model": "dev_name", "namespace": "kube_namespace", "pod": "kube_pod"},
}
"""Label of each vendor's exporter by our name."""
VENDORS: dict[str, dict[str, str]] = {
    "utilization": {
        "nvidia": "DCGM_FI_DEV_GPU_UTIL",
        "amd": "gpu_gfx_activity",
        "intel": "xpum_engine_ratio",
    },
    "memory_used": {
        "nvidia": "DCGM_FI_DEV_FB_USED",
        "amd": "gpu_used_vram",
        "intel": "xpum_memory_used_bytes",
    },
    "memory_free": {"nvidia": "DCGM_FI_DEV_FB_FREE", "amd": "gpu_free_vram"},
    "power": {"nvidia": "DCGM_FI_DEV_POWER_USAGE", "amd": "gpu_power_usage", "intel": "xpum_power_watts"},
    "temperature": {
        "nvidia": "DCGM_FI_DEV_GPU_TEMP",
        "amd": "gpu_junction_temperature",
        "intel": "xpum_temperature_celsius",
    },
    "memory_temperature": {"nvidia": "DCGM_FI_DEV_MEMORY_TEMP", "amd": "gpu_memory_temperature"},
    "clock": {"nvidia": "DCGM_FI_DEV_SM_CLOCK", "amd": "gpu_clock", "intel": "xpum_frequency_mhz"},
}
"""Metric of each vendor by what it measures."""
RESOURCES = 'resource=~"nvidia_com_(gpu.*|mig_.+)|amd_com_.+|gpu_intel_com_(i915|xe)|habana_ai_gaudi"'
_JOINED = {SERVICE_LABEL, OWNER_LABEL, WORKER_GROUP_LABEL}


@query(unit="ratio", idle="value")
def utilization(scope: Scope, by: By = GPU) -> str:
    """Share of time in which the GPU worked. Of NVIDIA: in which any kernel ran."""
    return _of_all("utilization", scope, by, "max")


@query(unit="ratio", idle="value")
def tensor_activity(scope: Scope, by: By = GPU) -> str:
    """Share of cycles in which the tensor cores worked. Only NVIDIA's data center GPUs."""
    return _of("nvidia", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", scope, by, "max")


@query(unit="bytes", idle="value")
def memory_used(scope: Scope, by: By = GPU) -> str:
    """Used memory."""
    return _of_all("memory_used", scope, by, "sum")


@query(unit="ratio", idle="value")
def memory_ratio(scope: Scope, by: By = GPU) -> str:
    """Used share of the memory."""
    used, free = _of_all("memory_used", scope, by, "sum"), _of_all("memory_free", scope, by, "sum")
    # Intel's exporter has no free memory, but the ratio itself.
    return f"{used} / ({used} + {free}) or {_of('intel', 'xpum_memory_ratio', scope, by, 'max')}"


@query(unit="watts", idle="value")
def power(scope: Scope, by: By = GPU) -> str:
    """Power."""
    return _of_all("power", scope, by, "sum")


@query(unit="joules", idle="value")
def energy(scope: Scope, window: str = "1h", by: By = GPU) -> str:
    """Energy in the window. NVIDIA only."""
    return _of("nvidia", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", scope, by, "sum", "increase", window)


@query(unit="celsius", idle="value")
def temperature(scope: Scope, by: By = GPU) -> str:
    """Temperature of the GPU."""
    return _of_all("temperature", scope, by, "max")


@query(unit="celsius", idle="value")
def memory_temperature(scope: Scope, by: By = GPU) -> str:
    """Temperature of the memory."""
    return _of_all("memory_temperature", scope, by, "max")


@query(unit="hertz", idle="value")
def clock(scope: Scope, by: By = GPU) -> str:
    """Clock of the GPU's cores."""
    return _of_all("clock", scope, by, "max")


@query(unit="ratio", idle="value")
def throttled_ratio(
    scope: Scope, window: str = WINDOW, by: By = GPU, cause: Literal["power", "thermal"] = "power"
) -> str:
    """Share of time in which the power limit or the temperature reduced the clock. NVIDIA only."""
    return _of("nvidia", f"DCGM_FI_DEV_{cause.upper()}_VIOLATION", scope, by, "max", "rate", window)


@query(unit="code", idle="value")
def xid_code(scope: Scope, by: By = GPU) -> str:
    """Code of the last XID error of an NVIDIA GPU; 0 if there was none. It is a code, not a count."""
    return _of("nvidia", "DCGM_FI_DEV_XID_ERRORS", scope, by, "max")


@query(unit="count", idle="value")
def xid_changes(scope: Scope, window: str = "15m", by: By = GPU) -> str:
    """Changes in the window of the last XID code: new errors. A repeated code is not seen."""
    return _of("nvidia", "DCGM_FI_DEV_XID_ERRORS", scope, by, "max", "changes", window)


@query(unit="count", idle="value")
def uncorrectable_remapped_rows(scope: Scope, window: str = "1d", by: By = GPU) -> str:
    """Memory rows that were remapped in the window after uncorrectable errors. NVIDIA only."""
    return _of("nvidia", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", scope, by, "sum", "increase", window)


@query(unit="count", idle="value")
def correctable_remapped_rows(scope: Scope, window: str = "1d", by: By = GPU) -> str:
    """Memory rows that were remapped in the window after correctable errors. NVIDIA only."""
    return _of("nvidia", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", scope, by, "sum", "increase", window)


@query(unit="count/s", idle="value")
def nvlink_rate(scope: Scope, window: str = WINDOW, by: By = GPU) -> str:
    """Growth per second of NVIDIA's counter of NVLink traffic over all lanes, in units that its documentation does not
    name."""
    return _of("nvidia", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", scope, by, "sum", "rate", window)


@query(unit="count", idle="value")
def pcie_retries(scope: Scope, window: str = WINDOW, by: By = GPU) -> str:
    """Retries on PCIe in the window. NVIDIA only."""
    return _of("nvidia", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", scope, by, "sum", "increase", window)


@query(unit="gpus", idle="value")
def allocated(scope: Scope, by: By = NAMESPACE) -> str:
    """GPU resources that pods request. A MIG partition and a time slice count as one."""
    text = blocks.vector("kube_pod_container_resource_requests", scope, RESOURCES, by=("namespace", "pod"))
    return blocks.aggregate("sum", _with_service(text, scope, by), by)


@query(unit="gpus", idle="value")
def allocatable(scope: Scope, by: By = ("cluster", "node")) -> str:
    """GPU resources of the nodes."""
    return blocks.aggregate("sum", blocks.vector("kube_node_status_allocatable", scope, RESOURCES), by)


@query(unit="gpus", idle="no data")
def idle_while_allocated(scope: Scope, window: str = "30m", by: By = SERVICE, limit: float = 0.05) -> str:
    """GPUs of a service that worked less than the limit all through the window."""
    each = (*GPU, "namespace", "pod", *(label for label in by if label in _JOINED))
    busiest = _of_all("utilization", scope, each, "max", "max_over_time", window)
    return blocks.aggregate("count", f"{busiest} < {limit}", by)


def _of_all(kind: str, scope: Scope, by: By, operator: blocks.Operator, over: str = "", window: str = "") -> str:
    """A metric of all vendors."""
    texts = [_series(vendor, name, scope, by, over, window) for vendor, name in VENDORS[kind].items()]
    return blocks.aggregate(operator, _with_service(" or ".join(texts), scope, by), by)


def _of(
    vendor: str, name: str, scope: Scope, by: By, operator: blocks.Operator, over: str = "", window: str = ""
) -> str:
    """A metric of one vendor."""
    return blocks.aggregate(operator, _with_service(_series(vendor, name, scope, by, over, window), scope, by), by)


def _series(vendor: str, name: str, scope: Scope, by: By, over: str, window: str) -> str:
    needed = (*by, "namespace", "pod") if _JOINED.intersection(by) else by
    text = blocks.in_base_unit(blocks.vector(name, scope, over=over, window=window, by=needed), load_metrics()[name])
    for ours, theirs in LABELS[vendor].items():
        if ours in needed:
            text = f'label_replace({text}, "{ours}", "$1", "{theirs}", "(.+)")'
    return text


def _with_service(text: str, scope: Scope, by: By) -> str:
    """Add the labels of the service that the pod belongs to, and leave out other pods."""
    labels = [label for label in by if label in _JOINED]
    if not labels:
        return text
    on = ("cluster", "namespace", "pod")
    pods = blocks.aggregate("max", f"0 * {blocks.vector('ray_node_mem_total', scope)} + 1", (*on, *labels))
    return f"({text}) * on ({', '.join(on)}) group_left ({', '.join(labels)}) {pods}"
