"""GPUs: what the vendors' operators are told, so that nodes offer what the plan counts on."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.catalog.operators import load_intel, load_nvidia
from rayhelm.values.common.base import Name, Values
from rayhelm.values.common.labels import Labels, Namespace, ObjectName

__all__ = ["Amd", "ClusterPolicy", "DcgmCounters", "Intel", "Nvidia", "NvidiaPool"]

_OPERANDS = load_nvidia().operands
_PLUGIN = r"^([^\s@:]+(:[0-9]+)?/)*intel-gpu-plugin[:@][-A-Za-z0-9_.:]+$"
_IMAGE = r"^[a-z0-9]([-a-z0-9._:/]*[a-z0-9])?$"
Profile = Annotated[str, Field(pattern=r"^[1-9]g\.[1-9][0-9]*gb$")]
"""A MIG profile that computes: none of `+me`, `+gfx` and `-me`."""


class NvidiaPool(Values):
    """A pool whose cards are shared: `mig`, or `replicas`. Its name is what its nodes' labels say; NOTES has the line
    that sets them."""

    node_selector: Labels
    """Labels that its nodes have, for that line."""
    gpu: str = ""
    """Card of the catalog (`H100-SXM-80GB`); required beside `mig`, which is checked against what the card can."""
    mig: dict[Profile, Annotated[int, Field(ge=1, le=8)]] = {}
    """MIG instances of each card, by profile. Pods ask for `nvidia.com/mig-<profile>`."""
    replicas: Annotated[int, Field(ge=0, le=48)] = 0
    """Pods that have one card in turn; 0 for none. They ask for `nvidia.com/gpu.shared`."""
    strategy: Literal["timeSlicing", "mps"] = "timeSlicing"
    """How: time slices bound nothing but the number of pods. MPS runs them at once and gives each an equal part of the
    memory, and no more; one that fails may take the others along."""


class NvidiaImage(Values):
    """Image of what the operator runs."""

    repository: Annotated[str, Field(pattern=_IMAGE)]
    """Registry and path."""
    image: Annotated[str, Field(pattern=_IMAGE)]
    """Name."""
    version: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})$")]
    """Tag, or digest."""


class NvidiaImages(Values):
    """Images, since a ClusterPolicy without them has none; those that version 26.7.0 of the operator is released
    with. Their digests were not read."""

    driver: NvidiaImage = NvidiaImage(**_OPERANDS["driver"].model_dump())
    """Driver, where the operator installs it."""
    toolkit: NvidiaImage = NvidiaImage(**_OPERANDS["toolkit"].model_dump())
    """Container toolkit, where the operator installs it."""
    device_plugin: NvidiaImage = NvidiaImage(**_OPERANDS["devicePlugin"].model_dump())
    """Device plugin."""
    gfd: NvidiaImage = NvidiaImage(**_OPERANDS["gfd"].model_dump())
    """GPU feature discovery, which labels nodes."""
    mig_manager: NvidiaImage = NvidiaImage(**_OPERANDS["migManager"].model_dump())
    """Cuts cards by MIG."""
    dcgm_exporter: NvidiaImage = NvidiaImage(**_OPERANDS["dcgmExporter"].model_dump())
    """Metrics of cards."""


class ClusterPolicy(Values):
    """The operator's one ClusterPolicy."""

    manage: bool = False
    """Made here; NVIDIA's own chart has to be told `clusterPolicy.deployCR=false`, or both make one. Off: NOTES has
    the values for that chart, so that it uses what is made here."""
    name: ObjectName = "cluster-policy"
    """Its name; the operator takes the oldest and ignores others."""
    driver: bool = True
    """The operator installs the driver; off where the nodes' image brings it."""
    toolkit: bool = True
    """The operator installs the container toolkit; off where the nodes' image brings it."""
    operands: NvidiaImages = NvidiaImages()
    """Images."""


class DcgmCounters(Values):
    """What dcgm-exporter reads of each card, for dashboards and alerts."""

    profiling: bool = True
    """Counters of the cores, tensor cores and buses as well. Only cards for data centres have them."""


class Nvidia(Values):
    """NVIDIA's GPU operator."""

    enabled: bool = False
    """Makes its ConfigMaps, and the ClusterPolicy where that is managed here. The operator has to be there."""
    namespace: Namespace = "gpu-operator"
    """Where the operator runs and reads its ConfigMaps."""
    pools: dict[Name, NvidiaPool] = {}
    """Pools whose cards are shared, by name."""
    counters: DcgmCounters = DcgmCounters()
    """Metrics of cards."""
    cluster_policy: ClusterPolicy = ClusterPolicy()
    """What the operator installs."""


class AmdPartition(Values):
    """How each card of a node is cut."""

    mode: Literal["SPX_NPS1", "CPX_NPS1", "CPX_NPS4"]
    """Compute and memory partition: CPX makes eight devices of an MI300X; NPS4, for CPX alone, also splits its memory
    into four."""
    gpus_per_node: Annotated[int, Field(ge=1, le=16)]
    """Cards of each such node: all of them are cut."""
    node_selector: Labels
    """Labels that its nodes have, for the line in NOTES."""


class Amd(Values):
    """AMD's GPU operator."""

    enabled: bool = False
    """Makes its DeviceConfig. The operator and its CRDs have to be there."""
    namespace: Namespace = "kube-amd-gpu"
    """Where the operator runs."""
    name: ObjectName = "rayhelm"
    """Name of the DeviceConfig."""
    driver: bool = False
    """The operator installs the driver; off where the nodes bring it."""
    node_selector: Labels = {"feature.node.kubernetes.io/amd-gpu": "true"}
    """Labels of the nodes that it is for."""
    resource_naming: Literal["single", "mixed"] = "single"
    """`single` calls every device `amd.com/gpu`, partitions too, and wants all of a node alike; `mixed` calls them by
    their partition (`amd.com/cpx_nps4`)."""
    metrics: bool = True
    """Runs AMD's metrics exporter."""
    partitions: dict[Name, AmdPartition] = {}
    """How cards are cut, by profile; a node is cut by the one that its label `dcm.amd.com/gpu-config-profile` names."""


class IntelPool(Values):
    """A GpuDevicePlugin."""

    node_selector: Labels
    """Labels of its nodes; of two plugins no node may have both."""
    shared_dev_num: Annotated[int, Field(ge=1, le=48)] = 1
    """Pods that one card is handed to. They ask for `gpu.intel.com/xe` or `/i915` as for a whole one, and nothing
    bounds what each takes of it."""
    monitoring: bool = True
    """Offers `gpu.intel.com/monitoring`, with which an exporter sees all cards of a node."""


class Intel(Values):
    """Intel's device plugin operator."""

    enabled: bool = False
    """Makes its GpuDevicePlugins. The operator and its CRDs have to be there."""
    image: Annotated[str, Field(pattern=_PLUGIN)] = load_intel().image
    """Image of the plugin; its operator takes none of another name. Its digest was not read."""
    pools: Annotated[dict[Name, IntelPool], Field(max_length=32)] = {}
    """Plugins by name."""
