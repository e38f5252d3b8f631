"""Configuration of the vendors' GPU operators: sharing, partitions, metrics."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Values
from rayhelm.deploy.values.common.labels import Labels, Namespace, ObjectName
from rayhelm.facts.operators import load_intel, load_nvidia

__all__ = ["Amd", "ClusterPolicy", "DcgmCounters", "Intel", "Nvidia", "NvidiaPool"]

_OPERANDS = load_nvidia().operands
_PLUGIN = r"^([^\s@:]+(:[0-9]+)?/)*intel-gpu-plugin[:@][-A-Za-z0-9_.:]+$"
_IMAGE = r"^[a-z0-9]([-a-z0-9._:/]*[a-z0-9])?$"
Profile = Annotated[str, Field(pattern=r"^[1-9]g\.[1-9][0-9]*gb$")]
"""A MIG profile that computes: none of `+me`, `+gfx` and `-me`."""


class NvidiaPool(Values):
    """A pool whose GPUs are shared, by `mig` or by `replicas`. A label of its nodes holds its name; NOTES has the
    command that sets it."""

    node_selector: Labels
    """Labels of its nodes, for that command."""
    gpu: str = ""
    """GPU of the catalog (`H100-SXM-80GB`). Required with `mig`, which is checked against the profiles of this GPU."""
    mig: dict[Profile, Annotated[int, Field(ge=1, le=8)]] = {}
    """MIG instances of each GPU, by profile. Pods request `nvidia.com/mig-<profile>`."""
    replicas: Annotated[int, Field(ge=0, le=48)] = 0
    """Pods that share one GPU; 0: not shared. They request `nvidia.com/gpu.shared`."""
    strategy: Literal["timeSlicing", "mps"] = "timeSlicing"
    """How `replicas` share a GPU. `timeSlicing` does not limit the memory of a pod. `mps` runs the pods at the same
    time and gives each an equal part of the memory; a pod that fails can make the others fail."""


class NvidiaImage(Values):
    """Image of a component of the operator."""

    repository: Annotated[str, Field(pattern=_IMAGE)]
    """Registry and path."""
    image: Annotated[str, Field(pattern=_IMAGE)]
    """Name."""
    version: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})$")]
    """Tag, or digest."""


class NvidiaImages(Values):
    """Images of the operator's components, as released with version 26.7.0 of the operator. A ClusterPolicy has no
    default images. The digests were not read."""

    driver: NvidiaImage = NvidiaImage(**_OPERANDS["driver"].model_dump())
    """Driver, if the operator installs it."""
    toolkit: NvidiaImage = NvidiaImage(**_OPERANDS["toolkit"].model_dump())
    """Container toolkit, if the operator installs it."""
    device_plugin: NvidiaImage = NvidiaImage(**_OPERANDS["devicePlugin"].model_dump())
    """Device plugin."""
    gfd: NvidiaImage = NvidiaImage(**_OPERANDS["gfd"].model_dump())
    """GPU feature discovery, which labels nodes."""
    mig_manager: NvidiaImage = NvidiaImage(**_OPERANDS["migManager"].model_dump())
    """MIG manager, which partitions GPUs."""
    dcgm_exporter: NvidiaImage = NvidiaImage(**_OPERANDS["dcgmExporter"].model_dump())
    """Metrics of GPUs."""


class ClusterPolicy(Values):
    """The operator's one ClusterPolicy."""

    manage: bool = False
    """Create the ClusterPolicy in this chart. Needs operator 25.10 or newer. NVIDIA's own chart then needs
    `clusterPolicy.deployCR=false`. False: NOTES has the values for NVIDIA's chart, so that it uses the ConfigMaps of
    this chart."""
    name: ObjectName = "cluster-policy"
    """Name. The operator uses the oldest ClusterPolicy and ignores others."""
    driver: bool = True
    """The operator installs the driver. False: the image of the nodes has it."""
    toolkit: bool = True
    """The operator installs the container toolkit. False: the image of the nodes has it, and NOTES has its setting."""
    operands: NvidiaImages = NvidiaImages()
    """Images."""


class DcgmCounters(Values):
    """Counters of dcgm-exporter, for dashboards and alerts."""

    profiling: bool = True
    """Include profiling counters (cores, tensor cores, buses). Only data center GPUs have them."""


class Nvidia(Values):
    """NVIDIA's GPU operator."""

    enabled: bool = False
    """Create its ConfigMaps, and the ClusterPolicy if `clusterPolicy.manage` is true. The operator has to be
    installed."""
    namespace: Namespace = "gpu-operator"
    """Namespace of the operator and of its ConfigMaps."""
    pools: dict[Name, NvidiaPool] = {}
    """Pools whose GPUs are shared, by name."""
    counters: DcgmCounters = DcgmCounters()
    """Metrics of GPUs."""
    cluster_policy: ClusterPolicy = ClusterPolicy()
    """The ClusterPolicy, and what the operator installs."""


class AmdNodePartition(Values):
    """Partition mode of the GPUs of some nodes."""

    mode: Literal["SPX_NPS1", "CPX_NPS1", "CPX_NPS4"]
    """Compute and memory partition. CPX makes eight devices of an MI300X. NPS4, only with CPX, also splits its memory
    into four."""
    gpus_per_node: Annotated[int, Field(ge=1, le=16)]
    """GPUs of each node. All of them are partitioned."""
    node_selector: Labels
    """Labels of the nodes, for the command in NOTES."""


class Amd(Values):
    """AMD's GPU operator."""

    enabled: bool = False
    """Create its DeviceConfig. The operator and its CRDs have to be installed."""
    namespace: Namespace = "kube-amd-gpu"
    """Namespace of the operator."""
    name: ObjectName = "rayhelm"
    """Name of the DeviceConfig."""
    driver: bool = False
    """The operator installs the driver. False: the nodes have it."""
    node_selector: Labels = {"feature.node.kubernetes.io/amd-gpu": "true"}
    """Labels of the nodes with AMD GPUs."""
    resource_naming: Literal["single", "mixed"] = "single"
    """`single` names every device `amd.com/gpu`, partitions too, and needs the same mode on all GPUs of a node. `mixed`
    names partitions by their mode (`amd.com/cpx_nps4`)."""
    metrics: bool = True
    """Run AMD's metrics exporter."""
    partitions: dict[Name, AmdNodePartition] = {}
    """Partition modes by profile. The label `dcm.amd.com/gpu-config-profile` of a node names its profile."""


class IntelPool(Values):
    """A GpuDevicePlugin."""

    node_selector: Labels
    """Labels of its nodes. No node may match two plugins."""
    shared_dev_num: Annotated[int, Field(ge=1, le=48)] = 1
    """Pods that share one GPU. They request `gpu.intel.com/xe` or `/i915` as for a whole GPU. Their memory is not
    limited."""
    monitoring: bool = False
    """Offer the monitoring resources of Intel's plugin, which give a container all GPUs of a node. Needed by an
    exporter of GPU metrics. The policy `gpu-access` refuses them to tenants."""


class Intel(Values):
    """Intel's device plugin operator."""

    enabled: bool = False
    """Create its GpuDevicePlugins. The operator and its CRDs have to be installed."""
    image: Annotated[str, Field(pattern=_PLUGIN)] = load_intel().image
    """Image of the plugin. The operator accepts only this image name. The digest was not read."""
    pools: Annotated[dict[Name, IntelPool], Field(max_length=32)] = {}
    """Device plugins by name."""
