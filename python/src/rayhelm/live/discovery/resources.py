"""Extended resources of GPUs and of parts of GPUs."""

import re
from collections.abc import Mapping

from rayhelm.facts import Catalog
from rayhelm.facts.gpu import Vendor

__all__ = ["AMD_PARTITION", "MIG", "find_vendors", "list_gpu_resources"]

_VENDOR_RESOURCES = frozenset({"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"})
"""Resources of all GPUs of a vendor. Intel's plugin has one for each kernel driver."""
MIG = re.compile(r"nvidia\.com/mig-(?P<profile>[^/]+?)(?P<shared>\.shared)?$")
"""MIG instances with strategy `mixed`."""
AMD_PARTITION = re.compile(r"amd\.com/(?P<partition>[a-z]+_nps[0-9]+)$")
"""Partitions with the naming strategy `mixed` of AMD's plugin; `spx_nps1` is a whole GPU."""


def list_gpu_resources(offered: Mapping[str, float], facts: Catalog) -> dict[str, int]:
    """Return the resources of GPUs and of parts of GPUs of which the node offers at least one, with the number."""
    return {key: int(count) for key, count in offered.items() if count >= 1 and "/" in key and _is_gpu(key, facts)}


def _is_gpu(resource: str, facts: Catalog) -> bool:
    whole = resource.removesuffix(".shared")
    if whole in _VENDOR_RESOURCES or MIG.match(resource) or AMD_PARTITION.match(resource):
        return True
    return any(gpu.resource == whole for gpu in facts.gpus())


def find_vendors(resources: Mapping[str, int], facts: Catalog) -> set[Vendor]:
    """Return the vendors of the resources."""
    domains: dict[str, Vendor] = {"nvidia.com": "nvidia", "amd.com": "amd", "gpu.intel.com": "intel"}
    domains |= {gpu.resource.partition("/")[0]: gpu.vendor for gpu in facts.gpus()}
    return {domains[domain] for resource in resources if (domain := resource.partition("/")[0]) in domains}
