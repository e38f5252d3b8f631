"""GPU kinds: one file in `data/gpus/` each. A figure without a source stays None."""

from typing import Any, Literal

from pydantic import Field, model_validator

from rayhelm.facts.closed import Closed

__all__ = [
    "DEFAULT_GPU_RESOURCES",
    "LEAST_USABLE",
    "OWN_SOURCE",
    "GpuKind",
    "GpuLink",
    "GpuPrice",
    "Vendor",
    "explain_assumed_memory",
]

Vendor = Literal["nvidia", "amd", "intel", "google"]
OWN_SOURCE = "the fleet file"
"""Source of a GPU that a fleet file describes."""
DEFAULT_GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}
"""Extended resource of whole GPUs, by vendor."""


class GpuLink(Closed):
    """Link between the GPUs of one host."""

    kind: str
    """`NVLink4/NVSwitch`, `Infinity Fabric`, `PCIe`, `ICI` …"""
    gb_per_s: float | None = Field(default=None, gt=0)
    """One direction, per GPU, GB/s (10^9)."""
    fast: bool = False
    """Fast enough for tensor parallelism (NVLink, Infinity Fabric, ICI, Gaudi's RoCE)."""
    group: int | None = Field(default=None, ge=2)
    """GPUs in one link domain (2 with an NVLink bridge, 8 on an NVSwitch board); None: all GPUs of the host."""


class GpuPrice(Closed):
    """Price of one GPU for one hour, USD, with its source."""

    on_demand: float | None = Field(default=None, ge=0)
    on_demand_source: str = ""
    on_demand_provider: str = ""
    """Name of the provider; empty for a price of the fleet file."""
    spot: float | None = Field(default=None, gt=0)
    spot_source: str = ""
    spot_provider: str = ""


LEAST_USABLE = 0.91
"""GiB that the runtime reports for each nominal GB, at least: the T4 has the least of all GPUs that were measured."""
ASSUMED = f"assumed: {LEAST_USABLE:.0%} of the nominal memory, the least of all GPUs that were measured"


class GpuKind(Closed):
    """One kind of accelerator."""

    id: str
    """Id in fleet files: `H100-SXM-80GB`."""
    aliases: tuple[str, ...] = ()
    """Other spellings that `--gpu` and fleets accept."""
    vendor: Vendor
    architecture: str
    """Vendor's generation, `Hopper`, `CDNA3`."""
    compute: str | None = None
    """CUDA compute capability (`9.0`) or gfx target (`gfx942`)."""
    resource: str
    """Kubernetes extended resource of the vendor's device plugin: `nvidia.com/gpu`."""
    memory_gb: float | None = Field(default=None, gt=0)
    """Nominal memory of the data sheet, GB."""
    usable_gib: float | None = Field(default=None, gt=0)
    """Memory that the runtime reports, GiB; gpu_memory_utilization is a part of it. Not measured: assumed from the
    nominal memory, if vLLM runs on the GPU."""
    usable_source: str = ""
    memory_bandwidth_gb_per_s: float | None = Field(default=None, gt=0)
    bf16_tflops: float | None = Field(default=None, gt=0)
    """Dense 16-bit tensor throughput, TFLOP/s."""
    fp8_tflops: float | None = Field(default=None, gt=0)
    fp4_tflops: float | None = Field(default=None, gt=0)
    bf16: bool
    """Computes in bfloat16 (without it engines need dtype half)."""
    fp8: bool
    """Computes in FP8 in hardware."""
    link: GpuLink
    pcie_gb_per_s: float | None = Field(default=None, gt=0)
    host_architecture: Literal["amd64", "arm64"] = "amd64"
    """`kubernetes.io/arch` of its nodes: `arm64` where the GPU is sold with such processors only."""
    unified_memory: bool = False
    """Memory is shared with the CPU (APUs, GB10)."""
    mig: str | None = None
    """MIG profiles, a file of `data/mig/`; None without MIG."""
    engine: Literal["vllm", "vllm-unofficial", "none"] = "vllm"
    """Whether vLLM runs on it: supported, by community builds, or not at all."""
    ray_accelerator_type: str | None = None
    """Name in `ray.util.accelerators`; None for GPUs without one, such as consumer GPUs."""
    product_label: str | None = None
    """Value of the vendor's node label (`nvidia.com/gpu.product`); None if unknown."""
    identifying_label: str = ""
    """Label of AMD's or Intel's feature discovery that only nodes with this GPU have, `key=value`; empty if unknown."""
    price: GpuPrice = GpuPrice()
    """From `data/prices/`."""
    of: str = Field(default="", exclude=True)
    """Whole GPU of a part (`H100-SXM-80GB` of `H100-SXM-80GB/3g.40gb`); empty for a whole GPU."""
    part: float = Field(default=1.0, gt=0, le=1, exclude=True)
    """Share of the whole GPU, and of its price, 0 to 1."""
    memory_seen: float = Field(default=1.0, gt=0, le=1, exclude=True)
    """Share of the memory that the driver reports, 0 to 1: below 1 for time slices, which report the whole GPU."""
    source: str
    """Source of the figures."""
    notes: str = ""

    @model_validator(mode="before")
    @classmethod
    def _assume_usable_memory(cls, data: Any) -> Any:
        """A GPU with memory of its own can be planned with before it is measured. Memory shared with the CPU has
        no such proportion."""
        if not isinstance(data, dict) or data.get("usable_gib") or not data.get("memory_gb"):
            return data
        if data.get("engine", "vllm") != "vllm" or data.get("unified_memory"):
            return data
        return {**data, "usable_gib": round(data["memory_gb"] * LEAST_USABLE, 2), "usable_source": ASSUMED}

    @property
    def limit(self) -> str:
        """Why it is not planned, or only partly; empty for others."""
        if self.vendor == "google":
            return "the charts have no worker groups of TPUs, so no pool can have it"
        if self.engine == "none":
            return "no build of vLLM is known to run on it: only a model that names its pool is placed there, unchecked"
        if self.usable_gib is None:
            return (
                "its usable memory is unknown: only a model that names its pool is placed there, unchecked;"
                " `usableMemory` in `gpus` of the fleet file changes that"
            )
        return "only community builds of vLLM run on it" if self.engine == "vllm-unofficial" else ""

    @property
    def is_memory_assumed(self) -> bool:
        return self.usable_source == ASSUMED


def explain_assumed_memory(gpu: GpuKind) -> str:
    """Say what a plan counts with, and how to find out more."""
    return (
        f"the usable memory of {gpu.id} was not measured, so the plan counts with {gpu.usable_gib:.1f} GiB, the least"
        f" that a GPU with {gpu.memory_gb:g} GB can have: vLLM logs the real figure, the second one of `Free memory on"
        " device`"
    )
