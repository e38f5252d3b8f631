"""GPUs that only ResourceSlices have (dynamic resource allocation), and the resource that pods request them by.

Pods of the charts request extended resources. The scheduler takes a device for one if a DeviceClass names the resource
(`extendedResourceName`), from Kubernetes 1.36 on without a feature gate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rayhelm.facts.gpu import Vendor
from rayhelm.facts.quantities import read_quantity
from rayhelm.live.cluster.kinds import DEVICE_CLASSES, RESOURCE_SLICES, Kind
from rayhelm.live.cluster.reader import AbsentError, ClusterReader

__all__ = ["Devices", "read_devices"]

_DRIVERS: dict[str, tuple[Vendor, str]] = {"gpu.nvidia.com": ("nvidia", "gpu"), "gpu.amd.com": ("amd", "amdgpu")}
"""Vendor, and the `type` of a whole GPU, by driver: kubernetes-sigs/dra-driver-nvidia-gpu 95932046, deviceinfo.go;
ROCm/k8s-gpu-dra-driver 2622427, docs/driver-attributes.md."""


@dataclass
class Devices:
    """GPUs of one node in ResourceSlices of one driver."""

    driver: str
    vendor: Vendor
    resource: str = ""
    """Extended resource of the driver's DeviceClass; empty without one."""
    products: list[str] = field(default_factory=list)
    """Product of each whole GPU."""
    memory_gib: list[float] = field(default_factory=list)
    """Memory of each whole GPU that has one, in GiB."""
    parts: int = 0
    """Devices that are parts of GPUs."""

    @property
    def labels(self) -> dict[str, str]:
        """What feature discovery would write of them."""
        products = {"-".join(product.split()) for product in self.products}
        name = {"nvidia": "nvidia.com/gpu.product", "amd": "amd.com/gpu.product-name"}.get(self.vendor, "")
        memory = {round(gib * 1024) for gib in self.memory_gib}
        found = {name: products.pop()} if len(products) == 1 else {}
        if len(memory) == 1 and self.vendor == "nvidia":
            found["nvidia.com/gpu.memory"] = str(memory.pop())
        return found


class _Value(BaseModel):
    model_config = ConfigDict(extra="ignore")
    string: str | None = None
    value: str | int | None = None


class _Device(BaseModel):
    model_config = ConfigDict(extra="ignore")
    attributes: dict[str, _Value] = {}
    capacity: dict[str, _Value] = {}
    basic: "_Device | None" = None
    """Where v1beta1 has both."""


class _Pool(BaseModel):
    model_config = ConfigDict(extra="ignore")
    name: str
    generation: int = 0


class _Slice(BaseModel):
    model_config = ConfigDict(extra="ignore")
    driver: str
    nodeName: str = ""
    pool: _Pool
    devices: tuple[_Device, ...] = ()


def read_devices(reader: ClusterReader) -> dict[str, Devices]:
    """Return the GPUs by node. Raises ForbiddenError."""
    slices = [found for item in _list_any(reader, RESOURCE_SLICES) if (found := _parse(item))]
    if not slices:
        return {}
    latest = dict[tuple[str, str], int]()
    for item in slices:
        key = item.driver, item.pool.name
        latest[key] = max(latest.get(key, 0), item.pool.generation)
    resources = _read_resources(reader)
    by_node = dict[str, Devices]()
    for item in slices:
        if item.pool.generation == latest[item.driver, item.pool.name]:
            _add(item, resources, by_node)
    return by_node


def _parse(item: Mapping[str, Any]) -> _Slice | None:
    """Return a slice of one node whose driver is known."""
    spec = item.get("spec")
    if not isinstance(spec, dict) or spec.get("driver") not in _DRIVERS or not spec.get("nodeName"):
        return None
    try:
        return _Slice.model_validate(spec)
    except ValidationError:
        return None


def _add(item: _Slice, resources: Mapping[str, str], found: dict[str, Devices]) -> None:
    vendor, whole = _DRIVERS[item.driver]
    devices = found.setdefault(item.nodeName, Devices(item.driver, vendor, resources.get(item.driver, "")))
    for each in item.devices:
        device = each.basic or each
        kind = device.attributes.get("type", _Value()).string
        if kind != whole:
            devices.parts += 1
            continue
        devices.products.append(device.attributes.get("productName", _Value()).string or "")
        if memory := read_quantity(device.capacity.get("memory", _Value()).value):
            devices.memory_gib.append(float(memory) / 2**30)


def _read_resources(reader: ClusterReader) -> dict[str, str]:
    """Return the extended resource by driver: the one of the DeviceClass that is named after the driver."""
    specs = {item["metadata"]["name"]: item.get("spec") or {} for item in _list_any(reader, (DEVICE_CLASSES,))}
    return {driver: str(specs.get(driver, {}).get("extendedResourceName") or "") for driver in _DRIVERS}


def _list_any(reader: ClusterReader, kinds: tuple[Kind, ...]) -> list[dict[str, Any]]:
    """Return the objects in the first version that the API server has."""
    for kind in kinds:
        try:
            return reader.list(kind)
        except AbsentError:
            continue
    return []
