"""GPUs that the fleet file describes, because the catalog does not have them, or has other figures."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.errors import Fix, Problem, collect
from rayhelm.facts import Catalog, load_catalog
from rayhelm.facts.gpu import DEFAULT_GPU_RESOURCES, OWN_SOURCE, GpuKind, GpuLink, GpuPrice
from rayhelm.fleet.base import Record
from rayhelm.fleet.units import Bandwidth, Bytes

__all__ = ["GpuName", "OwnGpu", "build_gpu", "extend_catalog", "find_figure_problems"]

GpuName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$", max_length=63)]
"""Name of a GPU in the pools of the fleet."""
_NEEDED = {
    "vendor": "nvidia",
    "memory": "48GB",
    "memoryBandwidth": "696GB/s",
    "tflops": 149.7,
    "compute": "8.6",
}
"""Keys without which nothing can be computed, with an example."""


class OwnGpu(Record):
    """A GPU that the catalog does not have. With `like`, only what is different."""

    like: str | None = Field(default=None, min_length=1, max_length=100, examples=["RTX-3090-24GB"])
    """GPU of the catalog that has the figures which are not written here."""
    vendor: Literal["nvidia", "amd", "intel"] | None = None
    """Decides the extended resource of the nodes, tolerations and the image. Required without `like`."""
    memory: Bytes | None = Field(default=None, examples=["48GB"])
    """Nominal memory of the data sheet. Required without `like`."""
    usable_memory: Bytes | None = Field(default=None, examples=["44.4GiB"])
    """Memory that the driver reports to vLLM. Default: 91 % of `memory`, the least of all GPUs that were measured."""
    memory_bandwidth: Bandwidth | None = Field(default=None, examples=["696GB/s"])
    """Of the data sheet. Required without `like`."""
    tflops: float | None = Field(default=None, gt=0, le=100_000, examples=[149.7])
    """Dense 16-bit matrix throughput of the data sheet, TFLOP/s, without sparsity. Required without `like`."""
    fp8_tflops: float | None = Field(default=None, gt=0, le=200_000, examples=[733])
    """The same in FP8. Default: the GPU does not compute in FP8."""
    compute: str | None = Field(
        default=None, pattern=r"^(\d{1,2}\.\d|gfx[0-9a-f]{3,5}|[a-z][a-z0-9-]{1,19})$", examples=["8.6"]
    )
    """CUDA compute capability, `gfx` target of AMD, or architecture of Intel. Required without `like`."""
    link_bandwidth: Bandwidth | None = Field(default=None, examples=["300GB/s"])
    """NVLink or Infinity Fabric between all GPUs of a node, per GPU and direction: fast enough for tensor parallelism.
    Default: PCIe."""
    product_label: str | None = Field(default=None, min_length=1, max_length=63, examples=["NVIDIA-A40"])
    """`nvidia.com/gpu.product` of the nodes, where GPU feature discovery runs; of AMD `amd.com/gpu.device-id`. With it
    `rayhelm discover --gpus` finds the GPU."""


def extend_catalog(gpus: Mapping[str, OwnGpu], facts: Catalog | None = None) -> Catalog:
    """Return the catalog with the GPUs of a fleet."""
    facts = facts or load_catalog()
    return facts.add_gpus([build_gpu(name, own, facts) for name, own in gpus.items()]) if gpus else facts


def build_gpu(name: str, own: OwnGpu, facts: Catalog | None = None) -> GpuKind:
    """Return the GPU as the catalog would have it. Raises FleetError for an unknown `like`."""
    base = (facts or load_catalog()).gpu(own.like) if own.like else None
    figures = {field: getattr(base, field) for field in GpuKind.model_fields} if base else _build_defaults(own)
    figures |= {"id": name, "aliases": (), "price": GpuPrice(), "identifying_label": "", "ray_accelerator_type": None}
    figures |= {"product_label": own.product_label, "source": OWN_SOURCE, "notes": ""}
    if own.memory:
        figures |= {"memory_gb": own.memory / 1e9, "usable_gib": None, "usable_source": "", "mig": None}
    if own.usable_memory:
        figures |= {"usable_gib": own.usable_memory / 2**30, "usable_source": OWN_SOURCE}
    written = {
        "vendor": own.vendor,
        "memory_bandwidth_gb_per_s": own.memory_bandwidth and own.memory_bandwidth / 8e9,
        "bf16_tflops": own.tflops,
        "fp8_tflops": own.fp8_tflops,
        "compute": own.compute,
        "link": own.link_bandwidth and GpuLink(kind="own", gb_per_s=own.link_bandwidth / 8e9, fast=True),
    }
    figures |= {field: value for field, value in written.items() if value is not None}
    if own.fp8_tflops:
        figures["fp8"] = True
    return GpuKind(**figures)


def _build_defaults(own: OwnGpu) -> dict[str, Any]:
    vendor = own.vendor or "nvidia"
    return {
        "vendor": vendor,
        "architecture": own.compute or "",
        "resource": DEFAULT_GPU_RESOURCES[vendor],
        # Volta and Turing have no bfloat16.
        "bf16": vendor != "nvidia" or float(own.compute or 0) >= 8,
        "fp8": False,
        "link": GpuLink(kind="PCIe"),
        "pcie_gb_per_s": 16,
    }


def find_figure_problems(name: str, own: OwnGpu, facts: Catalog) -> Iterator[tuple[str, str, Fix | str]]:
    """Yield key below the GPU (empty: itself), what is wrong, and fix, for a GPU that cannot be described so."""
    if any(name.lower() in map(str.lower, (gpu.id, *gpu.aliases)) for gpu in facts.gpus()):
        fix = Fix.removal(why="the figures of the catalog hold; or give it another name, also in its pools")
        yield "", "the catalog has a GPU of this name", fix
        return
    base = None
    if own.like and "/" in own.like:
        yield "like", f"`{own.like}` is a part of a GPU: a whole one is needed", Fix("", own.like.partition("/")[0])
        return
    if own.like:
        base, problems = collect(partial(facts.gpu, own.like))
        if problems:
            yield "like", problems[0].message, _first_fix(problems[0])
            return
    written = own.model_dump(by_alias=True, exclude_none=True)
    missing = {} if base else {key: value for key, value in _NEEDED.items() if key not in written}
    if missing:
        listed = ", ".join(f"`{key}`" for key in missing)
        why = "with the figures of your GPU; or `like` with a GPU of the catalog, and only what is different"
        yield "", f"it has neither `like` nor {listed}", Fix("", {**written, **missing}, f"an example, {why}")
        return
    vendor = base.vendor if base else own.vendor
    if base and own.vendor not in (None, base.vendor):
        yield "vendor", f"`like` is a GPU of {base.vendor}, whose resource and image hold", Fix.removal()
        return
    if vendor == "nvidia" and own.compute and "." not in own.compute:
        yield "compute", f"`{own.compute}` is not a compute capability of NVIDIA", Fix("", "8.6", "an example")
        return
    gpu = build_gpu(name, own, facts)
    if gpu.usable_gib and gpu.memory_gb and gpu.usable_gib > gpu.memory_gb:
        what = f"{gpu.usable_gib:.1f} GiB are more than the {gpu.memory_gb:g} GB of `memory`"
        yield "usableMemory", f"{what}: the driver reports a part of it", Fix.removal(why="then 91 % of `memory` count")


def _first_fix(problem: Problem) -> Fix | str:
    fix = problem.fix
    return fix if isinstance(fix, (Fix, str)) else ""
